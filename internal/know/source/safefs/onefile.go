package safefs

import (
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// A OneFile is a file system with a single file in it, so that what came from
// elsewhere is read by the same formats as a folder on disk.
type OneFile struct {
	Name    string // its path, with slashes
	Content *Content
}

// A Content is the content of such a file. Reading it at several places at the
// same time is fine.
type Content struct {
	io.ReaderAt
	Size int64
	Mod  time.Time
}

// Open opens the file, or one of the folders around it.
func (f OneFile) Open(name string) (fs.File, error) {
	switch {
	case name == f.Name:
		return &openFile{io.NewSectionReader(f.Content, 0, f.Content.Size), f.info(name)}, nil
	case name == ".":
		first, _, _ := strings.Cut(f.Name, "/")
		return &openFolder{info: f.info(name), entry: f.info(first)}, nil
	case strings.HasPrefix(f.Name, name+"/") && fs.ValidPath(name):
		next, _, _ := strings.Cut(f.Name[len(name)+1:], "/")
		return &openFolder{info: f.info(name), entry: f.info(path.Join(name, next))}, nil
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (f OneFile) info(name string) fileInfo {
	info := fileInfo{name: path.Base(name), mod: f.Content.Mod, mode: fs.ModeDir | 0o500}
	if name == f.Name {
		info.mode, info.size = 0o400, f.Content.Size
	}
	return info
}

type fileInfo struct {
	name string
	size int64
	mod  time.Time
	mode fs.FileMode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return i.mod }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// An openFile can be read anywhere, as a file on disk can.
type openFile struct {
	*io.SectionReader
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

type openFolder struct {
	info, entry fileInfo
	read        bool
}

func (d *openFolder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openFolder) Close() error               { return nil }

func (d *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: fs.ErrInvalid}
}

func (d *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.read {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	d.read = true
	return []fs.DirEntry{fs.FileInfoToDirEntry(d.entry)}, nil
}
