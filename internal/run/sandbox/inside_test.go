//go:build linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestDir starts tools elsewhere than at the top of the work directory.
func TestDir(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
	eachProfile(t, func(t *testing.T, p Profile) {
		work, granted := inside(t), t.TempDir()
		must(t, work.MkdirAll("a/b", 0o755), work.WriteFile("file", nil, 0o644))
		must(t, work.Symlink("/etc", "out"), os.Mkdir(filepath.Join(granted, "sub"), 0o755))
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
// at the files from outside. In a granted directory they have absolute names.
// Without protection each attack must succeed.
func TestProtect(t *testing.T) {
	testkit.CI(t, "starts a hundred tools")
	places := []struct {
		name, file, dir string
		granted         bool
	}{
		{"at the top", "ken.yaml", "cards", false},
		{"deeper", ".git/config", ".git/hooks", false},
		{"far down", "a/b/c/file", "a/b/d", false},
		{"granted", ".git/config", ".git/hooks", true},
	}
	for _, place := range places {
		for _, tt := range changes {
			t.Run(place.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				attack := func(protect bool) (changed bool, o Outcome) {
					at := inside(t)
					for name, text := range map[string]string{place.file: "good", place.dir + "/f": "good"} {
						must(t, at.MkdirAll(filepath.Dir(name), 0o755), at.WriteFile(name, []byte(text), 0o644))
					}
					s := shell(at, `cat "$F" "$D/f" && echo beside >"$(dirname "$F")/beside" && echo fine; { `+tt.script+`; } 2>/dev/null`)
					s.Env = []string{"F=" + place.file, "D=" + place.dir}
					names := []string{place.file, place.dir}
					if place.granted {
						s.Work, s.Write, s.Dir = inside(t), []string{at.Name()}, at.Name()
						names = []string{filepath.Join(at.Name(), place.file), filepath.Join(at.Name(), place.dir)}
					}
					if protect {
						s.Protect = names
					}
					o = mustRun(t, Full, s)
					if !strings.HasPrefix(o.Stdout.Text(), "goodgoodfine\n") {
						t.Errorf("control: reading, and writing beside = %q %q, want both", o.Stdout.Text(), o.Stderr.Text())
					}
					for _, name := range []string{place.file, place.dir + "/f"} {
						data, err := at.ReadFile(name)
						info, statErr := at.Stat(name)
						changed = changed || err != nil || string(data) != "good" || statErr != nil || info.Mode().Perm() != 0o644
					}
					_, err := at.Stat(place.dir + "/more")
					return changed || err == nil, o
				}
				if changed, _ := attack(false); !changed {
					t.Error("control: without protection nothing changed")
				}
				if changed, o := attack(true); changed || len(o.Isolation.Missing) > 0 {
					t.Errorf("protected, it changed (%s); missing: %q", o.Stderr.Text(), o.Isolation.Missing)
				}
			})
		}
	}
}

// TestProtectLink: a protected link cannot be replaced, wherever it leads. What
// it leads to is not protected by that.
func TestProtectLink(t *testing.T) {
	testkit.CI(t, "starts a dozen tools")
	for _, target := range []string{"f", "d", "../d", "nowhere", "/etc/hostname"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			for _, protect := range []bool{false, true} {
				work := inside(t)
				must(t, work.MkdirAll("in/d", 0o755), work.WriteFile("in/f", []byte("good"), 0o644), work.Symlink(target, "in/link"))
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
