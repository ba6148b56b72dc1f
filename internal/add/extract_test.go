package add

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/packagefiles"
)

type entry struct {
	name, text string
	kind       byte
	mode       int64
}

func tarOf(t *testing.T, list ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range list {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.text)), Linkname: "/etc/passwd"}
		if e.kind != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			io.WriteString(w, e.text)
		}
	}
	w.Close()
	z.Close()
	return out.Bytes()
}

func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range names {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, "text")
	}
	w.Close()
	return out.Bytes()
}

// TestExtract: an archive writes nothing outside its folder, has no links, and is
// not larger than a package may be.
func TestExtract(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want string // part of the error; empty for none
	}{
		{"plain", tarOf(t, entry{"p/", "", tar.TypeDir, 0o700}, entry{"p/bin/run", "x", tar.TypeReg, 0o700}, entry{"./p/manifest.json", "{}", tar.TypeReg, 0o777}), ""},
		{"zip", zipOf(t, "p/manifest.json", "p/bin/run"), ""},
		{"up", tarOf(t, entry{"../up", "x", tar.TypeReg, 0o644}), "leads out"},
		{"up in the middle", tarOf(t, entry{"p/../../up", "x", tar.TypeReg, 0o644}), "leads out"},
		{"absolute", tarOf(t, entry{"/etc/up", "x", tar.TypeReg, 0o644}), "leads out"},
		{"backslash", zipOf(t, `..\up`), "leads out"},
		{"zip up", zipOf(t, "../up"), "leads out"},
		{"symbolic link", tarOf(t, entry{"p/l", "", tar.TypeSymlink, 0o777}), "link"},
		{"hard link", tarOf(t, entry{"p/l", "", tar.TypeLink, 0o777}), "link"},
		{"device", tarOf(t, entry{"p/l", "", tar.TypeBlock, 0o777}), "link"},
		{"twice", tarOf(t, entry{"p/a", "x", tar.TypeReg, 0o644}, entry{"p/a", "y", tar.TypeReg, 0o644}), "twice"},
		{"file as folder", tarOf(t, entry{"p", "x", tar.TypeReg, 0o644}, entry{"p/a", "y", tar.TypeReg, 0o644}), "p"},
		{"bomb", tarOf(t, entry{"p/a", strings.Repeat("\x00", packagefiles.MostBytes+1), tar.TypeReg, 0o644}), "more than"},
		{"cut off", tarOf(t, entry{"p/a", "text", tar.TypeReg, 0o644})[:20], "archive"},
		{"text", []byte("no archive at all, only text"), "archive"},
		{"empty", nil, "empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			archive := filepath.Join(t.TempDir(), "a")
			if err := os.WriteFile(archive, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(archive)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			err = (&writer{root: root}).extract(f)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if list, _ := os.ReadDir(outer); len(list) != 1 {
				t.Errorf("it wrote outside: %v", list)
			}
			if tt.name == "plain" {
				for name, mode := range map[string]os.FileMode{"p/bin/run": 0o755, "p/manifest.json": 0o755} {
					if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
						t.Errorf("%s: %v, %v", name, info, err)
					}
				}
			}
		})
	}
}

// TestManyFiles: there is a limit to the number of files.
func TestManyFiles(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := &writer{root: root, files: packagefiles.MostFiles - 1}
	if err := w.file("a", 0o644, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	if err := w.file("b", 0o644, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "files") {
		t.Errorf("error %v", err)
	}
}

// TestManyFolders: there is a limit to the number of folders, too.
func TestManyFolders(t *testing.T) {
	for name, data := range map[string][]byte{
		"tar": tarOf(t, entry{name: "a/", kind: tar.TypeDir, mode: 0o755}, entry{name: "b/", kind: tar.TypeDir, mode: 0o755}), "zip": zipOf(t, "a/", "b/"),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "archive"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "archive"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		w := &writer{root: root, folders: packagefiles.MostFiles - 1}
		if err := w.extract(f); err == nil || !strings.Contains(err.Error(), "folders") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
