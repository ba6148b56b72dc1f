package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
)

func TestSeedsManifestVerbatim(t *testing.T) {
	p := loaded(t, map[string]string{
		"my-custom-tool/CAPABILITY.yaml": seed(t, "CAPABILITY.yaml"),
		"my-custom-tool/SKILL.md":        "---\nname: my-custom-tool\n---\n\nHow to search.\n",
	})
	p.clean()
	got := *p.one("tool:my-custom-tool")
	want := capability.Capability{
		ID: "tool:my-custom-tool", Kind: capability.KindTool, Name: "my-custom-tool", DisplayName: "My Custom Tool",
		Description: "Searches a proprietary API for internal documents", Category: "information",
		Tags: []string{"search", "internal", "documents"}, RequiredSecrets: []string{"INTERNAL_API_KEY"},
		Parameters: []capability.Parameter{{Name: "query", Type: "string"}},
		Effects:    capability.Effects{ReadOnly: capability.Yes},
		Origin: capability.Origin{
			Source: p.dir, Format: "manifest", Location: capability.Local,
			Path: filepath.Join(p.dir, "my-custom-tool", "CAPABILITY.yaml"), Line: 1,
		},
		Trust: capability.TrustUser, Hash: got.Hash,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	d := p.detail("tool:my-custom-tool")
	if d.Body != "How to search." {
		t.Errorf("body = %q, want SKILL.md without frontmatter", d.Body)
	}
	if got := string(d.Schema); got != `{"type":"object","properties":{"query":{"type":"string"}}}` {
		t.Errorf("schema = %s, want the flow-style one", got)
	}
	if got.HasSideEffects() {
		t.Error("HasSideEffects() = true, want what the manifest says")
	}
}

func TestManifestReadsTheOtherFields(t *testing.T) {
	p := loaded(t, map[string]string{"x/CAPABILITY.yml": `kind: tool
name: x
description: >
  Does x
  well.
version: 2.10
aliases: [ex]
requiredTools: [tool:y]
requiredBins: [git]
requiredPlatforms: [linux]
permissions: [exec]
hasSideEffects: true
migrations:
  - {from: "1", to: "2.10", note: renamed}
inputSchema:
  type: object
  properties:
    path: {type: string, description: Where}
    files: {type: array, items: {type: string}}
  required: [path]
example: {path: .}
run:
  runner: exec.git
  argv: [git, -C, "{path}", "--pretty=format:%h; | && $(x)", "--dir={path}", "{files...}", "{ literal }"]
  action: status
  timeoutSec: 5
  maxOutputSize: 1000
  env: [HOME]
`})
	p.clean()
	c := p.one("tool:x")
	if c.Category != "custom" || c.Version != "2.10" || c.Description != "Does x well." || c.Effects.ReadOnly != capability.No {
		t.Errorf("category %q, version %q, description %q, effects %v", c.Category, c.Version, c.Description, c.Effects)
	}
	lists := [][]string{c.Aliases, c.RequiredTools, c.RequiredBins, c.RequiredPlatforms, c.Permissions}
	if diff := cmp.Diff([][]string{{"ex"}, {"tool:y"}, {"git"}, {"linux"}, {"exec"}}, lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	wantRun := &capability.Recipe{
		Runner: "exec.git", Argv: []string{"git", "-C", "{path}", "--pretty=format:%h; | && $(x)", "--dir={path}", "{files...}", "{ literal }"},
		Action: "status", TimeoutSec: 5, MaxOutputSize: 1000, Env: []string{"HOME"},
	}
	if diff := cmp.Diff(wantRun, c.Run); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if !slices.Equal(c.Migrations, []capability.Migration{{From: "1", To: "2.10", Note: "renamed"}}) || c.Meta["example"] != `{"path":"."}` {
		t.Errorf("migrations %v, meta %v", c.Migrations, c.Meta)
	}
	if len(c.Parameters) != 2 || !c.Parameters[0].Required || c.Parameters[0].Description != "Where" {
		t.Errorf("parameters = %+v", c.Parameters)
	}
}

func TestManifestSaysNothingOfEffects(t *testing.T) {
	p := loaded(t, map[string]string{"x/CAPABILITY.yaml": "kind: tool\nname: x\ndescription: d\n"})
	c := p.one("tool:x")
	if c.Effects.ReadOnly != capability.Unsaid || !c.HasSideEffects() {
		t.Errorf("effects = %+v, want nothing said and side effects assumed", c.Effects)
	}
}

func TestManifestFaults(t *testing.T) {
	head := "kind: tool\nname: x\ndescription: d\n"
	schema := "inputSchema: {type: object, properties: {path: {type: string}, files: {type: array}}}\n"
	tests := []struct{ name, text, want string }{
		{"empty", "", "bad/CAPABILITY.yaml:1 error missing-key: description, kind, name are missing"},
		{"no name", "kind: tool\ndescription: d\n", "bad/CAPABILITY.yaml:1 error missing-key: name is missing"},
		{"no kind", "name: x\ndescription: d\n", "bad/CAPABILITY.yaml:1 error missing-key: kind is missing"},
		{"empty description", "name: x\nkind: tool\ndescription: ''\n", "bad/CAPABILITY.yaml:3 error missing-key: description is missing"},
		{"misspelt keys", "nme: x\nkind: tool\ndescripton: d\n", "bad/CAPABILITY.yaml:1 error missing-key: description, name are missing; did you mean name instead of nme (line 1)? did you mean description instead of descripton (line 3)? a manifest needs name, kind and description"},
		{"name of two lines", "kind: tool\nname: \"a\\nb\"\ndescription: d\n", "bad/CAPABILITY.yaml:2 error bad-id: name \"a\\nb\" holds"},
		{"bad YAML", head + "tags: [a\n", "bad/CAPABILITY.yaml:4 error bad-manifest"},
		{"list", "- a\n", "bad/CAPABILITY.yaml:1 error bad-manifest: the document is a list"},
		{"schema as a list", head + "inputSchema: [a]\n", "bad/CAPABILITY.yaml:4 error bad-schema: inputSchema is a list, want a map such as {type: object"},
		{"schema as other text", head + "inputSchema: nope\n", "bad/CAPABILITY.yaml:4 error bad-schema: inputSchema is text, want a map such as {type: object, properties: {…}}"},
		{"schema as broken JSON", head + "inputSchema: '{a'\n", "bad/CAPABILITY.yaml:4 error bad-schema: inputSchema: "},
		{"run as text", head + "run: git status\n", "bad/CAPABILITY.yaml:4 error bad-recipe: run is not a recipe with a runner and its arguments; write run: {runner: exec.git, argv: [git, status]}"},
		{"run as a list", head + "run: [ls]\n", "bad/CAPABILITY.yaml:4 error bad-recipe: run is not a recipe with a runner and its arguments; write run: {runner: exec.git, argv: [git, status]}"},
		{"parameter in code", head + schema + "run:\n  runner: exec.sh\n  argv: [sh, -c, \"ls {path}\"]\n", "bad/CAPABILITY.yaml:7 error placeholder-in-code: argv[2]: a parameter inside code is read as code; pass it as an argument of its own"},
		{"no runner", head + "run:\n  argv: [ls]\n", "bad/CAPABILITY.yaml:5 error bad-recipe: run has no runner"},
		{"runner", head + "run:\n  runner: Exec git\n", "bad/CAPABILITY.yaml:5 error bad-recipe: runner \"Exec git\" is not a name"},
		{"unknown parameter", head + schema + "run:\n  runner: exec.ls\n  argv: [ls, \"{pth}\"]\n", "bad/CAPABILITY.yaml:7 error bad-recipe: argv[1]: {pth} stands for a parameter that the schema does not have; did you mean {path}?"},
		{"parameter without schema", head + "run:\n  runner: exec.ls\n  argv: [ls, \"{path}\"]\n", "bad/CAPABILITY.yaml:6 error bad-recipe: argv[1]: {path} stands for"},
		{"list inside an argument", head + schema + "run:\n  runner: exec.ls\n  argv: [ls, \"x{files...}\"]\n", "bad/CAPABILITY.yaml:7 error bad-recipe: argv[1]: the list {files...}"},
		{"list of what is none", head + schema + "run:\n  runner: exec.ls\n  argv: [ls, \"{path...}\"]\n", "bad/CAPABILITY.yaml:7 error bad-recipe: argv[1]: {path...} wants a list"},
		{"one of what is a list", head + schema + "run:\n  runner: exec.ls\n  argv: [ls, \"{files}\"]\n", "bad/CAPABILITY.yaml:7 error bad-recipe: argv[1]: {files} is one argument"},
		{"program as parameter", head + schema + "run:\n  runner: exec.ls\n  argv: [\"{path}\"]\n", "bad/CAPABILITY.yaml:7 error bad-recipe: argv[0]: the program"},
		{"argv as text", head + "run:\n  runner: exec.ls\n  argv: ls -l\n", "bad/CAPABILITY.yaml:6 error bad-recipe: run.argv is text"},
		{"timeout", head + "run:\n  runner: exec.ls\n  timeoutSec: -1\n", "bad/CAPABILITY.yaml:6 error bad-recipe: timeoutSec -1"},
		{"timeout as text", head + "run:\n  runner: exec.ls\n  timeoutSec: soon\n", "bad/CAPABILITY.yaml:6 error bad-recipe: run.timeoutSec is text"},
		{"output", head + "run:\n  runner: exec.ls\n  maxOutputSize: -1\n", "bad/CAPABILITY.yaml:6 error bad-recipe: maxOutputSize -1"},
		{"environment", head + "run:\n  runner: exec.ls\n  env: [\"A=b\"]\n", "bad/CAPABILITY.yaml:6 error bad-recipe: \"A=b\" cannot name a variable"},
		{"method", head + "run:\n  runner: api.rest\n  method: fetch\n", "bad/CAPABILITY.yaml:6 error bad-recipe: method \"FETCH\""},
		{"address", head + "run:\n  runner: api.rest\n  url: file:///etc/passwd\n", "bad/CAPABILITY.yaml:6 error bad-recipe: url \"file:///etc/passwd\""},
		{"host as parameter", head + schema + "run:\n  runner: api.rest\n  url: https://{path}/x\n", "bad/CAPABILITY.yaml:7 error bad-recipe: url"},
		{"traversal", head + "skillContent: ../../../../etc/hostname\n", "bad/CAPABILITY.yaml:4 error leaves-root: Path traversal detected"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"bad/CAPABILITY.yaml": tt.text, "good/CAPABILITY.yaml": "kind: tool\nname: good\ndescription: d\n"})
			p.one("tool:good")
			p.wants(tt.want)
			if n := len(p.Problems); n != 1 {
				t.Errorf("%d problems, want one:\n%s", n, p.list())
			}
			if p.Problems[0].Fix == "" {
				t.Errorf("%s: no fix", p.Problems[0])
			}
		})
	}
}

