package executor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/sandbox"
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

func (plainGuards) ProtectedWhole(dir string) bool {
	return filepath.Base(dir) == ".git" || strings.HasSuffix(dir, "way/gh")
}

func (plainGuards) Named(string, [][]string) []Path { return nil }

func TestLook(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{
		".env", "sub/deep/.env", ".ssh/id", ".ssh/known", ".git/config", "nested/.git/hooks/x", "nested/AGENTS.md", "plain.txt", "node_modules/x/.env",
		"dist/manifest.json", "ext/manifest.json", "ext/commands.yaml", "real.txt", ".git/.env", "node_modules/x/AGENTS.md", "venv/.ssh/id",
		"store/config", "hooks/h", "conf/.env.d/x", "aside/gh/x",
	} {
		files[name] = ""
	}
	dir := place(t, files)
	for link, target := range map[string]string{
		"linked/AGENTS.md": "../real.txt", "linked2/.env": "../real.txt", // to a file
		"linked/.ssh": "../store", "linked/.git": "../hooks", "linked/way": "../aside", // to a folder
		"linked/none/AGENTS.md": "nowhere", "loop": "."} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755), os.Symlink(target, filepath.Join(dir, link)))
	}
	secrets := ".env .git/.env .ssh node_modules/x/.env real.txt store sub/deep/.env venv/.ssh"
	links := "linked/.git linked/AGENTS.md linked/none/AGENTS.md "
	protected := ".git aside/gh ext/commands.yaml ext/manifest.json hooks " + links + "nested/.git nested/AGENTS.md real.txt"
	without := func(list string, names ...string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(list), func(n string) bool { return slices.Contains(names, n) }), " ")
	}
	for _, tt := range []struct {
		name              string
		write             bool
		agreed            []Path
		secret, protected string
	}{
		{"all", true, nil, secrets, protected},
		{"to read", false, nil, secrets, ""},
		{"a secret is agreed to", true, []Path{{Name: ".env"}}, without(secrets, ".env"), protected},
		{"by its whole name", true, []Path{{Name: filepath.Join(dir, ".env")}}, without(secrets, ".env"), protected},
		{"one in a folder", true, []Path{{Name: ".ssh/id"}}, strings.Replace(secrets, ".ssh ", ".ssh/known ", 1), protected},
		{"a pattern", true, []Path{{Name: ".ssh/k*"}}, strings.Replace(secrets, ".ssh ", ".ssh/id ", 1), protected},
		{"the folder", true, []Path{{Name: ".ssh/"}}, secrets, protected},
		{"what is no secret opens none", true, []Path{{Name: "."}, {Name: "sub"}}, secrets, protected},
		{"reading is not changing", true, []Path{{Name: "nested/AGENTS.md"}}, secrets, protected},
		{"changing", true, []Path{{Name: "nested/AGENTS.md", Write: true}}, secrets, without(protected, "nested/AGENTS.md")},
		{"changing in a folder", true, []Path{{Name: "nested/.git/hooks/x", Write: true}}, secrets, without(protected, "nested/.git")},
		{"a secret behind a link", true, []Path{{Name: "linked/.ssh/config"}}, without(secrets, "store"), protected},
		{"by its other name", true, []Path{{Name: "loop/.env"}}, without(secrets, ".env"), protected},
		{"a link is replaced", true, []Path{{Name: "linked/AGENTS.md", Write: true}}, secrets, without(protected, "linked/AGENTS.md", "real.txt")},
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

// TestLookFailsClosed: what cannot be looked at is closed, or makes the survey
// incomplete, which the call is asked about.
func TestLookFailsClosed(t *testing.T) {
	look := func(ctx context.Context, dir string) Survey {
		return Look(ctx, plainGuards{}, dir, []Ground{{Dir: dir, Write: true}}, nil)
	}
	t.Run("no time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s := look(ctx, t.TempDir()); !strings.Contains(s.Unseen, "the time limit was reached; not looked at: .") {
			t.Errorf("Unseen = %q", s.Unseen)
		}
	})
	t.Run("a name that is too long", func(t *testing.T) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		must(t, err)
		for range 20 {
			name := strings.Repeat("n", 250)
			must(t, root.Mkdir(name, 0o755))
			next, err := root.OpenRoot(name)
			root.Close()
			must(t, err)
			root = next
		}
		defer root.Close()
		if s := look(t.Context(), dir); !strings.Contains(s.Unseen, "cannot be opened") {
			t.Errorf("Unseen = %q", s.Unseen)
		}
	})
	t.Run("a folder that is shut", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("cannot here: nothing is shut for root")
		}
		for _, mode := range []os.FileMode{0, 0o300, 0o600} {
			dir := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(dir, "a/shut/in"), 0o755), os.Chmod(filepath.Join(dir, "a/shut"), mode))
			s := look(t.Context(), dir)
			if want := []string{filepath.Join(dir, "a/shut")}; !slices.Equal(s.Secret, want) {
				t.Errorf("mode %o: Secret = %q, want %q", mode, s.Secret, want)
			}
			os.Chmod(filepath.Join(dir, "a/shut"), 0o700) // for the cleanup
		}
	})
	t.Run("a secret link to the folder around it", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "in"), 0o755), os.Symlink("..", filepath.Join(dir, "in/.ssh")))
		if s := look(t.Context(), dir); !strings.Contains(s.Unseen, "in/.ssh leads to a folder that contains it") {
			t.Errorf("Unseen = %q", s.Unseen)
		}
	})
	t.Run("the call is bound to it", func(t *testing.T) {
		files, s := []File{{Name: "a", Path: "/a", SHA256: "x"}}, Survey{Unseen: "why"}
		for _, tt := range []struct {
			code  string
			fails bool
		}{{"", true}, {BoundTo(files, ""), true}, {BoundTo(files, "other"), false}} {
			call, err := s.Decided(t.Context(), capability.Call{Code: tt.code}, sandbox.RequireLandlock)
			if tt.fails != (err != nil) || tt.fails && capability.KindOf(err) != capability.Conflict || !tt.fails && SameCode(call, files) != nil {
				t.Errorf("Decided(%q) = %v, fails: %t", tt.code, err, tt.fails)
			}
		}
		whole := Survey{}
		if _, err := whole.Decided(t.Context(), capability.Call{Code: BoundTo(files, "was so")}, sandbox.RequireLandlock); err != nil {
			t.Errorf("complete again: %v", err)
		}
	})
}

// TestPublicCertificates: the certificates that packages bring stay readable,
// and keys do not.
func TestPublicCertificates(t *testing.T) {
	const certificate = "# x\n-----BEGIN CERTIFICATE-----\n"
	dir := place(t, map[string]string{
		"venv/certifi/cacert.pem": certificate, "cacert.pem": certificate, "venv/both.pem": certificate + "-----BEGIN RSA PRIVATE KEY-----\n", "venv/other.pem": "x",
	})
	s := Look(t.Context(), pemGuards{}, dir, []Ground{{Dir: dir}}, nil)
	slices.Sort(s.Secret)
	if want := []string{filepath.Join(dir, "cacert.pem"), filepath.Join(dir, "venv/both.pem"), filepath.Join(dir, "venv/other.pem")}; !slices.Equal(s.Secret, want) {
		t.Errorf("Secret = %q, want %q", s.Secret, want)
	}
}

type pemGuards struct{ plainGuards }

func (pemGuards) Secret(name string) bool { return filepath.Ext(name) == ".pem" }
