package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/testkit/executortest"
)

// TestOwnProgram: a package's program runs from the user's extensions only, with
// the files that were read, and cannot change them.
func TestOwnProgram(t *testing.T) {
	executortest.Confined(t)
	dir := executortest.Dir(t)
	extensions := filepath.Join(dir, "extensions")
	write := func(pkg, name, text string, mode os.FileMode) {
		t.Helper()
		p := filepath.Join(pkg, name)
		executortest.Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		executortest.Must(t, os.WriteFile(p, []byte(text), mode), os.Chmod(p, mode))
	}
	fill := func(pkg string) {
		write(pkg, "manifest.json", `{"id":"tests.own","description":"d","permissions_required":["exec","filesystem.write"]}`, 0o644)
		write(pkg, "commands.yaml", `slash_commands:
  - name: /own
    actions:
      - {id: call, description: d, handler: bin/show, args: [{name: word, required: true}]}
      - {id: argv, description: d, argv: [say, '{word}'], args: [{name: word, required: true}]}
      - {id: change, description: d, argv: [change]}
`, 0o644)
		write(pkg, "bin/show", "#!/bin/sh\ncat\n", 0o755)
		write(pkg, "bin/say", "#!/bin/sh\necho \"said $1\"\n", 0o755)
		write(pkg, "tools/change", "#!/bin/sh\necho more >> \"$0\"\n", 0o755)
	}
	open := func(pkg string, trust capability.Trust) *Executor {
		t.Helper()
		tree := source.NewTree(source.TreeConfig{Path: pkg, Trust: trust})
		batch, err := tree.Load(t.Context())
		if err != nil || len(batch.Problems) > 0 {
			t.Fatal(err, batch.Problems)
		}
		e, err := New(Config{Extensions: extensions, Lookup: func(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			for _, c := range batch.Capabilities {
				if c.ID == id {
					d, err := tree.Detail(ctx, c)
					return c, d, err
				}
			}
			return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "look up", Target: string(id)}
		}})
		executortest.Must(t, err)
		t.Cleanup(func() { e.Close() })
		return e
	}
	denied := func(e *Executor, want string) {
		t.Helper()
		_, err := e.Invoke(t.Context(), executortest.Call("command:own/argv", `{"word":"x"}`))
		if capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want denied: %s", err, want)
		}
	}

	pkg := filepath.Join(extensions, "tests.own")
	fill(pkg)
	e := open(pkg, capability.TrustUser)
	r, err := e.Invoke(t.Context(), executortest.Call("command:own/call", `{"word":"a \"b\""}`))
	if err != nil || r.Failed || string(r.Parts[0].JSON) != `{"action":"call","arguments":{"word":"a \"b\""}}` {
		t.Errorf("handler: %+v, %v", r, err)
	}
	r, err = e.Invoke(t.Context(), executortest.Call("command:own/argv", `{"word":"$(id)"}`))
	if err != nil || r.Failed || stdout(r) != "said $(id)\n" || r.Meta["program"] != filepath.Join(pkg, "bin", "say") {
		t.Errorf("program: %+v, %v", r, err)
	}
	before, _ := os.ReadFile(filepath.Join(pkg, "tools", "change"))
	if r, err := e.Invoke(t.Context(), executortest.Call("command:own/change", `{}`)); err != nil || !r.Failed {
		t.Errorf("a program that changes itself: %+v, %v", r, err)
	}
	if after, _ := os.ReadFile(filepath.Join(pkg, "tools", "change")); string(after) != string(before) {
		t.Error("a program changed its package")
	}

	// The catalog has not noticed: the executor has.
	write(pkg, "lib/more", "x", 0o644)
	denied(e, "changed since they were read")
	executortest.Must(t, os.RemoveAll(filepath.Join(pkg, "lib")))
	write(pkg, "work/written", "x", 0o644)
	if r, err := e.Invoke(t.Context(), executortest.Call("command:own/argv", `{"word":"x"}`)); err != nil || r.Failed {
		t.Errorf("with what it wrote itself: %+v, %v", r, err)
	}
	write(pkg, "bin/say", "#!/bin/sh\necho other\n", 0o755)
	denied(e, "changed since they were read")

	elsewhere := filepath.Join(dir, "elsewhere")
	fill(elsewhere)
	denied(open(elsewhere, capability.TrustUser), "runs only from")
	inWork := filepath.Join(pkg, "work", "made")
	fill(inWork)
	denied(open(inWork, capability.TrustUser), "runs only from")
	fill(pkg)
	denied(open(pkg, capability.TrustWorkspace), "runs only from")
}
