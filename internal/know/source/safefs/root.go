package safefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ken/capability"
)

// A Root gives confined access to one directory. Paths are relative to it,
// with slashes. It holds the directory open, so that a later exchange of the
// directory by a link changes nothing.
type Root struct {
	Name   string // as the user would name the directory
	dir    *os.Root
	FS     fs.FS // dir's, or the built-in files
	strict bool  // refuse hard links: the files are not the user's own
}

// Open opens a directory. Where around is not empty, the directory must
// lie in it, links on the way included.
func Open(dir, around string, strict bool) (*Root, error) {
	r, err := openWithin(dir, around)
	if err != nil {
		return nil, err
	}
	return &Root{Name: dir, dir: r, FS: r.FS(), strict: strict}, nil
}

func openWithin(dir, around string) (*os.Root, error) {
	if around == "" {
		return os.OpenRoot(dir)
	}
	outer, err := os.OpenRoot(around)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	rel, err := filepath.Rel(around, dir)
	if err != nil {
		return nil, err
	}
	return outer.OpenRoot(rel)
}

// Place returns a path with the names of the two folders that end at the root
// before it.
func (r *Root) Place(p string) string {
	name := filepath.ToSlash(r.Name)
	return path.Join(path.Base(path.Dir(name)), path.Base(name), p)
}

// Close releases the directory.
func (r *Root) Close() error {
	if r.dir == nil {
		return nil
	}
	return r.dir.Close()
}

// Display returns a path of the tree as the user would write it.
func (r *Root) Display(p string) string {
	if p == "." || p == "" {
		return r.Name
	}
	return filepath.Join(r.Name, filepath.FromSlash(p))
}

// Relative turns a displayed path back into a path of the tree.
func (r *Root) Relative(display string) string {
	rel, err := filepath.Rel(r.Name, display)
	if err != nil {
		return display
	}
	return filepath.ToSlash(rel)
}

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	size  int64
	mtime time.Time
}

// An Error says why a file was not read, in words for the user.
type Error struct {
	Code, Message, Fix string
	err                error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.err }

// Read reads a regular file of at most limit bytes. It never waits: a pipe or
// a device is refused before a byte is read, and a file that is rewritten in
// place meanwhile is read again, at most twice.
func (r *Root) Read(p string, limit int64) ([]byte, stamp, error) {
	for range 3 {
		data, before, after, err := r.readOnce(p, limit)
		if err != nil {
			return nil, stamp{}, err
		}
		if before == after {
			return data, after, nil
		}
	}
	return nil, stamp{}, &Error{
		Code: "unstable-file", Message: "the file keeps changing while it is read",
		Fix: "write to a temporary file and rename it into place",
	}
}

func (r *Root) readOnce(p string, limit int64) (data []byte, before, after stamp, err error) {
	f, err := r.OpenFile(p)
	if err != nil {
		return nil, stamp{}, stamp{}, Explain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, stamp{}, Explain(err)
	}
	if err := r.Admit(info, limit); err != nil {
		return nil, stamp{}, stamp{}, err
	}
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead)) // room for all of it at once
	if _, err = buf.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, stamp{}, stamp{}, Explain(err)
	}
	data = buf.Bytes()
	if int64(len(data)) > limit {
		return nil, stamp{}, stamp{}, TooLarge(int64(len(data)), limit)
	}
	if now, err := f.Stat(); err == nil {
		after = stamp{now.Size(), now.ModTime()}
	}
	before = stamp{info.Size(), info.ModTime()}
	return data, before, after, nil
}

