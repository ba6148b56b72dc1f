package executor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
)

// plainGuards guards .env and the contents of .ssh, AGENTS.md, manifest.json
// and the contents of .git; every argument names a file.
type plainGuards struct{}

func (plainGuards) Secret(name string) bool {
	return filepath.Base(name) == ".env" || strings.Contains("/"+name, "/.ssh/")
}

func (plainGuards) Protected(name string) bool {
	return slices.Contains([]string{"AGENTS.md", "manifest.json", "commands.yaml"}, filepath.Base(name)) || strings.Contains("/"+name, "/.git/")
}

func (plainGuards) SecretWhole(dir string) bool { return filepath.Base(dir) == ".ssh" }

func (plainGuards) ProtectedWhole(dir string) bool { return filepath.Base(dir) == ".git" }

func (plainGuards) Named(string, [][]string) []Path { return nil }

func TestLook(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		".env", "sub/deep/.env", ".ssh/id", ".ssh/known", ".git/config", "nested/.git/hooks/x", "nested/AGENTS.md", "plain.txt", "node_modules/x/.env",
		"dist/manifest.json", "ext/manifest.json", "ext/commands.yaml", "real.txt", ".git/.env",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"linked/AGENTS.md", "linked2/.env"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../real.txt", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	secrets := ".env .ssh real.txt sub/deep/.env"
	protected := ".git ext/commands.yaml ext/manifest.json nested/.git nested/AGENTS.md real.txt"
	for _, tt := range []struct {
		name              string
		write             bool
		agreed            []Path
		secret, protected string
	}{
		{"all", true, nil, secrets, protected},
		{"to read", false, nil, secrets, ""},
		{"a secret is agreed to", true, []Path{{Name: ".env"}}, ".ssh real.txt sub/deep/.env", protected},
		{"by its whole name", true, []Path{{Name: filepath.Join(dir, ".env")}}, ".ssh real.txt sub/deep/.env", protected},
		{"one in a folder", true, []Path{{Name: ".ssh/id"}}, ".env .ssh/known real.txt sub/deep/.env", protected},
		{"a pattern", true, []Path{{Name: ".ssh/k*"}}, ".env .ssh/id real.txt sub/deep/.env", protected},
		{"the folder", true, []Path{{Name: ".ssh/"}}, secrets, protected},
		{"what is no secret opens none", true, []Path{{Name: "."}, {Name: "sub"}}, secrets, protected},
		{"reading is not changing", true, []Path{{Name: "nested/AGENTS.md"}}, secrets, protected},
		{"changing", true, []Path{{Name: "nested/AGENTS.md", Write: true}}, secrets, ".git ext/commands.yaml ext/manifest.json nested/.git real.txt"},
		{"changing in a folder", true, []Path{{Name: "nested/.git/hooks/x", Write: true}}, secrets, ".git ext/commands.yaml ext/manifest.json nested/AGENTS.md real.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Look(context.Background(), plainGuards{}, dir, []Ground{{Dir: dir, Write: tt.write}}, tt.agreed)
			shown := func(list []string) string {
				var out []string
				for _, abs := range list {
					out = append(out, s.shown(abs))
				}
				slices.Sort(out)
				return strings.Join(out, " ")
			}
			if got := shown(s.Secret); got != tt.secret {
				t.Errorf("secret: %s, want %s", got, tt.secret)
			}
			if got := shown(s.Protected); got != tt.protected {
				t.Errorf("protected: %s, want %s", got, tt.protected)
			}
		})
	}
}

// TestLookSaysWhatItLeftOut: if there are too many files, the survey says so.
func TestLookSaysWhatItLeftOut(t *testing.T) {
	dir := t.TempDir()
	for i := range mostGuarded + 2 {
		sub := filepath.Join(dir, "d"+string(rune('a'+i%26)), strings.Repeat("x", i/26+1))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, ".env"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := Look(context.Background(), plainGuards{}, dir, []Ground{{Dir: dir}}, nil)
	if !strings.Contains(s.Unseen, "more than") {
		t.Errorf("Unseen = %q", s.Unseen)
	}
	r := capability.Result{Meta: map[string]string{}}
	if s.Tell(&r, true, s); r.Meta["unguarded"] != s.Unseen || !strings.Contains(r.Meta["masked"], "more") {
		t.Errorf("Meta = %v", r.Meta)
	}
}

// TestTexts: it finds what may name a file in the arguments of another server's
// tool.
func TestTexts(t *testing.T) {
	got := Texts([]byte(`{"path":".env","n":1,"list":["a/b",{"deep":"file:///home/x/.ssh/id_rsa","k":null}],"text":"two\nlines","last":"end"}`))
	if want := []string{".env", "a/b", "/home/x/.ssh/id_rsa", "end"}; !slices.Equal(got, want) {
		t.Errorf("Texts = %q, want %q", got, want)
	}
	for _, raw := range []string{"", "{", `"`, "null", `{"a":`} {
		if got := Texts([]byte(raw)); len(got) != 0 {
			t.Errorf("Texts(%q) = %q", raw, got)
		}
	}
	if got := Texts([]byte(`"x"`)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("Texts of a text = %q", got)
	}
}
