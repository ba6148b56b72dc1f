package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// TestExtensionOwnPrograms: handlers and programs of a package are bound to all of
// its files, and only packages of the user run them.
func TestExtensionOwnPrograms(t *testing.T) {
	for _, tt := range []struct {
		name, action string
		trust        capability.Trust
		program      string
		runner       string
		bins         string
		unavailable  string
		problem      string // the action is lost
	}{
		{"python", "handler: h.py", capability.TrustUser, "h.py", "exec.python3", "python3", "", ""},
		{"node", "handler: lib/h.mjs", capability.TrustUser, "lib/h.mjs", "exec.node", "node", "", ""},
		{"program", "handler: bin/greet", capability.TrustUser, "bin/greet", "exec.greet", "", "", ""},
		{"argv", "argv: [greet, '{name}']", capability.TrustUser, "bin/greet", "exec.greet", "", "", ""},
		{"tools before bin", "argv: [both]", capability.TrustUser, "tools/both", "exec.both", "", "", ""},
		{"another", "argv: [grep, '{name}']", capability.TrustUser, "", "exec.grep", "grep", "", ""},
		{"project", "handler: h.py", capability.TrustWorkspace, "h.py", "exec.python3", "python3", "ken add", ""},
		{"missing", "handler: none.py", capability.TrustUser, "", "", "", "", "is not there"},
		{"outside", "handler: ../h.py", capability.TrustUser, "", "", "", "", "not a file of the package"},
		{"absolute", "handler: /bin/sh", capability.TrustUser, "", "", "", "", "not a file of the package"},
		{"link", "handler: link.py", capability.TrustUser, "", "", "", "", "is not there"},
		{"written", "handler: work/h.py", capability.TrustUser, "", "", "", "", "not a file of the package"},
		{"not executable", "handler: bin/plain", capability.TrustUser, "", "", "", "", "not executable"},
		{"two", "handler: h.py\n        argv: [greet, '{name}']", capability.TrustUser, "", "", "", "", "a handler and a command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "x/manifest.json", `{"id": "x", "description": "d", "permissions_required": ["exec"]}`)
			sourcetest.Write(t, dir, "x/commands.yaml", "slash_commands:\n  - name: /x\n    actions:\n      - id: a\n        description: d\n        args: [{name: name, required: false}]\n        "+tt.action+"\n")
			for _, name := range []string{"x/h.py", "x/lib/h.mjs", "x/bin/greet", "x/bin/both", "x/tools/both", "x/bin/plain", "x/work/h.py", "h.py"} {
				p := sourcetest.Write(t, dir, name, "text")
				if !strings.HasSuffix(name, "plain") {
					must(t, os.Chmod(p, 0o755))
				}
			}
			if tt.name == "link" {
				if err := os.Symlink("h.py", filepath.Join(dir, "x", "link.py")); err != nil {
					t.Skip("cannot here: ", err)
				}
			}
			_, b := load(t, TreeConfig{Path: dir, Trust: tt.trust})
			if tt.problem != "" {
				if len(b.Capabilities) != 1 || len(b.Problems) == 0 || !strings.Contains(b.Problems[0].Message, tt.problem) {
					t.Fatalf("got %s, problems %v", sourcetest.IDs(b), b.Problems)
				}
				return
			}
			if sourcetest.IDs(b) != "extension:x command:x/a" {
				t.Fatalf("got %s, problems %v", sourcetest.IDs(b), b.Problems)
			}
			c := b.Capabilities[1]
			if c.Run.Program != tt.program || c.Run.Runner != tt.runner || strings.Join(c.RequiredBins, " ") != tt.bins {
				t.Errorf("run %+v, programs %v", c.Run, c.RequiredBins)
			}
			if (c.Run.PackageSHA256 != "") != (tt.program != "") || (c.Run.Input == "json") != strings.Contains(tt.action, "handler") {
				t.Errorf("run %+v", c.Run)
			}
			if !strings.Contains(c.Unavailable, tt.unavailable) || tt.unavailable == "" && c.Unavailable != "" {
				t.Errorf("unavailable %q", c.Unavailable)
			}
		})
	}
}
