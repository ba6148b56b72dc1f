package review_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/know/source"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

var (
	ctx = context.Background()
	pia = capability.Principal{ID: "pia", Tenant: "acme", Roles: []string{"operator"}}
)

func yes(why string) review.Word {
	return review.Word{By: pia, Origin: capability.ByPerson, Why: why}
}

// A pack is an extension package in a folder.
type pack struct{ manifest, commands, usage string }

func gitPack() pack {
	return pack{
		manifest: `{"id":"tools.git","name":"Git","version":"1.2","description":"Look at repositories.",
			"permissions_required":["exec"],"external_bins":["git"],"platforms":["linux"],"docs":{"usage":"docs/USAGE.md"}}`,
		commands: `slash_commands:
- name: /git
  summary: Look at a repository
  env_extras: [GIT_DIR]
  timeout_sec: 30
  actions:
  - {id: log, description: Show the log., template: "git log {rev}"}
  - {id: sync, description: Fetch., template: "git fetch", ok_status: [0, 1], workspace: read, hosts: [git.example.com], colour: red}
`,
		usage: "# Use\nLike git.\n",
	}
}

func (p pack) write(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{"manifest.json": p.manifest, "commands/commands.yaml": p.commands, "docs/USAGE.md": p.usage} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		testkit.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		testkit.OK(t, os.WriteFile(file, []byte(text), 0o644))
	}
}

// load reads a folder as the program does.
func load(t testing.TB, dir string, trust capability.Trust) (*source.Tree, []*capability.Capability) {
	t.Helper()
	tree := source.NewTree(source.TreeConfig{Name: "here", Path: dir, Trust: trust})
	b := testkit.Must(tree.Load(ctx))(t)
	return tree, b.Capabilities
}

// manifest reads the one package in a folder, with its texts.
func manifest(t testing.TB, dir string, trust capability.Trust) *review.Manifest {
	t.Helper()
	tree, list := load(t, dir, trust)
	b := review.NewBook(list)
	if n := len(b.Manifests()); n != 1 || b.Problems() != nil {
		t.Fatalf("NewBook has %d manifests and problems %v, want one and none", n, b.Problems())
	}
	m := b.Manifests()[0]
	details := map[capability.ID]capability.Detail{}
	for _, c := range append([]*capability.Capability{m.Package}, m.Actions...) {
		d := testkit.Must(tree.Detail(ctx, c))(t)
		details[c.ID] = d
	}
	return m.With(details)
}

func gitManifest(t testing.TB) *review.Manifest {
	t.Helper()
	dir := t.TempDir()
	gitPack().write(t, dir)
	return manifest(t, dir, capability.TrustUser)
}

// small returns a package with one action.
func small() (*review.Manifest, *review.Book, *capability.Capability) {
	x, a := base()
	m := made(review.Of(x, []*capability.Capability{a}))
	return m, bookOf(m), a
}

func disable(t testing.TB, d *review.Desk, m *review.Manifest, w review.Word) {
	t.Helper()
	testkit.Must(d.Disable(ctx, m.Key(), w))(t)
}

func bookOf(m *review.Manifest) *review.Book {
	return review.NewBook(append([]*capability.Capability{m.Package}, m.Actions...))
}

func newDesk(t testing.TB, s *store.Store, c review.Config) *review.Desk {
	t.Helper()
	return testkit.Must(review.New(s, c))(t)
}

func anyDesk(t testing.TB) *review.Desk {
	return newDesk(t, storetest.Open(t, storetest.SQLite(t)), review.Config{})
}

func status(t testing.TB, d *review.Desk, m *review.Manifest) review.Status {
	t.Helper()
	return testkit.Must(d.Status(ctx, pia.Tenant, m))(t)
}

// enable does what a person does: look, then agree.
func enable(t testing.TB, d *review.Desk, m *review.Manifest) review.Switch {
	t.Helper()
	return testkit.Must(d.Enable(ctx, m, status(t, d, m).Shown, yes("")))(t)
}

func texts(list []review.Difference) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.String())
	}
	return out
}

func wantKind(t *testing.T, err error, kind capability.ErrorKind, is error, parts ...string) {
	t.Helper()
	if err == nil || capability.KindOf(err) != kind || is != nil && !errors.Is(err, is) {
		t.Fatalf("error = %v (%v), want kind %v and %v", err, capability.KindOf(err), kind, is)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error = %q, want %q in it", err, part)
		}
	}
}

// twin returns a deep copy, so that a test can change it.
func twin(t testing.TB, c *capability.Capability) *capability.Capability {
	t.Helper()
	raw := testkit.Must(json.Marshal(c))(t)
	var out capability.Capability
	testkit.OK(t, json.Unmarshal(raw, &out))
	return &out
}
