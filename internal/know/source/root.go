package source

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

// A root gives confined access to one directory. Paths are relative to it,
// with slashes. It holds the directory open, so that a later exchange of the
// directory by a link changes nothing.
type root struct {
	name   string // as the user would name the directory
	dir    *os.Root
	fsys   fs.FS // dir's, or the built-in files
	strict bool  // refuse hard links: the files are not the user's own
}

// openRoot opens a directory. Where around is not empty, the directory must
// lie in it, links on the way included.
func openRoot(dir, around string, strict bool) (*root, error) {
	r, err := openWithin(dir, around)
	if err != nil {
		return nil, err
	}
	return &root{name: dir, dir: r, fsys: r.FS(), strict: strict}, nil
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

// place returns a path with the names of the two folders that end at the root
// before it.
func (r *root) place(p string) string {
	name := filepath.ToSlash(r.name)
	return path.Join(path.Base(path.Dir(name)), path.Base(name), p)
}

func (r *root) close() error {
	if r.dir == nil {
		return nil
	}
	return r.dir.Close()
}

// display returns a path of the tree as the user would write it.
func (r *root) display(p string) string {
	if p == "." || p == "" {
		return r.name
	}
	return filepath.Join(r.name, filepath.FromSlash(p))
}

// relative turns a displayed path back into a path of the tree.
func (r *root) relative(display string) string {
	rel, err := filepath.Rel(r.name, display)
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

// A readError says why a file was not read, in words for the user.
type readError struct {
	code, message, fix string
	err                error
}

func (e *readError) Error() string { return e.message }
func (e *readError) Unwrap() error { return e.err }

// read reads a regular file of at most limit bytes. It never waits: a pipe or
// a device is refused before a byte is read, and a file that is rewritten in
// place meanwhile is read again, at most twice.
func (r *root) read(p string, limit int64) ([]byte, stamp, error) {
	for range 3 {
		data, before, after, err := r.readOnce(p, limit)
		if err != nil {
			return nil, stamp{}, err
		}
		if before == after {
			return data, after, nil
		}
	}
	return nil, stamp{}, &readError{
		code: "unstable-file", message: "the file keeps changing while it is read",
		fix: "write to a temporary file and rename it into place",
	}
}

func (r *root) readOnce(p string, limit int64) (data []byte, before, after stamp, err error) {
	f, err := r.open(p)
	if err != nil {
		return nil, stamp{}, stamp{}, explainOpen(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, stamp{}, explainOpen(err)
	}
	if err := r.admit(info, limit); err != nil {
		return nil, stamp{}, stamp{}, err
	}
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead)) // room for all of it at once
	if _, err = buf.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, stamp{}, stamp{}, explainOpen(err)
	}
	data = buf.Bytes()
	if int64(len(data)) > limit {
		return nil, stamp{}, stamp{}, tooLarge(int64(len(data)), limit)
	}
	if now, err := f.Stat(); err == nil {
		after = stamp{now.Size(), now.ModTime()}
	}
	before = stamp{info.Size(), info.ModTime()}
	return data, before, after, nil
}

// open opens without waiting for the other end of a pipe.
func (r *root) open(p string) (fs.File, error) {
	if r.dir == nil {
		return r.fsys.Open(p)
	}
	return r.dir.OpenFile(filepath.FromSlash(p), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// admit decides by a file's metadata whether it is read at all.
func (r *root) admit(info fs.FileInfo, limit int64) error {
	if !info.Mode().IsRegular() {
		return &readError{
			code: "not-a-file", message: fmt.Sprintf("%s is a %s, not a file", info.Name(), modeWord(info.Mode())),
			fix: "put a regular file there",
		}
	}
	if info.Size() > limit {
		return tooLarge(info.Size(), limit)
	}
	if r.strict && hardLinked(info) {
		return &readError{
			code: "hard-link", message: "the file has a second name elsewhere (hard link) and this place is not trusted",
			fix: "copy the file instead of linking it",
		}
	}
	return nil
}

func tooLarge(size, limit int64) error {
	return &readError{
		code:    "too-large",
		message: fmt.Sprintf("the file has %d bytes, more than the %d that are read", size, limit),
		fix:     "make it smaller or split it",
	}
}

func modeWord(m fs.FileMode) string {
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

func explainOpen(err error) error {
	e := &readError{err: err, code: "unreadable", message: plainCause(err), fix: "check the file and its permissions"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.code, e.message, e.fix = "missing-file", "the file is not there", "create it or remove what points to it"
	case errors.Is(err, fs.ErrPermission):
		e.code, e.message, e.fix = "no-permission", "permission denied", "make it readable for this user"
	case strings.Contains(err.Error(), "escapes"):
		e.code, e.message = "leaves-root", "Path traversal detected: the path leaves its directory"
		e.fix = "copy the file in, or name its directory as a source of its own in ken.yaml"
	case errors.Is(err, syscall.ELOOP):
		e.code, e.message, e.fix = "link-loop", "a chain of links that never ends", "remove the links"
	case errors.Is(err, syscall.ENXIO):
		e.code, e.message, e.fix = "not-a-file", "it is a socket, not a file", "put a regular file there"
	case errors.Is(err, syscall.ENAMETOOLONG):
		e.code, e.message, e.fix = "name-too-long", "the name is too long", "rename it"
	}
	return e
}

// plainCause drops the absolute path and the system call from an error, which
// the caller shows in its own way.
func plainCause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// hashInto puts the bytes of a file into a hash, without keeping them. Of a very
// large file, and of one that cannot be read, it puts in what is known.
func (r *root) hashInto(h io.Writer, p string) {
	const most = 32 << 20
	f, err := r.open(p)
	if err != nil {
		fmt.Fprintf(h, "!%s", explainOpen(err))
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

// linkTarget returns what a link says, or nothing where that cannot be told.
func (r *root) linkTarget(p string) string {
	if r.dir == nil {
		return ""
	}
	target, err := r.dir.Readlink(filepath.FromSlash(p))
	if err != nil {
		return ""
	}
	return target
}

// list returns the entries of a directory, sorted by name.
func (r *root) list(p string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(r.fsys, p)
	if err != nil {
		return nil, explainOpen(err)
	}
	return entries, nil
}

// exists reports whether a path is there, as anything.
func (r *root) exists(p string) bool {
	_, err := fs.Stat(r.fsys, p)
	return err == nil
}

// within joins a path given by a manifest onto the folder of the manifest and
// refuses one that would leave it. The open below checks again, beneath the
// root; this check is about the folder.
func within(folder, given string) (string, error) {
	escape := &readError{
		code: "leaves-root", message: fmt.Sprintf("Path traversal detected: %q leaves the folder", given),
		fix: "name a file inside the folder",
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

func problemOf(err error, severity capability.Severity, origin capability.Origin) capability.Problem {
	var re *readError
	if errors.As(err, &re) {
		return capability.Problem{Severity: severity, Code: re.code, Origin: origin, Message: re.message, Fix: re.fix}
	}
	return capability.Problem{Severity: severity, Code: "unreadable", Origin: origin, Message: err.Error()}
}
