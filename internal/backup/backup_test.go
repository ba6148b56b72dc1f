package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	home, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	write(t, filepath.Join(home, "ken.yaml"), "a: b\n")
	write(t, filepath.Join(home, "cache", "x"), "left out")
	write(t, filepath.Join(home, "state", "ken.db"), "in another way")
	write(t, filepath.Join(home, "state", "token"), "t")
	write(t, filepath.Join(home, "audit", "one.jsonl"), "whole\nhal")
	write(t, copied, "snapshot")
	if err := os.Symlink("/etc", filepath.Join(home, "link")); err != nil {
		t.Skipf("cannot here: no links: %v", err)
	}
	folders := []Folder{{Name: "home", Path: home}, {Name: "state", Path: filepath.Join(home, "state")}, {Name: "audit", Path: filepath.Join(home, "audit"), Lines: true}, {Name: "none", Path: filepath.Join(home, "none")}}
	leave := func(name string) bool { return filepath.Base(name) == "cache" || filepath.Base(name) == "ken.db" }
	var b bytes.Buffer
	n, err := Write(&b, About{Version: "1", Created: time.Unix(1, 0).UTC()}, folders, []File{{"state/ken.db", copied}}, leave)
	if err != nil || n != 4 {
		t.Fatalf("Write = %d, %v, want 4 files", n, err)
	}
	into := t.TempDir()
	about, err := Read(bytes.NewReader(b.Bytes()), into, []string{"home", "state", "audit"})
	if err != nil || about.Version != "1" || !about.Created.Equal(time.Unix(1, 0)) {
		t.Fatalf("Read = %+v, %v", about, err)
	}
	for name, want := range map[string]string{"home/ken.yaml": "a: b\n", "state/ken.db": "snapshot", "state/token": "t", "audit/one.jsonl": "whole\n"} {
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"home/cache", "home/state", "home/audit"} {
		if _, err := os.Lstat(filepath.Join(into, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if to, err := os.Readlink(filepath.Join(into, "home", "link")); err != nil || to != "/etc" {
		t.Errorf("the link leads to %q, %v", to, err)
	}

	// Wherever it is cut, it is refused.
	for cut := range b.Len() {
		if _, err := Read(bytes.NewReader(b.Bytes()[:cut]), t.TempDir(), []string{"home", "state", "audit"}); err == nil {
			t.Fatalf("%d of %d bytes were read without an error", cut, b.Len())
		}
	}
}

// TestReadStaysInside checks that no entry gets out of the folder.
func TestReadStaysInside(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	pack := func(entries ...*tar.Header) *bytes.Buffer {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		about := `{"format":1}`
		all := append([]*tar.Header{{Name: aboutName, Size: int64(len(about)), Typeflag: tar.TypeReg}}, entries...)
		for i, h := range append(all, &tar.Header{Name: endName, Typeflag: tar.TypeReg}) {
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				_, _ = w.Write([]byte(about))
			}
		}
		_, _ = w.Close(), z.Close()
		return &b
	}
	tests := map[string]struct {
		entries []*tar.Header
		want    string
	}{
		"another folder": {[]*tar.Header{{Name: "etc/passwd", Typeflag: tar.TypeReg}}, "not of Ken"},
		"upward":         {[]*tar.Header{{Name: "home/../../x", Typeflag: tar.TypeReg}}, "not of Ken"},
		"beside":         {[]*tar.Header{{Name: "home/../etc/passwd", Typeflag: tar.TypeReg}}, "not of Ken"},
		"absolute":       {[]*tar.Header{{Name: "/home/x", Typeflag: tar.TypeReg}}, "not of Ken"},
		"through a link": {[]*tar.Header{{Name: "home/l", Linkname: filepath.Dir(outside), Typeflag: tar.TypeSymlink}, {Name: "home/l/outside", Typeflag: tar.TypeReg}}, "escapes"},
		"onto a link":    {[]*tar.Header{{Name: "home/l", Linkname: outside, Typeflag: tar.TypeSymlink}, {Name: "home/l", Typeflag: tar.TypeReg}}, "l"},
		"twice":          {[]*tar.Header{{Name: "home/x", Typeflag: tar.TypeReg}, {Name: "home/x", Typeflag: tar.TypeReg}}, "exists"},
		"a device":       {[]*tar.Header{{Name: "home/x", Typeflag: tar.TypeChar}}, "neither"},
	}
	for name, tt := range tests {
		_, err := Read(pack(tt.entries...), t.TempDir(), []string{"home"})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Fatalf("%s: a file was written outside", name)
		}
	}
	if _, err := Read(pack(), t.TempDir(), nil); err != nil {
		t.Errorf("an empty backup: %v", err)
	}
}