func TestManifestWarnings(t *testing.T) {
	head := "kind: tool\nname: x\ndescription: d\n"
	tests := []struct {
		name, text string
		id         capability.ID
		want       string
	}{
		{"unknown kind", "kind: gadget\nname: x\ndescription: d\n", "gadget:x", "x/CAPABILITY.yaml:1 warning unknown-kind: kind gadget is none of the usual ones"},
		{"kind in capitals", "kind: Tool\nname: x\ndescription: d\n", "tool:x", "x/CAPABILITY.yaml:1 warning unknown-kind: kind Tool is read as tool"},
		{"unknown key", head + "colour: red\n", "tool:x", "x/CAPABILITY.yaml:4 warning unknown-key: manifest has no key colour"},
		{"key with a slip", "kind: tool\nname: x\ndescription: d\ncategry: red\n", "tool:x", "x/CAPABILITY.yaml:4 warning unknown-key: manifest has no key categry; it is kept as metadata; did you mean category?"},
		{"unknown runner", head + "run:\n  runner: exce.ls\n  argv: [ls]\n", "tool:x", "x/CAPABILITY.yaml:5 warning unknown-runner: no runner of Ken is called exce.ls; did you mean exec.ls?"},
		{"no permission", head + "run:\n  runner: exec.ls\n  argv: [ls]\n", "tool:x", "x/CAPABILITY.yaml:5 warning missing-permission: runner exec.ls needs the permission exec"},
		{"part of an argument", head + "permissions: [exec]\ninputSchema: {type: object, properties: {a: {type: string}}}\nrun:\n  runner: exec.ls\n  argv: [ls, \"--out={a}\"]\n", "tool:x", ""},
		{"unknown key of run", head + "permissions: [exec]\nrun:\n  runner: exec.ls\n  shell: true\n", "tool:x", "x/CAPABILITY.yaml:7 warning unknown-key: run has no key shell"},
		{"missing text", head + "skillContent: ./gone.md\n", "tool:x", "x/CAPABILITY.yaml:4 warning missing-file: skillContent ./gone.md is not read"},
		{"wrong type", head + "hasSideEffects: maybe\n", "tool:x", "x/CAPABILITY.yaml:4 warning bad-value: hasSideEffects is text"},
		{"permission", head + "permissions: [exce]\n", "tool:x", "x/CAPABILITY.yaml:4 warning unknown-permission"},
		{"id of its own", "id: my/own id\n" + head, "my/own id", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"x/CAPABILITY.yaml": tt.text})
			p.one(tt.id)
			if tt.want == "" {
				p.clean()
				return
			}
			p.wants(tt.want)
			if n := len(p.Problems); n != 1 {
				t.Errorf("%d problems, want one:\n%s", n, p.list())
			}
		})
	}
	p := loaded(t, map[string]string{"x/CAPABILITY.yaml": "kind: gadget\nname: x\ndescription: d\n"})
	for _, k := range capability.Kinds() {
		p.wants("x/CAPABILITY.yaml:1 warning unknown-kind", string(k))
	}
}

