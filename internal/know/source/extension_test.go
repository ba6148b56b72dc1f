package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/know/source/extension"
	"ken/internal/know/source/format"
	"ken/internal/know/source/recipe"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/testkit/sourcetest"
)

// packageProblems returns problems as "file:line code", files relative to dir.
func packageProblems(dir string, b capability.Batch) []string {
	var out []string
	for _, p := range b.Problems {
		rel, err := filepath.Rel(dir, p.Origin.Path)
		if err != nil {
			rel = p.Origin.Path
		}
		out = append(out, fmt.Sprintf("%s:%d %s %s", filepath.ToSlash(rel), p.Origin.Line, p.Severity, p.Code))
	}
	return out
}

func capabilityByID(t *testing.T, b capability.Batch, id capability.ID) *capability.Capability {
	t.Helper()
	for _, c := range b.Capabilities {
		if c.ID == id {
			return c
		}
	}
	var ids []capability.ID
	for _, c := range b.Capabilities {
		ids = append(ids, c.ID)
	}
	t.Fatalf("no capability %s among %q; problems %v", id, ids, b.Problems)
	return nil
}

// extensionFolder writes a package of a manifest and a commands.yaml.
func extensionFolder(t *testing.T, manifest, commands string) string {
	t.Helper()
	dir := t.TempDir()
	sourcetest.Write(t, dir, "manifest.json", manifest)
	if commands != "" {
		sourcetest.Write(t, dir, "commands.yaml", commands)
	}
	return dir
}