// OpenFile opens without waiting for the other end of a pipe.
func (r *Root) OpenFile(p string) (fs.File, error) {
	if r.dir == nil {
		return r.FS.Open(p)
	}
	return r.dir.OpenFile(filepath.FromSlash(p), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Admit decides by a file's metadata whether it is read at all.
func (r *Root) Admit(info fs.FileInfo, limit int64) error {
	if !info.Mode().IsRegular() {
		return &Error{
			Code: "not-a-file", Message: fmt.Sprintf("%s is a %s, not a file", info.Name(), ModeWord(info.Mode())),
			Fix: "put a regular file there",
		}
	}
	if info.Size() > limit {
		return TooLarge(info.Size(), limit)
	}
	if r.strict && hardLinked(info) {
		return &Error{
			Code: "hard-link", Message: "the file has a second name elsewhere (hard link) and this place is not trusted",
			Fix: "copy the file instead of linking it",
		}
	}
	return nil
}

// TooLarge returns the error for a file that is longer than the limit.
func TooLarge(size, limit int64) error {
	return &Error{
		Code:    "too-large",
		Message: fmt.Sprintf("the file has %d bytes, more than the %d that are read", size, limit),
		Fix:     "make it smaller or split it",
	}
}

// ModeWord names the type of a file that is not regular.
func ModeWord(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// Explain turns an error of the file system into an [Error].
func Explain(err error) error {
	e := &Error{err: err, Code: "unreadable", Message: PlainCause(err), Fix: "check the file and its permissions"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Message, e.Fix = "missing-file", "the file is not there", "create it or remove what points to it"
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message, e.Fix = "no-permission", "permission denied", "make it readable for this user"
	case strings.Contains(err.Error(), "escapes"):
		e.Code, e.Message = "leaves-root", "Path traversal detected: the path leaves its directory"
		e.Fix = "copy the file in, or name its directory as a source of its own in ken.yaml"
	case errors.Is(err, syscall.ELOOP):
		e.Code, e.Message, e.Fix = "link-loop", "a chain of links that never ends", "remove the links"
	case errors.Is(err, syscall.ENXIO):
		e.Code, e.Message, e.Fix = "not-a-file", "it is a socket, not a file", "put a regular file there"
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.Code, e.Message, e.Fix = "name-too-long", "the name is too long", "rename it"
	}
	return e
}

// PlainCause drops the absolute path and the system call from an error, which
// the caller shows in its own way.
func PlainCause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// HashInto puts the bytes of a file into a hash, without keeping them. Of a very
// large file, and of one that cannot be read, it puts in what is known.
func (r *Root) HashInto(h io.Writer, p string) {
	const most = 32 << 20
	f, err := r.OpenFile(p)
	if err != nil {
		fmt.Fprintf(h, "!%s", Explain(err))
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		fmt.Fprint(h, "!special")
		return
	}
	fmt.Fprintf(h, "%d:", info.Size())
	if info.Size() > most {
		fmt.Fprintf(h, "@%d", info.ModTime().UnixNano())
	}
	_, _ = io.CopyN(h, f, most) // a short file is the usual case
}

// LinkTarget returns what a link says, or nothing where that cannot be told.
func (r *Root) LinkTarget(p string) string {
	if r.dir == nil {
		return ""
	}
	target, err := r.dir.Readlink(filepath.FromSlash(p))
	if err != nil {
		return ""
	}
	return target
}

// List returns the entries of a directory, sorted by name.
func (r *Root) List(p string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.FS, p)
	if err != nil {
		return nil, Explain(err)
	}
	return entries, nil
}

// Exists reports whether a path is there, as anything.
func (r *Root) Exists(p string) bool {
	_, err := fs.Stat(r.FS, p)
	return err == nil
}

// Join joins a path given by a manifest onto the folder of the manifest and
// refuses one that would leave it. The open below checks again, beneath the
// root; this check is about the folder.
func Join(folder, given string) (string, error) {
	escape := &Error{
		Code: "leaves-root", Message: fmt.Sprintf("Path traversal detected: %q leaves the folder", given),
		Fix: "name a file inside the folder",
	}
	slashed := filepath.ToSlash(given)
	if given == "" || strings.ContainsRune(given, 0) || strings.ContainsRune(given, '\\') ||
		path.IsAbs(slashed) || filepath.IsAbs(given) || filepath.VolumeName(given) != "" {
		return "", escape
	}
	if slices.Contains(strings.Split(slashed, "/"), "..") {
		return "", escape
	}
	return path.Join(folder, slashed), nil
}

// Problem returns what an error means for the catalog.
func Problem(err error, severity capability.Severity, origin capability.Origin) capability.Problem {
	var re *Error
	if errors.As(err, &re) {
		return capability.Problem{Severity: severity, Code: re.Code, Origin: origin, Message: re.Message, Fix: re.Fix}
	}
	return capability.Problem{Severity: severity, Code: "unreadable", Origin: origin, Message: err.Error()}
}

// Trail returns the paths, beyond p itself, that p hangs on when it is a link:
// each further link on the way, and what the last one names.
func (r *Root) Trail(p string) []string {
	const maxLinks = 40
	if r.dir == nil {
		return nil
	}
	var out []string
	at, rest := ".", strings.Split(p, "/")
	for links := 0; len(rest) > 0 && links < maxLinks; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		if !filepath.IsLocal(filepath.FromSlash(next)) {
			return out // never followed
		}
		target, err := r.dir.Readlink(filepath.FromSlash(next))
		if err != nil {
			at = next
			continue
		}
		links++
		if next != p {
			out = append(out, next)
		}
		if filepath.IsAbs(target) {
			return out // never followed
		}
		rest = append(strings.Split(path.Clean(filepath.ToSlash(target)), "/"), rest...)
	}
	return append(out, at)
}

// IsStill reports whether a path names what it named when the root was opened.
func (r *Root) IsStill(name, only string) bool {
	if r.dir == nil {
		return true
	}
	info, err := os.Stat(name)
	if err != nil || info.IsDir() != (only == "") {
		return false
	}
	if only != "" {
		if info, err = os.Stat(filepath.Dir(name)); err != nil {
			return false
		}
	}
	opened, err := r.dir.Stat(".")
	return err == nil && os.SameFile(opened, info)
}

// IsFolder reports whether a path is a folder itself, not a link to one.
func (r *Root) IsFolder(p string) bool {
	info, err := fs.Lstat(r.FS, p)
	return err == nil && info.IsDir()
}
