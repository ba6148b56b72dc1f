package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: what does not compile on a platform is named, in tests too, and
// nothing else.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/m\n\ngo 1.26.0\n",
		"a/a.go":            "package a\n\nimport \"syscall\"\n\nfunc Kill() error { return syscall.Kill(1, 9) }\n",
		"b/b_unix.go":       "//go:build unix\n\npackage b\n\nfunc Help() int { return 1 }\n",
		"b/b.go":            "package b\n\nconst B = 1\n",
		"b/b_test.go":       "package b\n\nimport \"testing\"\n\nfunc TestHelp(t *testing.T) { _ = Help() }\n",
		"b/x_test.go":       "package b_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/b\"\n)\n\nfunc TestX(t *testing.T) { _ = b.Shown }\n",
		"b/shown_test.go":   "package b\n\nconst Shown = B\n",
		"linux/l_linux.go":  "package linux\n\nfunc L() {}\n",
		"big/big.go":        "package big\n\nconst N int = 1 << 40\n",
		"uses/uses_test.go": "package uses\n\nimport (\n\t\"testing\"\n\n\t\"example.com/m/linux\"\n)\n\nfunc TestL(t *testing.T) { linux.L() }\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	for platform, want := range map[string][]string{
		"linux/amd64":   nil,
		"linux/arm":     {"big.go:3"},
		"windows/amd64": {"a.go:5", "b_test.go:5", "uses_test.go:6"},
	} {
		got, err := check(dir, platform)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %q, want complaints about %q", platform, got, want)
		}
		for _, place := range want {
			if !strings.Contains(strings.Join(got, "\n"), place) {
				t.Errorf("%s: %q does not name %s", platform, got, place)
			}
		}
	}
	if _, err := check(dir, "windows"); err == nil {
		t.Error("a platform without an architecture was taken")
	}
}
