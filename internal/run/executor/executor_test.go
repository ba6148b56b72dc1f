package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestCleanPath is S5.36 and K5.12: a name that climbs is refused by its
// parts, not by its letters.
func TestCleanPath(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "a/b": "a/b", "./a//b/": "a/b", ".": ".", "a..b": "a..b", "...": "...", "a/..b": "a/..b", "~": "~", "$HOME": "$HOME"} {
		if got, err := CleanPath(name); err != nil || got != want {
			t.Errorf("CleanPath(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"..": "traversal", "a/../b": "traversal", "a/..": "traversal", "/a": "absolute", "": "empty", "a\x00": "control", "a\nb": "control", `a\b`: "backslash", "\xff": "UTF-8", strings.Repeat("a", 5000): "more than"} {
		if got, err := CleanPath(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CleanPath(%.20q) = %q, %v, want an error with %q", name, got, err, want)
		}
	}
}

func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	made, err := OpenDir(root, "a/b/c", 0o700)
	must(t, err)
	made.Close()
	if info, err := os.Stat(filepath.Join(dir, "a/b/c")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v, want mode 0700", info, err)
	}
	for link, to := range map[string]string{"in": "a/b", "out": "/etc", "a/b/up": "../.."} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
		for _, name := range []string{link, link + "/c"} {
			_, err := OpenDir(root, name, 0o700)
			if l, ok := errors.AsType[*LinkError](err); !ok || l.Name != link || l.Target != to {
				t.Errorf("OpenDir(%s) = %v, want a LinkError at %s", name, err, link)
			}
		}
	}
	if _, err := OpenDir(root, "a/none", 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenDir of nothing = %v, want not exist", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if _, err := OpenDir(root, "file/x", 0o700); err == nil {
		t.Error("OpenDir through a file = nil, want an error")
	}
}

// TestPrograms is K5.13: never the work directory, never ".", never where
// anybody may write.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"bin", "work", "open"} {
		must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, sub, "tool-"+sub), []byte("#!/bin/sh\n"), 0o755))
	}
	must(t, os.Chmod(filepath.Join(dir, "open"), 0o777))
	t.Chdir(filepath.Join(dir, "work"))
	p := NewPrograms(strings.Join([]string{"", ".", "work", filepath.Join(dir, "work"), filepath.Join(dir, "open"), filepath.Join(dir, "bin")}, ":"), filepath.Join(dir, "work"))
	if got, want := p.List(), filepath.Join(dir, "open")+":"+filepath.Join(dir, "bin"); got != want {
		t.Errorf("List() = %q, want %q", got, want)
	}
	found, err := p.Find("tool-bin")
	if err != nil || found.Path != filepath.Join(dir, "bin", "tool-bin") || len(found.SHA256) != 64 {
		t.Errorf("Find(tool-bin) = %+v, %v", found, err)
	}
	for _, name := range []string{"tool-work", "tool-open", "./tool-work", "../bin/tool-bin", "", ".", "..", filepath.Join(dir, "bin") + "/../bin/tool-bin", filepath.Join(dir, "bin")} {
		if got, err := p.Find(name); err == nil {
			t.Errorf("Find(%q) = %+v, want an error", name, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env, refused := Environment("/bin", []string{"A", "A", "MISSING", "PATH", "HOME", "LD_PRELOAD", "KEN_HOME", "PAGER", "NUL"}, func(name string) (string, bool) {
		return map[string]string{"NUL": "a\x00b"}[name] + "v", name != "MISSING"
	})
	if want := []string{"KEN_HOME", "LD_PRELOAD"}; !slices.Equal(refused, want) {
		t.Errorf("refused = %v, want %v", refused, want)
	}
	if !slices.Contains(env, "A=v") || !slices.Contains(env, "PATH=/bin") || slices.ContainsFunc(env, func(e string) bool {
		return strings.HasPrefix(e, "MISSING") || strings.HasPrefix(e, "HOME") || strings.HasPrefix(e, "LD_") || strings.HasPrefix(e, "NUL") || e == "PAGER=v"
	}) {
		t.Errorf("Environment = %q", env)
	}
	for _, tt := range []struct {
		names []string
		want  string
	}{{nil, "LANG=C.UTF-8"}, {[]string{"LANG"}, "LANG=de_DE.UTF-8"}} {
		env, _ := Environment("/bin", tt.names, func(string) (string, bool) { return "de_DE.UTF-8", true })
		got := slices.DeleteFunc(env, func(e string) bool { return !strings.HasPrefix(e, "LANG=") })
		if !slices.Equal(got, []string{tt.want}) {
			t.Errorf("Environment(%v) has %q, want %s", tt.names, got, tt.want)
		}
	}
}

// TestClip: no more characters than allowed besides the note, whole ones, from
// both ends, and the note tells the truth.
func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"äöü", 3, "äöü"}, {"äöüß", 3, "äö\n[… 1 characters left out …]\nß"}, {"", 1, ""},
		{"abcdefghijklmn", 4, "ab\n[… 10 characters left out …]\nmn"}, {"ab", 1, "a\n[… 1 characters left out …]\n"},
	} {
		if got := Clip(tt.text, tt.most); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

// TestRefused: a run that never started is an error of Ken's without a folder
// of this machine, and still unwraps to its cause.
func TestRefused(t *testing.T) {
	cause := errors.New("open /home/ada/bin/tool: permission denied")
	err := Refused(capability.Call{Target: "t"}, &sandbox.Refusal{Layer: "namespaces", Cause: cause})
	if capability.KindOf(err) != capability.Unavailable || strings.Contains(err.Error(), "ada") || !strings.Contains(err.Error(), "open tool: permission denied") || !errors.Is(err, cause) {
		t.Errorf("Refused = %v", err)
	}
	if got := capability.KindOf(Refused(capability.Call{}, context.DeadlineExceeded)); got != capability.Timeout {
		t.Errorf("Refused(deadline) is %v, want timeout", got)
	}
}

// TestLimitsAreTold: a run that a limit ended names the limit and its setting.
func TestLimitsAreTold(t *testing.T) {
	for limit, o := range map[string]sandbox.Outcome{
		"sandbox.memory":     {End: sandbox.Signalled, Signal: "SIGKILL", Limit: "memory", ExitCode: -1},
		"sandbox.cpu":        {End: sandbox.Signalled, Signal: "SIGXCPU", Limit: "cpu", ExitCode: -1},
		"sandbox.fileSize":   {End: sandbox.Signalled, Signal: "SIGXFSZ", Limit: "file-size", ExitCode: -1},
		"sandbox.disk":       {End: sandbox.OverDisk, Limit: "disk", ExitCode: -1},
		"sandbox.outputStop": {End: sandbox.OverOutput, Limit: "output", ExitCode: -1},
	} {
		r := Ending{}.Result(context.Background(), o)
		if !r.Failed || len(r.Parts) == 0 || !strings.HasSuffix(r.Parts[0].Text, ". Changed by: "+limit) {
			t.Errorf("%s: %+v", limit, r)
		}
	}
}
