package source

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/know/source/extension"
	"ken/internal/know/source/recipe"
)

const plainManifest = `{"id":"x","description":"X.","permissions_required":["exec","network","filesystem.read"]}`

// actionOf reads a package whose command /x has the one action a, given as the
// lines of its map.
func actionOf(t *testing.T, manifest, action string) (c *capability.Capability, schema string, problems []string, b capability.Batch) {
	t.Helper()
	lines := strings.ReplaceAll(strings.TrimSpace(action), "\n", "\n    ")
	dir := extensionFolder(t, manifest, "slash_commands:\n- name: /x\n  description: Do x.\n  actions:\n  - id: a\n    "+lines+"\n")
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	for _, found := range b.Capabilities {
		if found.ID == "command:x/a" {
			c = found
			d, err := tree.Detail(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			schema = string(d.Schema)
		}
	}
	return c, schema, packageProblems(dir, b), b
}

// TestExtensionArgv: a command as a list, in which nothing is a shell's.
func TestExtensionArgv(t *testing.T) {
	tests := []struct {
		name, action string
		argv         []string // nil where the action is refused
		required     string
		problem      string // code, or empty
		message      string
	}{
		{name: "plain", action: `argv: [git, log, "--max-count={count}", --, "{paths...}"]`, argv: []string{"git", "log", "--max-count={count}", "--", "{paths...}"}},
		{name: "value alone", action: `argv: [wc, --, "{path}"]`, argv: []string{"wc", "--", "{path}"}, required: "path"},
		{name: "shell's characters", action: `argv: [jq, '.[] | select(.a > $x; 1) & {b: 1} | "\(.a)"', "<{file}>"]`, argv: []string{"jq", `.[] | select(.a > $x; 1) & {b: 1} | "\(.a)"`, "<{file}>"}, required: "file"},
		{name: "numbers and words of YAML", action: `argv: [head, -n, 5, true, 0x10, "", -1]`, argv: []string{"head", "-n", "5", "true", "0x10", "", "-1"}},
		{name: "several lines", action: "argv: [\"jq\", \"a\\n\\tb\"]", argv: []string{"jq", "a\n\tb"}},
		{name: "block list", action: "argv:\n- git\n- status", argv: []string{"git", "status"}},
		{name: "runner that agrees", action: "runner: exec.git\nargv: [git, status]", argv: []string{"git", "status"}},
		{name: "with a schema", action: "argv: [wc, \"{path}\"]\ninput_schema: {type: object, properties: {path: {type: string}}, required: [path]}", argv: []string{"wc", "{path}"}, required: "path"},

		{name: "template too", action: "command: git status\nargv: [git, status]", problem: "two-commands", message: "keep argv"},
		{name: "text", action: "argv: git status", problem: "bad-argv", message: "is text, not a list"},
		{name: "number", action: "argv: 5", problem: "bad-argv", message: "not a list"},
		{name: "empty", action: "argv: []", problem: "bad-argv", message: "no program"},
		{name: "map in it", action: "argv: [git, {repo: x}]", problem: "bad-argv", message: `argv[1] of x a: it is a map`},
		{name: "unquoted placeholder", action: "argv: [git, {repo}]", problem: "bad-argv", message: `as in "{name}"`},
		{name: "control character", action: `argv: [git, "a\0b"]`, problem: "bad-argv", message: "U+0000"},
		{name: "too many", action: "argv: [git" + strings.Repeat(", a", 256) + "]", problem: "bad-argv", message: "more than 256"},
		{name: "too long", action: "argv: [git, " + strings.Repeat("a", extension.MaxTemplate) + "]", problem: "bad-argv", message: "bytes"},
		{name: "path as a program", action: "argv: [/bin/sh, a]", problem: "bad-tool", message: "plain name"},
		{name: "program is a parameter", action: `argv: ["{p}", a]`, problem: "bad-tool", message: "plain name"},
		{name: "part of a list", action: `argv: [git, "x{p...}"]`, problem: "bad-recipe", message: "only a part of an argument"},
		{name: "value and list", action: `argv: [git, "{p}", "{p...}"]`, problem: "bad-argv", message: "one value in one place"},
		{name: "unknown to the schema", action: "argv: [wc, \"{pat}\"]\ninput_schema: {type: object, properties: {path: {type: string}}}", problem: "bad-recipe", message: "did you mean {path}?"},
		{name: "unknown to the schema, template", action: "command: wc {pat}\ninput_schema: {type: object, properties: {path: {type: string}}}", problem: "bad-recipe", message: "did you mean {path}?"},
		{name: "unknown to the arguments", action: "argv: [jq, \"{file}\", \"{name}\"]\nargs: [file]", problem: "bad-recipe", message: "{name} stands for a parameter"},
		{name: "list for one value", action: "argv: [wc, \"{path}\"]\ninput_schema: {type: object, properties: {path: {type: array}}}", problem: "bad-recipe", message: "the schema says array"},
		{name: "code", action: `argv: [bash, -c, "echo {x}"]`, problem: "placeholder-in-code", message: "argv[2]"},
		{name: "code, template", action: `command: python3 -c {x}`, problem: "placeholder-in-code", message: "argv[2]"},
		{name: "awk's braces", action: `argv: [awk, "{print}", "{file}"]`, problem: "placeholder-in-code", message: "argv[1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, problems, b := actionOf(t, plainManifest, tt.action)
			if tt.argv == nil {
				if c != nil || len(problems) != 1 || !strings.HasSuffix(problems[0], "error "+tt.problem) || !strings.Contains(b.Problems[0].String(), tt.message) {
					t.Fatalf("capability %v, problems %v, want the fault %s with %q", c, b.Problems, tt.problem, tt.message)
				}
				return
			}
			if c == nil || len(problems) > 0 {
				t.Fatalf("capability %v, problems %v", c, b.Problems)
			}
			var required []string
			for _, p := range c.Parameters {
				if p.Required {
					required = append(required, p.Name)
				}
			}
			if diff := cmp.Diff(tt.argv, c.Run.Argv); diff != "" || strings.Join(required, " ") != tt.required {
				t.Errorf("required %q, want %q; argv (-want +got):\n%s", required, tt.required, diff)
			}
			if want := []string{tt.argv[0]}; !cmp.Equal(c.RequiredBins, want) || c.Run.Runner != "exec."+tt.argv[0] || c.Run.Action != "a" {
				t.Errorf("programs %q, runner %s, want %q", c.RequiredBins, c.Run.Runner, want)
			}
		})
	}
}

