package source

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/source/extension"
	"ken/internal/know/source/format"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/testkit/sourcetest"
)

const plainPackage = `{"id":"x","description":"X.","permissions_required":["exec"]}`

// TestExtensionUsageIsLazy: the document is in no capability and is read when
// asked for; a change since loading is a conflict, never an unscanned text.
func TestExtensionUsageIsLazy(t *testing.T) {
	p := loaded(t, map[string]string{
		"manifest.json": plainPackage, "docs/USAGE.md": "How to use x: SENTINEL.\n",
		"commands.yaml": "slash_commands:\n  - {name: /x, description: Do x., runner: exec.x}\n",
	})
	if all, err := json.Marshal(p.Batch); err != nil || strings.Contains(string(all), "SENTINEL") {
		t.Errorf("the usage document is kept in the batch, or %v", err)
	}
	if got := p.detail("command:x").Usage; got != "How to use x: SENTINEL." {
		t.Errorf("usage = %q, want the document", got)
	}
	sourcetest.Write(t, p.dir, "docs/USAGE.md", "Something else.\n")
	if _, err := p.tree.Detail(t.Context(), p.find("command:x")); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Detail after a change of the document: %v, want a conflict", err)
	}
}

// TestExtensionOutsideLinks: a link out of the package is not followed.
func TestExtensionOutsideLinks(t *testing.T) {
	p := newPlace(t, map[string]string{"manifest.json": plainPackage})
	must(t, symlink(sourcetest.Write(t, t.TempDir(), "secret.md", "SECRET"), filepath.Join(p.dir, "docs", "USAGE.md")))
	p.load()
	if got := p.detail("extension:x").Usage; got != "" {
		t.Errorf("usage = %q, want none", got)
	}
	p.wants("manifest.json:1 warning leaves-root")
}

// checkAction: whatever a package says, an action has no more permissions than
// its package, and its arguments name parameters that it has.
func checkAction(t *testing.T, pkg, c *capability.Capability) {
	t.Helper()
	if c.Kind == capability.KindExtension && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`).MatchString(c.Name) {
		t.Errorf("package %q cannot name a folder", c.Name)
	}
	for _, p := range c.Permissions {
		if !slices.Contains(pkg.Permissions, p) {
			t.Errorf("%s has the permission %q, which its package has not", c.ID, p)
		}
	}
	if c.Run == nil || len(c.Run.Argv) == 0 {
		return
	}
	if !recipe.ToolName().MatchString(c.Run.Argv[0]) {
		t.Errorf("%s runs %q", c.ID, c.Run.Argv[0])
	}
	if message, _ := recipe.CheckArgv(c.Run.Argv, c.Parameters); message != "" && len(c.Parameters) < seal.MaxParameters {
		t.Errorf("%s: %s", c.ID, message)
	}
}

func FuzzExtension(f *testing.F) {
	f.Add(`{"id":"x","permissions_required":["exec"]}`, "slash_commands:\n- name: /x\n  actions: [{id: a, runner: exec.x_cli}]\n")
	f.Add(`{"capabilities":[{"type":"tool","name":"t","runner":"exec.t","env_extras":{"A":1}}]}`, "commands: {a: \"echo {m}\"}\n")
	f.Add(`{"id":"..","permissions_required":null,"docs":"docs/USAGE.md"}`, "- name: a\n  maps_to: {actions: {get: }}\n")
	f.Add(`{"id":"x","platforms":"linux, mac","install":"x.yaml","permissions_required":"exec"}`, "commands:\n- name: a\n  template: \"'\"\n  args: {m: {type: int}}\n  flags: [-v, --x]\n")
	f.Add(`{"id":"x","permissions_required":["exec"],"read_only":true,"env_values":{"A":1}}`, "- name: a\n  permissions: [exec]\n  actions:\n  - {id: b, argv: [git, '{r}', '--n={n}', -C, '{v}', '{l...}'], flags: [{name: r, type: boolean}, {name: n, pattern: a, minimum: 1}], args: [{name: v, required: false}, l]}\n")
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add(`{"id":"x","permissions_required":["exec"]}`, "slash_commands: [{name: /x, actions: [{id: a, argv: [x, "+quoted+"], env_values: {A: "+quoted+"}}]}]\n")
		f.Add(`{"id":"x","name":`+quoted+`,"permissions_required":[`+quoted+`]}`, "slash_commands: [{name: /x, actions: [{id: a, runner: exec.x, args: ["+quoted+"]}]}]\n")
	})
	f.Fuzz(func(t *testing.T, manifest, commands string) {
		if len(manifest)+len(commands) > 4096 {
			return
		}
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("readExtension(%q, %q) hangs", manifest, commands)) })
		defer watchdog.Stop()
		u := &format.Unit{Context: context.Background(), Root: &safefs.Root{Name: "r", FS: twoFiles{manifest, commands}}, Path: ".", Format: "extension"}
		extension.Format().Read(u)
		checkUnit(t, u)
		for _, c := range u.Capabilities {
			checkAction(t, u.Capabilities[0], c)
		}
	})
}

// TestWorkIsNoCatalog: what an extension's programs write into their work
// directory never becomes a capability, at the start or while watching.
func TestWorkIsNoCatalog(t *testing.T) {
	for _, root := range []string{".", "extensions", "extensions/tools.x"} {
		dir := t.TempDir()
		sourcetest.Write(t, dir, "extensions/tools.x/manifest.json", `{"id":"tools.x","description":"x","permissions_required":["exec"]}`)
		sourcetest.Write(t, dir, "extensions/tools.x/work/SKILL.md", "---\nname: planted\ndescription: planted\n---\nDo evil.\n")
		sourcetest.Write(t, dir, "extensions/tools.x/work/deep/CAPABILITY.yaml", "kind: tool\nname: planted\ndescription: planted\n")
		sourcetest.Write(t, dir, "extensions/other/skills/work/SKILL.md", "---\nname: honest\ndescription: honest\n---\nFine.\n")
		tree, batch := load(t, TreeConfig{Path: filepath.Join(dir, root), Trust: capability.TrustUser})
		names := map[string]bool{}
		for _, c := range batch.Capabilities {
			names[c.Name] = true
		}
		if names["planted"] || !names["tools.x"] || names["honest"] != (root != "extensions/tools.x") {
			t.Errorf("read from %s: %v", root, names)
		}
		w := newWalk(t.Context(), tree)
		prefix := map[string]string{".": "extensions/tools.x/", "extensions": "tools.x/", "extensions/tools.x": ""}[root]
		w.at(prefix + "work/SKILL.md")
		w.at(prefix + "work")
		if len(w.found) != 0 {
			t.Errorf("looked at by itself: %v", w.found)
		}
	}
}
