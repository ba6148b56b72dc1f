package add

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"ken/internal/packagefiles"
)

// A writer puts the files of a package into a folder. Names cannot leave it, links
// and special files are refused, and there is a limit to all of it.
type writer struct {
	root    *os.Root
	files   int
	folders int // that an archive names
	bytes   int64
}

func (w *writer) folder(name string) error {
	if name == "." {
		return nil
	}
	return w.root.MkdirAll(name, 0o755)
}

// entry makes a folder that an archive names. They count: an archive of nothing but
// folders is small, and would fill a disk with them.
func (w *writer) entry(name string) error {
	if w.folders++; w.folders > packagefiles.MostFiles {
		return fmt.Errorf("more than %d folders", packagefiles.MostFiles)
	}
	return w.folder(name)
}

// file writes one file. Only whether it is executable is kept of its mode.
func (w *writer) file(name string, mode fs.FileMode, from io.Reader) (err error) {
	if w.files++; w.files > packagefiles.MostFiles {
		return fmt.Errorf("more than %d files", packagefiles.MostFiles)
	}
	if err := w.folder(path.Dir(name)); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there twice", name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.Copy(f, io.LimitReader(from, packagefiles.MostBytes-w.bytes+1))
	if w.bytes += n; err == nil && w.bytes > packagefiles.MostBytes {
		err = fmt.Errorf("more than %d bytes", packagefiles.MostBytes)
	}
	if err == nil {
		err = f.Chmod(perm) // whatever the umask
	}
	return err
}

// skipped reports whether a file is no part of a package: one of git, or of what
// the package's programs wrote.
func skipped(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return packagefiles.Skipped(first)
}

// copyFolder copies a folder without its links, which it refuses.
func (w *writer) copyFolder(from fs.FS) error {
	return fs.WalkDir(from, ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && skipped(p) && e.IsDir():
			return fs.SkipDir
		case p != "." && skipped(p):
			return nil
		case e.IsDir():
			return w.folder(p)
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file; a package has no links", p)
		}
		f, err := from.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return w.file(p, info.Mode(), f)
	})
}

// extract unpacks a tar file, perhaps compressed, or a zip file.
func (w *writer) extract(f *os.File) error {
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return errors.New("archive is empty or cut off")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	switch {
	case string(head) == "PK\x03\x04":
		return w.zip(f)
	case head[0] == 0x1f && head[1] == 0x8b:
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		return w.tar(z)
	}
	return w.tar(f)
}

func (w *writer) tar(from io.Reader) error {
	// What is skipped counts too: it must be read.
	in := tar.NewReader(&limited{from: from, left: 4 * packagefiles.MostBytes})
	for first := true; ; first = false {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if first && (errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF)) {
			return errors.New("archive cannot be read: this is not a tar, tar.gz or zip file; to use a program as an MCP server, set mcp.servers.NAME in ken.yaml")
		}
		if err != nil {
			return fmt.Errorf("archive cannot be read: %w", err)
		}
		name, err := entryName(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
		case tar.TypeDir:
			err = w.entry(name)
		case tar.TypeReg:
			err = w.file(name, h.FileInfo().Mode(), in)
		default:
			err = fmt.Errorf("%s is a link or a special file; a package has none", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// limited fails after so many bytes.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("archive is too large when unpacked")
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

func (w *writer) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, err := zip.NewReader(f, info.Size())
	if err != nil {
		return fmt.Errorf("archive cannot be read: %w", err)
	}
	for _, e := range in.File {
		name, err := entryName(e.Name)
		if err != nil {
			return err
		}
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = w.entry(name)
		case !mode.IsRegular():
			err = fmt.Errorf("%s is a link or a special file; a package has none", e.Name)
		default:
			err = w.zipped(name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) zipped(name string, e *zip.File) error {
	from, err := e.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	return w.file(name, e.Mode(), from)
}

// entryName returns the name of an entry within the folder, or an error if it
// leads out of it.
func entryName(given string) (string, error) {
	name := path.Clean(strings.TrimSuffix(given, "/"))
	if strings.ContainsAny(given, "\\\x00") || !fs.ValidPath(name) {
		return "", fmt.Errorf("%q leads out of the package", given)
	}
	return name, nil
}