// TestExtensionPostman is the seed's example: "/postman get URL" belongs to
// tools.postman, its action is get, and exec.postman_cli runs it.
func TestExtensionPostman(t *testing.T) {
	dir := filepath.Join("testdata", "extension", "postman")
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	ctx := context.Background()

	x := capabilityByID(t, b, "extension:tools.postman")
	if x.Kind != capability.KindExtension || x.Name != "tools.postman" || x.DisplayName != "Postman" || x.Version != "1.2.0" {
		t.Errorf("package = %s %q %q %q", x.Kind, x.Name, x.DisplayName, x.Version)
	}
	if diff := cmp.Diff([]string{"exec", "network"}, x.Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"postman"}, x.RequiredBins); diff != "" {
		t.Errorf("programs of the package (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"linux", "darwin"}, x.RequiredPlatforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if got, want := x.Meta["install"], `{"plan":"install/plan.yaml"}`; got != want {
		t.Errorf("Meta[install] = %s, want %s", got, want)
	}

	get := capabilityByID(t, b, "command:postman/get")
	want := &capability.Capability{
		ID: "command:postman/get", Kind: capability.KindCommand, Name: "postman get", Category: "general",
		Description: "Send a GET request and show the answer.", Aliases: []string{"/postman"},
		Parameters:    []capability.Parameter{{Name: "args", Type: "array", Description: "Arguments, one item each"}},
		RequiredTools: []string{"extension:tools.postman"}, RequiredBins: []string{"postman"},
		RequiredPlatforms: []string{"linux", "darwin"}, Permissions: []string{"exec", "network"},
		Run: &capability.Recipe{
			Runner: "exec.postman_cli", Action: "get", TimeoutSec: 60, MaxOutputSize: 65536, Env: []string{"POSTMAN_API_KEY"},
		},
		Meta:   map[string]string{"allowed_commands": `["postman"]`, "default_action": "get"},
		Origin: capability.Origin{Source: dir, Format: "extension", Location: capability.Local, Path: filepath.Join(dir, "commands", "commands.yaml"), Line: 10},
		Trust:  capability.TrustUser, Hash: get.Hash,
	}
	if diff := cmp.Diff(want, get); diff != "" {
		t.Errorf("the action get (-want +got):\n%s", diff)
	}
	d, err := tree.Detail(ctx, get)
	if err != nil || !strings.Contains(d.Usage, "sends one GET request") || !strings.Contains(d.Body, "/postman get https://api.example.com") {
		t.Errorf("Detail(get) = %+v, %v, want usage and examples", d, err)
	}

	run := capabilityByID(t, b, "command:postman/run")
	d, err = tree.Detail(ctx, run)
	wantSchema := `{"type":"object","properties":{` +
		`"collection":{"type":"string","description":"File with the collection","x-ken-position":1},` +
		`"bail":{"type":"boolean","description":"Stop at the first failure","x-ken-flag":"--bail"},` +
		`"iterations":{"type":"integer","x-ken-flag":"--iterations"}},"required":["collection"],"additionalProperties":false}`
	if err != nil || string(d.Schema) != wantSchema {
		t.Errorf("Detail(run).Schema = %s, %v, want %s", d.Schema, err, wantSchema)
	}
	if run.Run.Runner != "exec.postman_cli" || run.Run.TimeoutSec != 60 {
		t.Errorf("run = %+v, want what the manifest says of /postman", run.Run)
	}

	lint := capabilityByID(t, b, "tool:postman_lint")
	if lint.Kind != capability.KindTool || lint.Run.Runner != "exec.postman_tool" || lint.RequiredBins[0] != "postman" {
		t.Errorf("tool = %s %+v %q", lint.Kind, lint.Run, lint.RequiredBins)
	}
	if diff := cmp.Diff([]string{"commands/commands.yaml:26 error bad-action"}, packageProblems(dir, b)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestExtensionUsageIsLazy: the document is in no capability and is read when
// asked for; a change since loading is a conflict, never an unscanned text.
func TestExtensionUsageIsLazy(t *testing.T) {
	dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["exec"]}`, "slash_commands:\n  - {name: /x, description: Do x., runner: exec.x}\n")
	usage := sourcetest.Write(t, dir, "docs/USAGE.md", "How to use x: SENTINEL.\n")
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	all, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), "SENTINEL") {
		t.Error("the usage document is kept in the batch")
	}
	c := capabilityByID(t, b, "command:x")
	if d, err := tree.Detail(context.Background(), c); err != nil || d.Usage != "How to use x: SENTINEL." {
		t.Errorf("Detail = %q, %v, want the usage document", d.Usage, err)
	}
	sourcetest.Write(t, dir, "docs/USAGE.md", "Something else.\n")
	if _, err := tree.Detail(context.Background(), c); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Detail after a change of %s: %v, want a conflict", usage, err)
	}
}

func TestExtensionAccepts(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  int // capabilities of this format, or -1 for a fault
	}{
		{"permissions", map[string]string{"manifest.json": `{"id":"a","permissions_required":[]}`}, 1},
		{"camel case", map[string]string{"manifest.json": `{"id":"a","permissionsRequired":[]}`}, 1},
		{"permissions are null", map[string]string{"manifest.json": `{"id":"a","permissions_required":null}`}, 1},
		{"a tool", map[string]string{"manifest.json": `{"id":"a","capabilities":[{"type":"tool","name":"t","runner":"exec.t"}]}`}, 2},
		{"a command", map[string]string{"manifest.json": `{"id":"a","capabilities":[{"type":"slash_command","name":"/t","runner":"exec.t"}]}`}, 2},
		{"commands.yaml beside", map[string]string{"manifest.json": `{"id":"a"}`, "commands.yaml": "slash_commands: []\n"}, 1},
		{"commands/commands.yaml", map[string]string{"manifest.json": `{"id":"a"}`, "commands/commands.yaml": "slash_commands: []\n"}, 1},
		{"web page", map[string]string{"manifest.json": `{"name":"App","short_name":"A","start_url":"/","display":"standalone","icons":[]}`}, 0},
		{"browser add-on", map[string]string{"manifest.json": `{"manifest_version":3,"name":"A","permissions":["tabs"],"commands":{}}`}, 0},
		{"other capabilities", map[string]string{"manifest.json": `{"name":"A","capabilities":{"type":"tool"}}`}, 0},
		{"broken, and ours", map[string]string{"manifest.json": "{\"id\":\"a\",\n\"permissions_required\":[\"exec\"\n"}, -1},
		{"broken, of others", map[string]string{"manifest.json": "{\"name\":\"a\",\n\"icons\":[\n"}, 0},
		{"not an object", map[string]string{"manifest.json": `["a"]`, "commands.yaml": "commands: {}\n"}, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				sourcetest.Write(t, dir, "pkg/"+name, text)
			}
			_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			n := 0
			for _, c := range b.Capabilities {
				if c.Origin.Format == "extension" {
					n++
				}
			}
			for _, p := range b.Problems {
				if p.Origin.Format == "extension" && p.Severity == capability.Grave {
					n = -1
				}
			}
			if n != tt.want {
				t.Errorf("capabilities = %d, want %d; problems %v", n, tt.want, b.Problems)
			}
		})
	}
}

func TestExtensionPermissions(t *testing.T) {
	tests := []struct {
		in, want string
		warnings int
	}{
		{`["exec","network","filesystem.read","filesystem.write","browser","llm"]`, "exec network filesystem.read filesystem.write browser llm", 0},
		{`["exec_shell","fs_read","fs_write","net","http"]`, "exec filesystem.read filesystem.write network", 0},
		{`["exec","exec_shell"]`, "exec", 0},
		{`[]`, "", 0},
		{`["netwrok"]`, "netwrok", 1},
		{`["root"]`, "root", 1},
	}
	for _, tt := range tests {
		dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":`+tt.in+`}`, "")
		_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
		c := capabilityByID(t, b, "extension:x")
		if got := strings.Join(c.Permissions, " "); got != tt.want || len(b.Problems) != tt.warnings {
			t.Errorf("permissions %s = %q with problems %v, want %q and %d", tt.in, got, b.Problems, tt.want, tt.warnings)
		}
	}
	dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["netwrok"]}`, "")
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if got := b.Problems[0].String(); !strings.Contains(got, "did you mean network?") {
		t.Errorf("problem = %q, want the nearest permission", got)
	}
}

// TestExtensionNoPermissions: none declared means none, and the author hears
// that calls will be refused.
func TestExtensionNoPermissions(t *testing.T) {
	dir := extensionFolder(t, `{"id":"x","description":"X."}`, "slash_commands:\n- name: /x\n  description: Do x.\n  actions: [{id: a, runner: exec.x}, {id: b, runner: exec.x}]\n")
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if c := capabilityByID(t, b, "command:x/a"); len(c.Permissions) != 0 {
		t.Errorf("permissions = %q, want none", c.Permissions)
	}
	if diff := cmp.Diff([]string{"commands.yaml:4 warning missing-permission"}, packageProblems(dir, b)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestExtensionTools(t *testing.T) {
	tests := []struct {
		runner, tool string // as the action says them
		want, bin    string // runner and program, or a code in want
	}{
		{"exec.postman_cli", "", "exec.postman_cli", "postman"},
		{"exec.postman_tool", "", "exec.postman_tool", "postman"},
		{"exec.git", "", "exec.git", "git"},
		{"exec.aws_client", "", "exec.aws_client", "aws_client"},
		{"exec.my_toolbox", "", "exec.my_toolbox", "my_toolbox"},
		{"exec.my_tool_cli", "", "exec.my_tool_cli", "my_tool"},
		{"exec.postman_cli", "newman", "exec.newman", "newman"},
		{"exec.postman_cli", "postman", "exec.postman_cli", "postman"},
		{"", "newman", "exec.newman", "newman"},
		{"", "gh_cli", "exec.gh_cli_cli", "gh_cli"},
		{"analyze.response", "", "analyze.response", ""},
		{"exec.../../bin/sh", "", "bad-runner", ""},
		{"exec./bin/sh", "", "bad-runner", ""},
		{"exec.", "", "bad-runner", ""},
		{"exec._cli", "", "bad-runner", ""},
		{"exec...", "", "bad-runner", ""},
		{"exec.sh -c", "", "bad-runner", ""},
		{"exec.git", "../git", "bad-runner", ""},
		{"exec.git", "SUDO", "bad-runner", ""},
		{"", "", "no-runner", ""},
	}
	for _, tt := range tests {
		commands := fmt.Sprintf("slash_commands:\n- name: /x\n  description: Do x.\n  runner: %q\n  tool: %q\n", tt.runner, tt.tool)
		dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["exec","llm"]}`, commands)
		_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
		got, bin := "", ""
		for _, p := range b.Problems {
			got += p.Code
		}
		for _, c := range b.Capabilities {
			if c.ID == "command:x" && c.Run != nil {
				got, bin = got+c.Run.Runner, strings.Join(c.RequiredBins, " ")
				if program, ok := recipe.ToolOf(c.Run.Runner); ok && program != bin {
					t.Errorf("toolOf(%s) = %s, want %s", c.Run.Runner, program, bin)
				}
			}
		}
		if got != tt.want || bin != tt.bin {
			t.Errorf("runner %q tool %q: %q %q, want %q %q", tt.runner, tt.tool, got, bin, tt.want, tt.bin)
		}
	}
}

