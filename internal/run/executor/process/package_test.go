package process

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/testkit/executortest"
)

// TestPackage runs actions of a package as the catalog reads it from disk:
// described arguments, a template, a list, switches, and grep's status 1.
func TestPackage(t *testing.T) {
	executortest.Confined(t)
	dir := executortest.Dir(t)
	pkg := filepath.Join(dir, "tools.text")
	if err := os.Mkdir(pkg, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"manifest.json": `{"id":"tools.text","name":"Text","version":"1.0.0","description":"Text tools","permissions_required":["exec"],
			"capabilities":[{"type":"slash_command","name":"/text","description":"Text tools"}]}`,
		"commands.yaml": `slash_commands:
  - name: /text
    description: Text tools
    actions:
      - id: find
        description: Find a word in a text
        command: grep -c -e {word} /etc/os-release
        ok_status: [0, 1]
      - id: say
        description: Say words
        command: printf %s- {words...}
      - id: list
        description: Say words, and switches
        argv: [printf, "<%s>", $;|, "{loud}", "{quiet}", "--n={n}", "{word}", "{more...}"]
        args: [{name: word, required: false}, more]
        flags: [{name: loud, type: boolean, flag: --LOUD}, {name: quiet, type: boolean, default: true}, {name: n, type: integer, default: 3}]
`,
	} {
		if err := os.WriteFile(filepath.Join(pkg, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree := source.NewTree(source.TreeConfig{Path: pkg, Trust: capability.TrustUser})
	batch, err := tree.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Extensions: filepath.Join(dir, "extensions"), Lookup: func(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
		for _, c := range batch.Capabilities {
			if c.ID == id {
				d, err := tree.Detail(ctx, c)
				return c, d, err
			}
		}
		return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "look up", Target: string(id)}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, tt := range []struct{ id, args, out, status string }{
		{"command:text/find", `{"word":"no such word"}`, "0\n", "1"},
		{"command:text/list", `{}`, "<$;|><--quiet><--n=3>", "0"},
		{"command:text/list", `{"loud":true,"quiet":false,"n":4,"word":"$(id)","more":["a b"]}`, "<$;|><--LOUD><--n=4><$(id)><a b>", "0"},
		{"command:text/say", `{"words":["a b","c;d"]}`, "a b-c;d-", "0"},
	} {
		r, err := e.Invoke(t.Context(), executortest.Call(tt.id, tt.args))
		if err != nil || r.Failed || stdout(r) != tt.out || r.Meta["exit_code"] != tt.status || r.Meta["work_dir"] != "tools.text/work" {
			t.Errorf("Invoke(%s %s) = %+v, %v, want %q and status %s; problems %v", tt.id, tt.args, r, err, tt.out, tt.status, batch.Problems)
		}
	}
}
