//go:build linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDir starts tools elsewhere than at the top of the work directory.
func TestDir(t *testing.T) {
	eachProfile(t, func(t *testing.T, p Profile) {
		work, granted := inside(t), t.TempDir()
		if err := work.MkdirAll("a/b", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := work.WriteFile("file", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := work.Symlink("/etc", "out"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(granted, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		top := workPath(work)
		tests := []struct {
			dir, want string // "" for a refusal
		}{
			{"", top},
			{".", top},
			{"a", top + "/a"},
			{"a/b", top + "/a/b"},
			{top + "/a/b", top + "/a/b"},
			{granted, granted},
			{granted + "/sub", granted + "/sub"},
			{"absent", ""},
			{"file", ""},
			{granted + "/absent", ""},
		}
		for _, tt := range tests {
			s := shell(work, `pwd -P; [ "$HOME" = "$TOP" ] && echo home; touch "$HOME/mark"`)
			s.Dir, s.Read, s.Env = tt.dir, []string{granted}, []string{"TOP=" + top}
			o, err := runIn(context.Background(), p, s)
			_, statErr := work.Stat("mark")
			work.Remove("mark")
			if tt.want == "" {
				var r *Refusal
				if !errors.As(err, &r) || statErr == nil {
					t.Errorf("Run in %q = %q, %v, want a refusal before it starts", tt.dir, o.Stdout.Text(), err)
				}
				continue
			}
			if err != nil || o.Stdout.Text() != tt.want+"\nhome\n" || statErr != nil {
				t.Errorf("Run in %q = %q, %v, want it in %s", tt.dir, o.Stdout.Text(), err, tt.want)
			}
		}
		// A link in the work directory does not bring the tool to the host's.
		s := shell(work, "pwd -P; cat shadow || echo closed")
		s.Dir = "out"
		if o, err := runIn(context.Background(), p, s); err == nil && p != Full {
			t.Errorf("Run in a link that leads out = %q, want a refusal", o.Stdout.Text())
		} else if err == nil && o.Stdout.Text() != "/etc\nclosed\n" {
			t.Errorf("Run in a link that leads out = %q, want what every tool sees there", o.Stdout.Text())
		}
	})
	for _, dir := range []string{"..", "a/../..", "/etc", "/usr", "/", "a\xff"} {
		if s, err := (Spec{Path: "/bin/true", Args: []string{"true"}, Work: inside(t), Dir: dir}).filled(); err == nil {
			t.Errorf("filled() with Dir %q = %q, want an error", dir, s.Dir)
		}
	}
}

// The attacks on a protected name; $F is a file, $D a directory with a file f.
var changes = []struct{ name, script string }{
	{"write", `echo evil >"$F"; echo evil >"$D/f"`},
	{"append", `echo evil >>"$F"; echo evil >>"$D/f"`},
	{"truncate", `: >"$F"; : >"$D/f"`},
	{"remove", `rm -f "$F"; rm -rf "$D"`},
	{"rename", `mv "$F" gone; mv "$D" gone2`},
	{"replace", `echo evil >new; mv -f new "$F"; mkdir newd; mv -T newd "$D"`},
	{"rename the parent", `p=$(dirname "$F"); [ "$p" = . ] || { mv "$p" gone3 && mkdir -p "$p" "$D" && echo evil >"$F" && echo evil >"$D/f"; }; [ "$p" != . ] || echo evil >"$F"`},
	{"link", `ln "$F" other && echo evil >other; ln "$D/f" other2 && echo evil >other2`},
	{"add", `echo evil >"$D/more"; echo evil >"$F"`},
	{"mode", `chmod 0777 "$F" "$D/f"`},
	{"unmount", `umount "$F"; umount "$D"; echo evil >"$F"`},
}

// TestProtect tries to change protected names and what they lie in, and looks
// at the files from outside. Without protection each attack must succeed.
func TestProtect(t *testing.T) {
	places := []struct{ name, file, dir string }{
		{"at the top", "ken.yaml", "cards"},
		{"deeper", ".git/config", ".git/hooks"},
		{"far down", "a/b/c/file", "a/b/d"},
	}
	for _, place := range places {
		for _, tt := range changes {
			t.Run(place.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				attack := func(protect []string) (changed bool, o Outcome) {
					work := inside(t)
					for name, text := range map[string]string{place.file: "good", place.dir + "/f": "good"} {
						if err := errors.Join(work.MkdirAll(filepath.Dir(name), 0o755), work.WriteFile(name, []byte(text), 0o644)); err != nil {
							t.Fatal(err)
						}
					}
					s := shell(work, `cat "$F" "$D/f" && echo beside >"$(dirname "$F")/beside" && echo fine; { `+tt.script+`; } 2>/dev/null`)
					s.Env, s.Protect = []string{"F=" + place.file, "D=" + place.dir}, protect
					o = mustRun(t, Full, s)
					if !strings.HasPrefix(o.Stdout.Text(), "goodgoodfine\n") {
						t.Errorf("control: reading, and writing beside = %q %q, want both", o.Stdout.Text(), o.Stderr.Text())
					}
					for _, name := range []string{place.file, place.dir + "/f"} {
						data, err := work.ReadFile(name)
						info, statErr := work.Stat(name)
						changed = changed || err != nil || string(data) != "good" || statErr != nil || info.Mode().Perm() != 0o644
					}
					_, err := work.Stat(place.dir + "/more")
					return changed || err == nil, o
				}
				if changed, _ := attack(nil); !changed {
					t.Error("control: without protection nothing changed")
				}
				if changed, o := attack([]string{place.file, place.dir}); changed || len(o.Isolation.Missing) > 0 {
					t.Errorf("protected, it changed (%s); missing: %q", o.Stderr.Text(), o.Isolation.Missing)
				}
			})
		}
	}
}

// TestProtectGranted: what lies in a granted directory is protected by its
// absolute name, in the same way.
func TestProtectGranted(t *testing.T) {
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			attack := func(protect bool) (changed bool) {
				work, granted := inside(t), inside(t)
				for name, text := range map[string]string{".git/config": "good", ".git/hooks/f": "good"} {
					if err := errors.Join(granted.MkdirAll(filepath.Dir(name), 0o755), granted.WriteFile(name, []byte(text), 0o644)); err != nil {
						t.Fatal(err)
					}
				}
				s := shell(work, `cat "$F" "$D/f" && echo beside >"$(dirname "$F")/beside" && echo fine; { `+tt.script+`; } 2>/dev/null`)
				s.Env, s.Write, s.Dir = []string{"F=.git/config", "D=.git/hooks"}, []string{granted.Name()}, granted.Name()
				if protect {
					s.Protect = []string{filepath.Join(granted.Name(), ".git/config"), filepath.Join(granted.Name(), ".git/hooks")}
				}
				o := mustRun(t, Full, s)
				if !strings.HasPrefix(o.Stdout.Text(), "goodgoodfine\n") {
					t.Errorf("control: reading, and writing beside = %q %q, want both", o.Stdout.Text(), o.Stderr.Text())
				}
				for _, name := range []string{".git/config", ".git/hooks/f"} {
					data, err := granted.ReadFile(name)
					info, statErr := granted.Stat(name)
					changed = changed || err != nil || string(data) != "good" || statErr != nil || info.Mode().Perm() != 0o644
				}
				_, err := granted.Stat(".git/hooks/more")
				return changed || err == nil
			}
			if !attack(false) {
				t.Error("control: without protection nothing changed")
			}
			if attack(true) {
				t.Error("protected, it changed")
			}
		})
	}
}