func TestManifestOfBothEndings(t *testing.T) {
	p := loaded(t, map[string]string{
		"x/CAPABILITY.yaml": "kind: tool\nname: yaml\ndescription: d\n",
		"x/CAPABILITY.yml":  "kind: tool\nname: yml\ndescription: d\n",
	})
	p.one("tool:yaml")
	p.wants("x/CAPABILITY.yml warning two-files: CAPABILITY.yaml stands beside it")
}

func TestManifestSchemas(t *testing.T) {
	head := "kind: tool\nname: x\ndescription: d\n"
	inline := "inputSchema: {type: object, properties: {inline: {type: string}}}\n"
	file := "\ufeff{\n  \"type\": \"object\",\n  \"properties\": {\"file\": {\"type\": \"string\"}}\n}\n"
	tests := []struct{ name, manifest, schema, want, problem string }{
		{"inline", head + inline, "", `{"type":"object","properties":{"inline":{"type":"string"}}}`, ""},
		{"as text", head + "inputSchema: '{\"type\": \"object\"}'\n", "", `{"type":"object"}`, ""},
		{"file", head, file, `{"type":"object","properties":{"file":{"type":"string"}}}`, ""},
		{"both", head + inline, file, `{"type":"object","properties":{"file":{"type":"string"}}}`, "x/CAPABILITY.yaml:4 warning two-schemas"},
		{"both the same", head + "inputSchema: {type: object}\n", `{"type": "object"}`, `{"type":"object"}`, ""},
		{"neither", head, "", "", ""},
		{"file that is no object", head, "[]", "!", "x/schema.json:1 error bad-schema: schema.json: a schema is a JSON object"},
		{"file that says a key twice", head, "{\n\"a\": 1,\n\"a\": 2}", "!", "x/schema.json:3 error bad-schema: schema.json: key \"a\" appears twice"},
		{"file that ends early", head, "{\n\"a\":", "!", "x/schema.json:2 error bad-schema: schema.json: the JSON text ends"},
		{"empty file", head, " ", "!", "x/schema.json:1 error bad-schema"},
		{"file nested too deep", head, strings.Repeat(`{"a":`, 5000), "!", "x/schema.json:1 error bad-schema: schema.json: nested deeper"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"x/CAPABILITY.yaml": tt.manifest}
			if tt.schema != "" {
				files["x/schema.json"] = tt.schema
			}
			p := loaded(t, files)
			if tt.problem != "" {
				p.wants(tt.problem)
			} else {
				p.clean()
			}
			if tt.want == "!" {
				if len(p.Capabilities) != 0 {
					t.Errorf("%d capabilities, want none", len(p.Capabilities))
				}
				return
			}
			if got := string(p.detail("tool:x").Schema); got != tt.want {
				t.Errorf("schema = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestManifestBodies(t *testing.T) {
	head := "kind: skill\nname: x\ndescription: d\n"
	skill := "---\nname: x\n---\nFrom SKILL.md.\n"
	tests := []struct{ name, manifest, Content string }{
		{"SKILL.md unasked", head, "From SKILL.md."},
		{"named", head + "skillContent: ./docs/more.md\n", "From more."},
		{"in the manifest itself", head + "skillContent: |\n  Line one.\n  Line two.\n", "Line one.\nLine two."},
	}
	for _, tt := range tests {
		p := loaded(t, map[string]string{"x/CAPABILITY.yaml": tt.manifest, "x/SKILL.md": skill, "x/docs/more.md": "From more.\n"})
		p.clean()
		p.one("skill:x") // the folder is one unit, and SKILL.md is not a second capability
		if got := p.detail("skill:x").Body; got != tt.Content {
			t.Errorf("%s: body = %q, want %q", tt.name, got, tt.Content)
		}
	}
}

func TestManifestTextIsScanned(t *testing.T) {
	p := loaded(t, map[string]string{"x/CAPABILITY.yaml": "kind: tool\nname: x\ndescription: d\n", "x/SKILL.md": override + "\n"})
	if c := p.one("tool:x"); !slices.ContainsFunc(c.Findings, func(f capability.Finding) bool { return f.Field == "body" }) {
		t.Errorf("findings = %v, want one in the body", c.Findings)
	}
}

// Everything in the starter's folders of these formats reads without a word.
func TestStarterFormatsReadCleanly(t *testing.T) {
	for _, folder := range []string{"tools", "commands", "skills"} {
		dir := filepath.Join("starter", folder)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			continue
		}
		// Under its own name, so that commands/ is still seen as such.
		tree := t.TempDir()
		if err := os.CopyFS(filepath.Join(tree, folder), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		_, b := load(t, TreeConfig{Path: tree, Trust: capability.TrustUser})
		if len(b.Capabilities) != len(entries) {
			t.Errorf("%s: %d capabilities, want %d", folder, len(b.Capabilities), len(entries))
		}
		for _, problem := range b.Problems {
			t.Errorf("%s: %s", folder, fmt.Sprint(problem))
		}
	}
}
