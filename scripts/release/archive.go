package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
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

// A file is a file, a folder or, with link, a symbolic link of an archive. Its
// content is in data or in the file called from.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
	from string

	owner int // of an image; elsewhere it is zero
}

func (f file) content() ([]byte, error) {
	if f.from != "" {
		return os.ReadFile(f.from)
	}
	return f.data, nil
}

// below returns the files in a folder of that name.
func below(folder string, files []file) []file {
	out := slices.Clone(files)
	for i := range out {
		out[i].name = path.Join(folder, out[i].name)
	}
	return out
}

// writeTar writes files, each with the one date.
func writeTar(w io.Writer, date time.Time, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), ModTime: date, Uid: f.owner, Gid: f.owner, Format: tar.FormatUSTAR}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if f.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		} else {
			data, err := f.content()
			if err != nil {
				return err
			}
			h.Typeflag, h.Size, f.data = tar.TypeReg, int64(len(data)), data
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := t.Write(f.data); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return t.Close()
}

func tarGz(date time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := writeTar(z, date, files); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func zipped(date time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		data, err := f.content()
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// put writes a file of the release.
func (r *release) put(name string, data []byte) error {
	r.say("write %s (%.1f MB)", name, float64(len(data))/1e6)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// archiveName is the name of a platform's archive, and of the folder in it.
func (r *release) archiveName(p platform) (name, folder string) {
	folder = "ken_" + r.version + "_" + p.os + "_" + p.arch
	if p.os == "windows" {
		return folder + ".zip", folder
	}
	return folder + ".tar.gz", folder
}

func (r *release) archives() error {
	for _, p := range r.platforms {
		name, folder := r.archiveName(p)
		files := below(folder, append([]file{{name: p.program(), mode: 0o755, from: r.binaries[p]}}, r.shared...))
		pack := tarGz
		if p.os == "windows" {
			pack = zipped
		}
		data, err := pack(r.date, files)
		if err != nil {
			return err
		}
		if err := r.put(name, data); err != nil {
			return err
		}
	}
	return nil
}

// gatherShared collects what goes with every binary: licences, README, completions
// and manual pages.
func (r *release) gatherShared() error {
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"} {
		r.shared = append(r.shared, file{name: name, mode: 0o644, from: filepath.Join(r.source, name)})
	}
	licences, err := r.licences()
	if err != nil {
		return fmt.Errorf("collect licences: %w", err)
	}
	r.shared = append(r.shared, file{name: "LICENSES.txt", mode: 0o644, data: licences})
	ken, err := r.host()
	if err != nil {
		return err
	}
	home := []string{"KEN_HOME=" + filepath.Join(r.work, "home")}
	for shell, name := range map[string]string{"bash": "ken.bash", "zsh": "_ken", "fish": "ken.fish", "powershell": "ken.ps1"} {
		script, err := r.outputEnv(r.work, home, ken, "completion", shell)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, file{name: "completions/" + name, mode: 0o644, data: []byte(script)})
	}
	pages := filepath.Join(r.work, "man")
	if _, err := r.outputEnv(r.work, home, ken, "man", pages); err != nil {
		return err
	}
	list, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, page := range list {
		r.shared = append(r.shared, file{name: "man/" + page.Name(), mode: 0o644, from: filepath.Join(pages, page.Name())})
	}
	slices.SortFunc(r.shared, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return nil
}
