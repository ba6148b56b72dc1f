// Package backup packs the folders of a Ken into one file and puts them back.
//
// The file is a gzipped tar archive. Its first entry describes it, and its last
// says that it is whole. Each folder has a name of its own in it, so that a backup
// can be restored where the folders lie elsewhere.
package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Folder is a folder that a backup holds.
type Folder struct {
	Name string // in the backup, such as state
	Path string

	// Lines says that files grow by whole lines while they are read. What follows
	// the last whole line is left out.
	Lines bool
}

// A File is a file that a backup holds instead of the one of its name.
type File struct {
	Name string // in the backup, such as state/ken.db
	Path string
}

// About describes a backup.
type About struct {
	Format  int       `json:"format"` // 1
	Version string    `json:"version"`
	Created time.Time `json:"created"`
}

const (
	format    = 1
	aboutName = "backup.json"
	endName   = "end"
)

// Write packs folders, in their order, and then files. It leaves out what leave
// returns true for, by its path on disk, and folders of the list within others:
// they are packed under their own names. Of what is removed meanwhile nothing is
// packed, and sockets and devices are left out. It returns the number of files.
func Write(w io.Writer, about About, folders []Folder, files []File, leave func(path string) bool) (int, error) {
	z := gzip.NewWriter(w)
	p := &packer{tar: tar.NewWriter(z), date: about.Created}
	about.Format = format
	description, err := json.Marshal(about)
	if err != nil {
		return 0, err
	}
	if err := p.file(aboutName, 0o600, description); err != nil {
		return 0, err
	}
	for _, f := range folders {
		others := slices.DeleteFunc(slices.Clone(folders), func(o Folder) bool { return o.Name == f.Name })
		err := p.folder(f, func(name string) bool {
			return leave(name) || slices.ContainsFunc(others, func(o Folder) bool { return o.Path == name })
		})
		if err != nil {
			return 0, fmt.Errorf("back up %s: %w", f.Path, err)
		}
	}
	for _, f := range files {
		data, err := os.ReadFile(f.Path)
		if err == nil {
			err = p.file(f.Name, 0o600, data)
		}
		if err != nil {
			return 0, fmt.Errorf("back up %s: %w", f.Name, err)
		}
	}
	packed := p.packed - 1 // without the description
	return packed, errors.Join(p.file(endName, 0o600, nil), p.tar.Close(), z.Close())
}

type packer struct {
	tar    *tar.Writer
	date   time.Time
	packed int
}

func (p *packer) file(name string, mode fs.FileMode, data []byte) error {
	p.packed++
	if err := p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: int64(len(data)), ModTime: p.date}); err != nil {
		return err
	}
	_, err := p.tar.Write(data)
	return err
}

func (p *packer) folder(f Folder, leave func(string) bool) error {
	return filepath.WalkDir(f.Path, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if leave(at) && at != f.Path {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(f.Path, at)
		if err != nil {
			return err
		}
		if err := p.entry(path.Join(f.Name, filepath.ToSlash(rel)), at, d, f.Lines); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (p *packer) entry(name, at string, d fs.DirEntry, lines bool) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return p.tar.WriteHeader(h)
	case fs.ModeSymlink:
		if h.Linkname, err = os.Readlink(at); err != nil {
			return err
		}
		h.Typeflag = tar.TypeSymlink
		return p.tar.WriteHeader(h)
	case 0:
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		if lines && len(data) > 0 {
			data = data[:bytes.LastIndexByte(data, '\n')+1]
		}
		return p.file(name, info.Mode(), data)
	}
	return nil // a socket or a device
}

// Read unpacks a backup below a new folder, one folder for each name, and returns
// what it says about itself. A backup that is damaged or not whole is an error, and
// so is an entry of a folder that is not in names.
func Read(r io.Reader, into string, names []string) (About, error) {
	var about About
	root, err := os.OpenRoot(into)
	if err != nil {
		return about, err
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return about, fmt.Errorf("not a backup of Ken: %w", err)
	}
	entries := tar.NewReader(packed{z})
	first, err := entries.Next()
	if err != nil || first.Name != aboutName {
		return about, fmt.Errorf("not a backup of Ken: it does not begin with %s", aboutName)
	}
	if err := json.NewDecoder(io.LimitReader(entries, 1<<20)).Decode(&about); err != nil {
		return about, fmt.Errorf("not a backup of Ken: %w", err)
	}
	if about.Format != format {
		return about, fmt.Errorf("the backup has format %d, and this Ken reads %d; use the Ken that wrote it, %s", about.Format, format, about.Version)
	}
	for {
		h, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return about, errors.New("the backup is not whole: its end is missing")
		case err != nil:
			return about, err
		case h.Name == endName:
			_, err := io.Copy(io.Discard, packed{z}) // the checksum is at the very end
			return about, err
		}
		folder, _, _ := strings.Cut(path.Clean(h.Name), "/") // home/../x is not of home
		if !slices.Contains(names, folder) {
			return about, fmt.Errorf("the backup has an entry %q, which is not of Ken", h.Name)
		}
		if err := unpack(root, h, entries); err != nil {
			return about, fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

// packed says of every failure to read that the backup is damaged.
type packed struct{ from io.Reader }

func (p packed) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("the backup is damaged: %w", err)
	}
	return n, err
}

// unpack writes one entry. The root keeps it inside, whatever links there are.
func unpack(root *os.Root, h *tar.Header, data io.Reader) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode)&0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, data)
		return errors.Join(err, f.Close(), root.Chtimes(name, time.Time{}, h.ModTime))
	}
	return errors.New("neither a file, a folder nor a link")
}