// TestProtectLink: a protected link cannot be replaced, wherever it leads. What
// it leads to is not protected by that.
func TestProtectLink(t *testing.T) {
	for _, target := range []string{"f", "d", "../d", "nowhere", "/etc/hostname"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for _, protect := range []bool{false, true} {
				work := inside(t)
				if err := errors.Join(work.MkdirAll("in/d", 0o755), work.WriteFile("in/f", []byte("good"), 0o644), work.Symlink(target, "in/link")); err != nil {
					t.Fatal(err)
				}
				s := shell(work, `echo evil >t; mv in moved; mv -fT t in/link; rm -f in/link; mv in/link z; ln -sfn t in/link; readlink in/link; echo fine >in/f; cat in/f; true`)
				if protect {
					s.Protect = []string{"in/link"}
				}
				o := mustRun(t, Full, s)
				got, err := work.Readlink("in/link")
				if kept := err == nil && got == target; kept != protect {
					t.Errorf("protected %t: the link leads to %q, %v (%s)", protect, got, err, o.Stderr.Text())
				}
				if want := target + "\nfine\n"; protect && o.Stdout.Text() != want {
					t.Errorf("Run = %q %q, want %q", o.Stdout.Text(), o.Stderr.Text(), want)
				}
			}
		})
	}
}

// TestProtectLimits says what cannot be protected, and does not keep it quiet.
func TestProtectLimits(t *testing.T) {
	work := inside(t)
	if err := errors.Join(work.WriteFile("f", []byte("good"), 0o644), work.Symlink("f", "link"), work.Mkdir("d", 0o755)); err != nil {
		t.Fatal(err)
	}
	evil := shell(work, "echo evil >f; echo ran >ran")
	evil.Protect = []string{"f"}

	// Without mounts: refused where isolation is required, and else said.
	for _, p := range []Profile{Landlock, None} {
		s := evil
		s.Require = RequireLandlock
		_, err := runIn(context.Background(), p, s)
		var r *Refusal
		if !errors.As(err, &r) {
			t.Errorf("%s: Run = %v, want a refusal", p, err)
		}
		if p == Landlock && r.Layer != "protect" {
			t.Errorf("%s: Run = %v, want a refusal for protect", p, err)
		}
		if data, _ := work.ReadFile("f"); string(data) != "good" {
			t.Fatalf("%s: it ran all the same", p)
		}
		s.Require = BestEffort
		o := mustRun(t, p, s)
		if data, _ := work.ReadFile("f"); string(data) != "evil\n" {
			t.Errorf("%s: f = %q, want the gap that is reported to be one", p, data)
		}
		if text := strings.Join(o.Isolation.Missing, "\n"); !strings.Contains(text, "protect: ") {
			t.Errorf("%s: Missing = %q, want it to name protect", p, text)
		}
		if err := work.WriteFile("f", []byte("good"), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	// What is not there can be made, which is said.
	s := shell(work, "mkdir -p new && echo evil >new/name && cat new/name")
	s.Protect = []string{"new/name", "d"}
	o := mustRun(t, Full, s)
	if text := strings.Join(o.Isolation.Missing, "\n"); !strings.Contains(text, "new/name is not there") || o.Stdout.Text() != "evil\n" {
		t.Errorf("Run = %q, missing %q, want the absent name told of", o.Stdout.Text(), text)
	}

	// A way through a link is refused, and so are names that lead out.
	s = evil
	if err := work.Symlink("d", "way"); err != nil {
		t.Fatal(err)
	}
	s.Protect = []string{"way/f"}
	if _, err := runIn(context.Background(), Full, s); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("Run with a name behind a link = %v, want a refusal that says so", err)
	}
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "d/", "a/../b", "x\xff"} {
		s.Protect = []string{name}
		if _, err := s.filled(); err == nil {
			t.Errorf("filled() with Protect %q = nil, want an error", name)
		}
	}
}