// TestExtensionDefaultAction checks that an action cannot make itself the default
// with a key of the command.
func TestExtensionDefaultAction(t *testing.T) {
	const commands = "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  actions:\n  - {id: show, default_action: wipe}\n  - {id: wipe}\n"
	_, b := load(t, TreeConfig{Path: extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["exec"]}`, commands), Trust: capability.TrustUser})
	if got := capabilityByID(t, b, "command:a/show").Meta["default_action"]; got != "" {
		t.Errorf("the default action is %q, want none", got)
	}
}

func TestExtensionLegacyCommands(t *testing.T) {
	const commands = `
commands:
  say:
    description: Print a message.
    template: "echo {message}"
    args:
      message: What to print
  hello: "echo hello"
  git:
    description: Look at a repository.
    default_action: log
    actions:
      log: "git log --max-count={count} -- {paths...}"
      bad: "git log | head"
`
	dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["exec"]}`, commands)
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	say := capabilityByID(t, b, "command:say")
	if diff := cmp.Diff(&capability.Recipe{Runner: "exec.echo", Argv: []string{"echo", "{message}"}}, say.Run); diff != "" {
		t.Errorf("say (-want +got):\n%s", diff)
	}
	wantParameters := []capability.Parameter{{Name: "message", Type: "string", Description: "What to print", Required: true}}
	if diff := cmp.Diff(wantParameters, say.Parameters); diff != "" {
		t.Errorf("parameters of say (-want +got):\n%s", diff)
	}
	log := capabilityByID(t, b, "command:git/log")
	if diff := cmp.Diff([]string{"git", "log", "--max-count={count}", "--", "{paths...}"}, log.Run.Argv); diff != "" {
		t.Errorf("git log (-want +got):\n%s", diff)
	}
	if log.Meta["default_action"] != "log" || log.Run.Action != "log" || log.RequiredBins[0] != "git" {
		t.Errorf("git log = %+v %v %q", log.Run, log.Meta, log.RequiredBins)
	}
	d, err := tree.Detail(context.Background(), log)
	want := `{"type":"object","properties":{"count":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`
	if err != nil || string(d.Schema) != want {
		t.Errorf("schema of git log = %s, %v, want %s", d.Schema, err, want)
	}
	if diff := cmp.Diff([]string{
		"commands.yaml:8 warning no-description",
		"commands.yaml:14 error bad-template",
	}, packageProblems(dir, b)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := b.Problems[1].String(); !strings.Contains(got, "position 9: | is not allowed in a template") {
		t.Errorf("problem = %q, want the position of the pipe", got)
	}
}

// TestExtensionProblems: what is wrong costs only itself, and is named by file
// and line.
func TestExtensionProblems(t *testing.T) {
	const ok = `{"id":"x","description":"X.","permissions_required":["exec"]}`
	tests := []struct {
		name, manifest, commands string
		ids                      string // of capabilities that are there all the same
		problems                 []string
	}{
		{"broken manifest", "{\n\"id\": \"x\",\n\"permissions_required\": [,\n}", "", "", []string{"manifest.json:3 error bad-manifest"}},
		{"duplicate key", "{\"id\":\"x\",\n\"id\":\"y\",\"permissions_required\":[]}", "", "", []string{"manifest.json:2 error bad-manifest"}},
		{"id leaves its folder", `{"id":"../x","permissions_required":[]}`, "", "", []string{"manifest.json:1 error bad-id"}},
		{"id with a control character", `{"id":"x\u0007","permissions_required":[]}`, "", "", []string{"manifest.json:1 error bad-id"}},
		{"unknown type", "{\"id\":\"x\",\"description\":\"X.\",\"capabilities\":[\n{\"type\":\"hook\",\"name\":\"h\"},\n{\"type\":\"tool\",\"name\":\"t\",\"description\":\"T.\",\"runner\":\"exec.t\"}],\"permissions_required\":[\"exec\"]}", "",
			"extension:x tool:t", []string{"manifest.json:2 error unknown-type"}},
		{"unknown key is kept", `{"id":"x","description":"X.","permissions_required":[],"homepage":"https://x.example"}`, "", "extension:x", []string{"manifest.json:1 warning unknown-key"}},
		{"install leaves the package", `{"id":"x","description":"X.","permissions_required":[],"install":{"plan":"../plan.yaml"}}`, "", "extension:x", []string{"manifest.json:1 warning leaves-root"}},
		{"usage leaves the package", `{"id":"x","description":"X.","permissions_required":[],"docs":{"usage":"../../etc/passwd"}}`, "", "extension:x", []string{"manifest.json:1 warning leaves-root"}},
		{"usage is not there", `{"id":"x","description":"X.","permissions_required":[],"docs":{"usage":"docs/none.md"}}`, "", "extension:x", []string{"manifest.json:1 warning missing-file"}},
		{"platform", `{"id":"x","description":"X.","permissions_required":[],"platforms":["amiga"]}`, "", "extension:x", []string{"manifest.json:1 warning unknown-platform"}},
		{"broken commands", ok, "slash_commands:\n  - name: /a\n   actions: []\n", "extension:x", []string{"commands.yaml:3 error bad-commands"}},
		{"command is a list", ok, "slash_commands:\n  - [a]\n  - {name: /b, description: B., runner: exec.b}\n", "extension:x command:b", []string{"commands.yaml:2 error bad-entry"}},
		{"command without a name", ok, "slash_commands:\n  - description: A.\n    runner: exec.a\n", "extension:x", []string{"commands.yaml:2 error no-name"}},
		{"command of two words", ok, "slash_commands:\n  - {name: /a b, description: A., runner: exec.a}\n", "extension:x", []string{"commands.yaml:2 error bad-name"}},
		{"action id", ok, "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  actions:\n  - {id: ok}\n  - {id: \"-x\"}\n  - {id: \"a b\"}\n  - [1]\n", "extension:x command:a/ok",
			[]string{"commands.yaml:7 error bad-action", "commands.yaml:8 error bad-action", "commands.yaml:9 error bad-action"}},
		{"default action", ok, "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  default_action: gte\n  actions: [get]\n", "extension:x command:a/get", []string{"commands.yaml:5 warning unknown-action"}},
		{"template with a shell", ok, "commands:\n  a:\n    description: A.\n    template: echo $(id)\n", "extension:x", []string{"commands.yaml:4 error bad-template"}},
		{"template of a path", ok, "commands:\n  a:\n    description: A.\n    template: /bin/echo {m}\n", "extension:x", []string{"commands.yaml:4 error bad-tool"}},
		{"argument without a place", ok, "commands:\n  a:\n    description: A.\n    template: echo {m}\n    args: [m, n]\n", "extension:x command:a", []string{"commands.yaml:2 warning unused-argument"}},
		{"bad argument", ok, "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  args: [{name: \"a b\"}, {name: b, type: colour}]\n", "extension:x command:a", []string{"commands.yaml:5 warning bad-value", "commands.yaml:5 warning bad-value"}},
		{"timeout", ok, "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  timeout_sec: -1\n", "extension:x command:a", []string{"commands.yaml:5 warning bad-value"}},
		{"env", ok, "slash_commands:\n- name: /a\n  description: A.\n  runner: exec.a\n  env_extras: [A_B, \"A=b\"]\n", "extension:x command:a", []string{"commands.yaml:5 warning bad-value"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := extensionFolder(t, tt.manifest, tt.commands)
			_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			var ids []string
			for _, c := range b.Capabilities {
				ids = append(ids, string(c.ID))
			}
			if got := strings.Join(ids, " "); got != tt.ids {
				t.Errorf("capabilities = %q, want %q", got, tt.ids)
			}
			if diff := cmp.Diff(tt.problems, packageProblems(dir, b)); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", diff, b.Problems)
			}
			for _, p := range b.Problems {
				if p.Fix == "" && p.Code != "unknown-key" {
					t.Errorf("problem %v says nothing about the fix", p)
				}
			}
		})
	}
}