// TestExtensionArgvElsewhere: a command without actions and a tool of the
// manifest give their command the same way, and a fault names the line of the
// argument.
func TestExtensionArgvElsewhere(t *testing.T) {
	dir := extensionFolder(t, `{"id":"x","description":"X.","permissions_required":["exec"],"capabilities":[
{"type":"tool","name":"t","description":"T.","argv":["wc","{file}"]},
{"type":"slash_command","name":"/alone","description":"A.","argv":["git","status"]}]}`,
		"slash_commands:\n- name: /x\n  description: Do x.\n  argv:\n  - sort\n  - '{files...}'\n- name: /y\n  description: Do y.\n  argv:\n  - sort\n  - {}\n")
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	for id, want := range map[capability.ID]string{"tool:t": "wc {file}", "command:alone": "git status", "command:x": "sort {files...}"} {
		if got := strings.Join(capabilityByID(t, b, id).Run.Argv, " "); got != want {
			t.Errorf("argv of %s = %s, want %s", id, got, want)
		}
	}
	if diff := cmp.Diff([]string{"commands.yaml:11 error bad-argv"}, packageProblems(dir, b)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestExtensionArguments: what is said of an argument reaches the schema, in a
// template as in a list.
func TestExtensionArguments(t *testing.T) {
	tests := []struct{ name, action, want string }{
		{"default", "argv: [git, -C, \"{repo}\"]\nargs: [{name: repo, default: \".\"}]",
			`{"repo":{"type":"string","default":"."}}`},
		{"default in a template", "command: git -C {repo}\nargs: [{name: repo, default: \".\"}]",
			`{"repo":{"type":"string","default":"."}}`},
		{"required by its place", "argv: [git, show, \"{rev}\", \"./{dir}\"]",
			`{"rev":{"type":"string"},"dir":{"type":"string"}},"required":["rev","dir"]`},
		{"not required", "argv: [git, show, \"{rev}\"]\nargs: [{name: rev, required: false}]",
			`{"rev":{"type":"string"}}`},
		{"option", "argv: [git, \"--author={author}\", \"-n{count}\"]",
			`{"author":{"type":"string"},"count":{"type":"string"}}`},
		{"option that is required", "argv: [git, \"--author={author}\"]\nargs: [{name: author, required: true}]",
			`{"author":{"type":"string"}},"required":["author"]`},
		{"option and elsewhere", "argv: [git, \"--author={a}\", \"by-{a}\"]",
			`{"a":{"type":"string"}},"required":["a"]`},
		{"list", "argv: [git, \"{q...}\"]\nargs: [{name: q, required: true, choices: [a, b], min_length: 1, max_items: 9}]",
			`{"q":{"type":"array","items":{"type":"string","enum":["a","b"],"minLength":1},"maxItems":9}},"required":["q"]`},
		{"order of typing", "argv: [cp, \"{to}\", \"{from}\"]\nargs: [from, to]",
			`{"from":{"type":"string"},"to":{"type":"string"}},"required":["from","to"]`},
		{"flags", "argv: [sort, \"{reverse}\", \"--key={key}\", --, \"{files...}\"]\nargs: [files]\nflags: [{name: reverse, type: boolean}, {name: -k, type: int, minimum: 1}]",
			""},
		{"switch", "argv: [sort, \"{reverse}\", \"{u}\", --, \"{files...}\"]\nargs: [{name: files}, {name: u, type: bool, flag: --unique}]\nflags: [{name: reverse, type: switch}]",
			`{"files":{"type":"array","items":{"type":"string"},"x-ken-position":1},"u":{"type":"boolean","x-ken-flag":"--unique"},"reverse":{"type":"boolean","x-ken-flag":"--reverse"}}`},
		{"typed as a flag, given otherwise", "command: git -C {repo} log -n{count} {rev}\nargs: [{name: rev, required: false}]\nflags: [{name: repo, default: \".\"}, {name: count, type: integer, default: 20, minimum: 1, maximum: 1000}]",
			`{"rev":{"type":"string","x-ken-position":1},"repo":{"type":"string","default":".","x-ken-flag":"--repo"},"count":{"type":"integer","minimum":1,"maximum":1000,"default":20,"x-ken-flag":"--count"}}`},
		{"as in docs/sources.md", `argv: [git, log, "{reverse}", "--max-count={count}", "--author={author}", --end-of-options, "{revision}", --, "{paths...}"]
args:
  - { name: revision, required: false, description: "Branch, tag or commit" }
  - { name: paths, max_items: 200, description: Only commits that touch these }
flags:
  - { name: count, type: integer, default: 20, minimum: 1, maximum: 1000 }
  - { name: author, min_length: 1 }
  - { name: reverse, type: boolean }
read_only: true
permissions: [exec, filesystem.read]`,
			`{"revision":{"type":"string","description":"Branch, tag or commit","x-ken-position":1},` +
				`"paths":{"type":"array","items":{"type":"string"},"maxItems":200,"description":"Only commits that touch these","x-ken-position":2},` +
				`"count":{"type":"integer","minimum":1,"maximum":1000,"default":20,"x-ken-flag":"--count"},` +
				`"author":{"type":"string","minLength":1,"x-ken-flag":"--author"},"reverse":{"type":"boolean","x-ken-flag":"--reverse"}}`},
		{"bounds", "argv: [x, \"{a}\"]\nargs: {a: {pattern: '^[a-z]+$', minLength: 1, max-length: 9, description: Word}}",
			`{"a":{"type":"string","description":"Word","pattern":"^[a-z]+$","minLength":1,"maxLength":9}},"required":["a"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, schema, problems, b := actionOf(t, plainManifest, tt.action)
			if tt.want == "" {
				if c != nil || len(problems) == 0 {
					t.Errorf("schema %s, problems %v, want a fault", schema, b.Problems)
				}
				return
			}
			want := `{"type":"object","properties":` + tt.want + `,"additionalProperties":false}`
			if schema != want {
				t.Errorf("schema = %s, want %s; problems %v", schema, want, b.Problems)
			}
			for _, p := range problems {
				if !strings.HasSuffix(p, "loose-option") {
					t.Errorf("problem %s", p)
				}
			}
		})
	}
}

// TestExtensionPlaces: what would do something else than it seems to is said.
func TestExtensionPlaces(t *testing.T) {
	tests := []struct {
		name, action, code string
		lost               bool
	}{
		{"boolean without a flag", "argv: [x, \"{v}\"]\nargs: [{name: v, type: boolean}]", "no-flag", false},
		{"boolean in an option", "argv: [x, \"--v={v}\"]\nargs: [{name: v, type: boolean}]", "", false},
		{"switch without a dash", "argv: [x, \"{v}\"]\ninput_schema: {type: object, properties: {v: {type: boolean, x-ken-flag: v}}}", "bad-recipe", true},
		{"flag of two words", "argv: [x, \"{v}\"]\nargs: [{name: v, type: boolean, flag: \"--v --w\"}]", "bad-value", true},
		{"option that may lose its value", "argv: [git, -C, \"{repo}\", status]\nargs: [{name: repo, required: false}]", "loose-option", false},
		{"option with a default", "argv: [git, -C, \"{repo}\", status]\nargs: [{name: repo, default: .}]", "", false},
		{"behind --", "argv: [git, log, --, \"{rev}\"]\nargs: [{name: rev, required: false}]", "", false},
		{"behind --end-of-options", "argv: [git, log, --end-of-options, \"{rev}\"]\nargs: [{name: rev, required: false}]", "", false},
		{"behind an option with its value", "argv: [git, log, --n=3, \"{rev}\"]\nargs: [{name: rev, required: false}]", "", false},
		{"switch that opens code", "argv: [bash, \"{c}\", \"{script}\"]\nargs: [script, {name: c, type: boolean, flag: -c}]", "placeholder-in-code", true},
		{"code behind a switch", "argv: [bash, -c, \"{x}\", \"{v}\"]\nargs: [v, {name: x, type: boolean, flag: -x}]", "placeholder-in-code", true},
		{"code when a value is left out", "argv: [bash, \"{script}\", -c, \"{v}\"]\nargs: [v, {name: script, required: false}]", "placeholder-in-code", true},
		{"code when a switch is on", "argv: [bash, \"{o}\", posix, -c, \"{v}\"]\nargs: [v, {name: o, type: boolean, flag: -o}]", "placeholder-in-code", true},
		{"harmless switch", "argv: [bash, \"{x}\", script.sh, \"{v}\"]\nargs: [v, {name: x, type: boolean, flag: -x}]", "", false},
		{"pattern", "argv: [x, \"{v}\"]\nargs: [{name: v, pattern: \"[\"}]", "bad-bound", true},
		{"empty pattern", "argv: [x, \"{v}\"]\nargs: [{name: v, pattern: \"\"}]", "bad-bound", true},
		{"length", "argv: [x, \"{v}\"]\nargs: [{name: v, max_length: -1}]", "bad-bound", true},
		{"minimum", "argv: [x, \"{v}\"]\nargs: [{name: v, minimum: much}]", "bad-bound", true},
		{"bound of an argument without a template", "runner: exec.x\nargs: [{name: v, maximum: much}]", "bad-bound", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, _, b := actionOf(t, plainManifest, tt.action)
			got := ""
			if len(b.Problems) > 0 {
				got = b.Problems[0].Code
				if b.Problems[0].Fix == "" || b.Problems[0].Origin.Line == 0 {
					t.Errorf("problem %v has no line or no fix", b.Problems[0])
				}
			}
			if got != tt.code || (c == nil) != tt.lost {
				t.Errorf("problems %v and lost %v, want %q and %v", b.Problems, c == nil, tt.code, tt.lost)
			}
		})
	}
}

// TestExtensionEffects: an action's words stand before its command's, and those
// before the package's.
func TestExtensionEffects(t *testing.T) {
	manifest := func(more string) string {
		return `{"id":"x","description":"X.","permissions_required":["exec","filesystem.write"]` + more + `}`
	}
	tests := []struct {
		name, manifest, action string
		want                   string // read-only, destructive, idempotent
		code                   string
	}{
		{"nothing said", "", "", "---", ""},
		{"read-only", "", "read_only: true", "y--", ""},
		{"not read-only", "", "readOnly: false", "n--", ""},
		{"no side effects", "", "hasSideEffects: false", "y--", ""},
		{"side effects", "", "has_side_effects: true", "n--", ""},
		{"the rest", "", "destructive: true\nidempotent: false", "-yn", ""},
		{"the package's", `,"readOnly":true,"idempotent":true`, "", "y-y", ""},
		{"the action's first", `,"read_only":true,"idempotent":true`, "read_only: false", "n-y", ""},
		{"destructive after all", `,"readOnly":true`, "destructive: true", "ny-", ""},
		{"both at once", "", "readOnly: true\ndestructive: true", "ny-", "bad-value"},
		{"two words", "", "readOnly: true\nhasSideEffects: true", "n--", "bad-value"},
		{"two words, the other way", "", "readOnly: false\nhasSideEffects: false", "n--", "bad-value"},
		{"two that agree", "", "readOnly: true\nhasSideEffects: false", "y--", ""},
		{"writes", `,"readOnly":true`, "workspace: write", "n--", "contradiction"},
		{"no boolean", "", "readOnly: maybe", "---", "bad-value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, _, b := actionOf(t, manifest(tt.manifest), "runner: exec.x\n"+tt.action)
			got := ""
			for _, h := range []capability.Hint{c.Effects.ReadOnly, c.Effects.Destructive, c.Effects.Idempotent} {
				got += map[capability.Hint]string{capability.Unsaid: "-", capability.Yes: "y", capability.No: "n"}[h]
			}
			code := ""
			if len(b.Problems) > 0 {
				code = b.Problems[0].Code
			}
			if got != tt.want || code != tt.code || c.Effects.OpenWorld != capability.Unsaid {
				t.Errorf("effects = %s, problems %v, want %s and %q", got, b.Problems, tt.want, tt.code)
			}
		})
	}
}

// TestExtensionActionPermissions: an action may have less than its package.
func TestExtensionActionPermissions(t *testing.T) {
	tests := []struct {
		name, action, want string
		code, message      string
	}{
		{"the package's", "", "exec network filesystem.read", "", ""},
		{"fewer", "permissions: [exec, fs_read]", "exec filesystem.read", "", ""},
		{"one word", "permissions: exec", "exec", "", ""},
		{"other key", "permissions_required: [exec]", "exec", "", ""},
		{"none", "permissions: []", "", "missing-permission", "add exec to these permissions"},
		{"not what it needs", "permissions: [network]", "network", "missing-permission", "exec.x needs the permission exec"},
		{"more", "permissions: [exec, filesystem.write]", "lost", "wider-permissions", "x a asks for filesystem.write, which its package does not"},
		{"unknown word", "permissions: [exec, root]", "lost", "unknown-permission", "root"},
		{"no list", "permissions: {exec: true}", "", "missing-permission", "exec"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, _, b := actionOf(t, plainManifest, "runner: exec.x\n"+tt.action)
			got, code, message := "lost", "", ""
			if c != nil {
				got = strings.Join(c.Permissions, " ")
			}
			if len(b.Problems) > 0 {
				code, message = b.Problems[0].Code, b.Problems[0].String()
				if line := b.Problems[0].Origin.Line; line != 7 {
					t.Errorf("%v: line %d, want 7", b.Problems[0], line)
				}
			}
			if got != tt.want || code != tt.code || !strings.Contains(message, tt.message) {
				t.Errorf("permissions = %q, problems %v, want %q, %q and %q", got, b.Problems, tt.want, tt.code, tt.message)
			}
		})
	}
	dir := extensionFolder(t, plainManifest, "slash_commands:\n- name: /x\n  description: X.\n  runner: exec.x\n  permissions: [exec]\n  actions:\n  - {id: a}\n  - {id: b, permissions: [exec, network]}\n")
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	for id, want := range map[capability.ID]string{"command:x/a": "exec", "command:x/b": "exec network", "extension:x": "exec network filesystem.read"} {
		if got := strings.Join(capabilityByID(t, b, id).Permissions, " "); got != want {
			t.Errorf("permissions of %s = %q, want %q", id, got, want)
		}
	}
}

// TestExtensionID: an id names a folder and stands in commands that people
// copy.
func TestExtensionID(t *testing.T) {
	for _, id := range []string{"x", "tools.postman", "7zip", "A-b_c.d", strings.Repeat("a", 128)} {
		dir := extensionFolder(t, fmt.Sprintf(`{"id":%q,"description":"X.","permissions_required":[]}`, id), "")
		_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
		if capabilityByID(t, b, capability.ID("extension:"+id)); len(b.Problems) > 0 {
			t.Errorf("id %q: %v", id, b.Problems)
		}
	}
	for _, id := range []string{
		".", "..", ".x", "-x", "_x", "a b", "a/b", `a\b`, "a:b", "a;id", "a$(id)", "a`id`", "a'b", `a"b`, "a|b", "a&b", "a>b", "a*", "~a", "a\nb", "a\u202eb", "é", "аpp", "a@b", "a%b", "extension:x",
		strings.Repeat("a", 129),
	} {
		dir := extensionFolder(t, `{"id":`+strconv.Quote(id)+`,"description":"X.","permissions_required":["exec"]}`, "slash_commands: [{name: /x, description: X., runner: exec.x}]\n")
		_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
		if len(b.Capabilities) > 0 || len(b.Problems) != 1 || b.Problems[0].Code != "bad-id" || !strings.Contains(b.Problems[0].Fix, "letters, digits") {
			t.Errorf("id %q: %d capabilities, %v, want bad-id", id, len(b.Capabilities), b.Problems)
		}
	}
}

// TestExtensionEnvValues: variables with values, at every level, in the order
// of the file.
func TestExtensionEnvValues(t *testing.T) {
	manifest := `{"id":"x","description":"X.","permissions_required":["exec"],"env_values":{"TZ":"UTC"}}`
	tests := []struct {
		name, action string
		want         []string
		message      string
	}{
		{"the package's", "", []string{"TZ=UTC"}, ""},
		{"the action's", "env_values: {LC_ALL: C, A: \"a=b c\", N: 1, B: true, E: \"\"}", []string{"LC_ALL=C", "A=a=b c", "N=1", "B=true", "E="}, ""},
		{"none", "env_values: {}", nil, ""},
		{"a list", "env_values: [TZ]", []string{"TZ=UTC"}, "is not a map"},
		{"a bad name", "env_values: {A B: c, D: e}", []string{"D=e"}, "cannot name a variable"},
		{"a map", "env_values: {A: {b: c}, D: e}", []string{"D=e"}, "not one line of text"},
		{"two lines", "env_values: {A: \"b\\nC=d\"}", nil, "not one line of text"},
		{"nothing", "env_values: {A: }", nil, "not one line of text"},
		{"too long", "env_values: {A: " + strings.Repeat("a", recipe.MaxEnvValue+1) + "}", nil, "not one line of text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, _, b := actionOf(t, manifest, "runner: exec.x\n"+tt.action)
			message := ""
			if len(b.Problems) > 0 {
				message = b.Problems[0].String()
			}
			if strings.Join(c.Run.EnvValues, "|") != strings.Join(tt.want, "|") || !strings.Contains(message, tt.message) || (message == "") != (tt.message == "") {
				t.Errorf("EnvValues = %q, problems %v, want %q and %q", c.Run.EnvValues, b.Problems, tt.want, tt.message)
			}
		})
	}
}