// TestExtensionOutsideLinks: a link out of the package is not followed.
func TestExtensionOutsideLinks(t *testing.T) {
	outside := sourcetest.Write(t, t.TempDir(), "secret.md", "SECRET")
	dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":[]}`, "")
	if err := symlink(outside, filepath.Join(dir, "docs", "USAGE.md")); err != nil {
		t.Skipf("cannot here: no symbolic links: %v", err)
	}
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	d, err := tree.Detail(context.Background(), capabilityByID(t, b, "extension:x"))
	if err != nil || d.Usage != "" {
		t.Errorf("Detail = %q, %v, want no usage", d.Usage, err)
	}
	if diff := cmp.Diff([]string{"manifest.json:1 warning leaves-root"}, packageProblems(dir, b)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
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
		put := func(name, text string) {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		put("extensions/tools.x/manifest.json", `{"id":"tools.x","description":"x","permissions_required":["exec"]}`)
		put("extensions/tools.x/work/SKILL.md", "---\nname: planted\ndescription: planted\n---\nDo evil.\n")
		put("extensions/tools.x/work/deep/CAPABILITY.yaml", "kind: tool\nname: planted\ndescription: planted\n")
		put("extensions/other/skills/work/SKILL.md", "---\nname: honest\ndescription: honest\n---\nFine.\n")
		tree := NewTree(TreeConfig{Path: filepath.Join(dir, root), Trust: capability.TrustUser})
		batch, err := tree.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
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
