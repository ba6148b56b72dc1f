package slash

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/know/source"
)

// postman loads the seed's example package through the real reader.
func postman(t testing.TB) *Index {
	t.Helper()
	ctx := context.Background()
	tree := source.NewTree(source.TreeConfig{
		Path: filepath.Join("testdata", "postman"), Trust: capability.TrustUser,
	})
	batch, err := tree.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return New(Commands(batch.Capabilities, func(c *capability.Capability) json.RawMessage {
		d, err := tree.Detail(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		return d.Schema
	}))
}

// TestSeedRoute is the seed's example, word for word.
func TestSeedRoute(t *testing.T) {
	x := postman(t)
	const line = "/postman get https://api.example.com"
	if !x.Is(line) {
		t.Fatalf("Is(%q) = false, want true", line)
	}
	r, err := x.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	if r.Command != "/postman" || r.Extension != "tools.postman" || r.Action != "get" || r.Runner != "exec.postman_cli" ||
		r.Description != "Send a GET request and show the answer." {
		t.Errorf("Parse(%q) = %+v", line, r)
	}
	if diff := cmp.Diff([]string{"https://api.example.com"}, r.Args); diff != "" {
		t.Errorf("Args (-want +got):\n%s", diff)
	}
	call, err := r.Call(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := capability.Call{
		Target: "command:postman/get", Action: "get", Origin: capability.ByPerson,
		Arguments: json.RawMessage(`{"args":["https://api.example.com"]}`),
	}
	if diff := cmp.Diff(want, call); diff != "" {
		t.Errorf("Call (-want +got):\n%s", diff)
	}
}

func TestDeclaredArgumentsOfARealPackage(t *testing.T) {
	x := postman(t)
	for line, want := range map[string]string{
		"/postman run a.json":                         `{"collection":"a.json"}`,
		"/postman run a.json --bail --iterations 3":   `{"collection":"a.json","bail":true,"iterations":3}`,
		"/postman run --iterations=3 --bail a.json":   `{"collection":"a.json","bail":true,"iterations":3}`,
		"/postman run collection='b c.json' bail=off": `{"collection":"b c.json","bail":false}`,
		"/postman run --no-bail -- --bail":            `{"collection":"--bail","bail":false}`,
		"/postman get -o x --flag 'a b'":              `{"args":["-o","x","--flag","a b"]}`,
		"/postman https://x":                          `{"args":["https://x"]}`,
		"/postman 'delete' x":                         `{"args":["delete","x"]}`,
		"/postman":                                    `{}`,
		"/tools.postman:postman get x":                `{"args":["x"]}`,
		"/postman get x \t\r\n":                       `{"args":["x"]}`,
		"/postman get \"a\n\tb\" ''":                  `{"args":["a\n\tb",""]}`,
		"/postman get ; && || | ` $(id) > < *":        `{"args":[";","\u0026\u0026","||","|","` + "`" + `","$(id)","\u003e","\u003c","*"]}`,
	} {
		if got, err := arguments(x, line); err != nil || got != want {
			t.Errorf("arguments of %q = %s, %v, want %s", line, got, err, want)
		}
	}
}

func arguments(x *Index, line string) (string, error) {
	r, err := x.Parse(line)
	if err != nil {
		return "", err
	}
	call, err := r.Call(nil)
	return string(call.Arguments), err
}

// TestOnlyKnownCommandsAreCommands: what merely begins with a slash is text,
// and stays byte for byte.
func TestOnlyKnownCommandsAreCommands(t *testing.T) {
	x := postman(t)
	for _, text := range []string{
		"/etc/hosts is broken", "/", "", " /postman get x", "postman get x", "say /postman get x", "x\n/postman get x",
		"/Postman get x", "/postmann get x", "/postman/get", "/postman; rm -rf /", "/postman'get'",
		"//", "///", "// TODO: fix it", "//server/share", "//postmann", "/ postman get x",
		"\u2215postman get x", "\uff0fpostman get x", "\u2044postman get x", "\u29f8postman get x", "\\postman",
	} {
		if x.Is(text) {
			t.Errorf("Is(%q) = true, want text", text)
		}
		if got := x.Text(text); got != text {
			t.Errorf("Text(%q) = %q, want it unchanged", text, got)
		}
		if _, err := x.Parse(text); capability.KindOf(err) != capability.NotFound {
			t.Errorf("Parse(%q) = %v, want %v", text, err, capability.NotFound)
		}
	}
	for text, want := range map[string]string{
		"//postman get x": "/postman get x", "///postman": "//postman", "//postman\nis text": "/postman\nis text",
	} {
		if x.Is(text) {
			t.Errorf("Is(%q) = true, want text", text)
		}
		if got := x.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
	// Even a broken command stays a command: nothing of it reaches a model.
	for _, text := range []string{"/postman get 'x", "/postman\x00get", "/postman\u00a0get", "/postman\n"} {
		if !x.Is(text) {
			t.Errorf("Is(%q) = false, want true", text)
		}
	}
}

func TestRefusalsSayWhere(t *testing.T) {
	x := postman(t)
	tests := []struct {
		line         string
		offset, col  int
		message, fix string // parts
	}{
		{"/postman get 'a b", 13, 14, "quote ' that opens here never closes", "close it"},
		{`/postman get é"x`, 15, 15, `quote " that opens`, "close it"},
		{`/postman get x\`, 14, 15, "backslash at the end", "remove it"},
		{"/postman get a\nb", 14, 15, "second line", "one line"},
		{"/postman get a\rb", 14, 15, "control character, U+000D", "remove"},
		{"/postman get \"a\rb\"", 15, 16, "control character, U+000D", "remove"},
		{"/postman get a\x00b", 14, 15, "control character, U+0000", "remove"},
		{"/postman get 'a\x1b[31m'", 15, 16, "control character, U+001B", "remove"},
		{"/postman get a\u0085b", 14, 15, "control character, U+0085", "remove"},
		{"/postman\x00get x", 8, 9, "control character, U+0000", "remove"},
		{"/postman\u00a0get x", 8, 9, "U+00A0 looks like a blank", "plain blank"},
		{"/postman get a\u3000b", 14, 15, "U+3000", "plain blank"},
		{"/postman get a\u200bb", 14, 15, "U+200B", "plain blank"},
		{"/postman get a\u2028b", 14, 15, "U+2028", "plain blank"},
		{"/postman get a\u202eb", 14, 15, "U+202E changes the order", "quotes"},
		{"/postman get \\\u00a0", 14, 15, "U+00A0", "plain blank"},
		{"/postman get a\xffb", 14, 15, "not valid UTF-8", "again"},
		{"/postman get “x y”", 13, 14, "typographer's quote", `plain "`},
		{"/postman run a.json —bail", 20, 21, "dash", "two plain dashes"},
		{"/postman gte x", 9, 10, "no such action", "did you mean get?; if it is an argument, write get before it"},
		{"/postman frobnicate x", 9, 10, "no such action", "its actions are get, run"},
		{"/postman run", 12, 13, "collection is missing", "/postman run <collection> [--bail] [--iterations <iterations>]"},
		{"/postman run a b", 15, 16, "one argument too many", "/postman run <collection>"},
		{"/postman run a --bial", 15, 16, "no such flag", "did you mean --bail?"},
		{"/postman run a --zzzzzzzz", 15, 16, "no such flag", "the flags are --collection, --bail, --iterations"},
		{"/postman run a -x", 15, 16, "no such flag", "flags are"},
		{"/postman run a --iterations", 15, 16, "--iterations needs a value", "--iterations=VALUE"},
		{"/postman run a --iterations --bail", 15, 16, "--iterations needs a value", "--iterations=VALUE"},
		{"/postman run a --iterations 3x", 28, 29, "iterations wants a whole number", "/postman run"},
		{"/postman run a --iterations 1.5", 28, 29, "iterations wants a whole number", "/postman run"},
		{"/postman run a --iterations 007", 28, 29, "iterations wants a whole number", "/postman run"},
		{"/postman run a --bail=perhaps", 15, 16, "bail wants true or false", "/postman run"},
		{"/postman run a --bail --bail", 22, 23, "bail is given twice", "once"},
		{"/postman run a --iterations 1 iterations=2", 30, 31, "iterations is given twice", "once"},
		{"/postman run \"a\nb\" c", 19, 4, "one argument too many", ""},
	}
	for _, tt := range tests {
		_, err := arguments(x, tt.line)
		f, ok := errors.AsType[*Fault](err)
		if !ok || capability.KindOf(err) != capability.Invalid {
			t.Errorf("%q: error %v, want an invalid line with a *Fault", tt.line, err)
			continue
		}
		if f.Offset != tt.offset || f.Column != tt.col {
			t.Errorf("%q: offset %d, column %d, want %d and %d", tt.line, f.Offset, f.Column, tt.offset, tt.col)
		}
		if !strings.Contains(f.Message, tt.message) || !strings.Contains(err.Error(), tt.fix) {
			t.Errorf("%q: %v, want %q and %q", tt.line, err, tt.message, tt.fix)
		}
		if !strings.HasPrefix(err.Error(), "read command /postman: ") {
			t.Errorf("%q: %v, want it to name the command", tt.line, err)
		}
	}
}

// TestRefusalsRepeatNothing: what was typed may be a secret, and errors are
// logged.
func TestRefusalsRepeatNothing(t *testing.T) {
	x := postman(t)
	const secret = "hunter2hunter2"
	for _, line := range []string{
		"/postman " + secret, "/postman get '" + secret, "/postman run a " + secret, "/postman run a --" + secret,
		"/postman run a --iterations " + secret, "/postman run --bail=" + secret, "/" + secret, "/postman run a --bail --bail=" + secret,
	} {
		if _, err := arguments(x, line); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: error %v, want one without the word", line, err)
		}
	}
}

func TestLimits(t *testing.T) {
	x := postman(t)
	for _, line := range []string{
		"/postman get " + strings.Repeat("x", maxLine), "/postman get" + strings.Repeat(" x", maxWords+1),
	} {
		if _, err := x.Parse(line); capability.KindOf(err) != capability.Invalid {
			t.Errorf("Parse of %d bytes = %v, want a refusal", len(line), err)
		}
	}
	line := "/postman get" + strings.Repeat(" x", maxWords-1)
	if r, err := x.Parse(line); err != nil || len(r.Args) != maxWords-1 {
		t.Errorf("Parse of %d words = %d, %v", maxWords-1, len(r.Args), err)
	}
}

func command(name, extension string, trust capability.Trust, aliases ...string) Command {
	return Command{
		Name: name, Extension: extension, Trust: trust, Aliases: aliases,
		Actions: []Action{{Name: "go", Target: capability.ID("command:" + extension + "." + name)}},
	}
}

// TestOneNameTwoPackages: a less trusted package cannot take a name over, and
// equals are never guessed between.
func TestOneNameTwoPackages(t *testing.T) {
	x := New([]Command{
		command("test", "a", capability.TrustUser), command("test", "b", capability.TrustWorkspace),
		command("same", "a", capability.TrustUser), command("same", "b", capability.TrustUser),
		command("other", "c", capability.TrustWorkspace, "test", "o", "same"),
		command("more", "d", capability.TrustUser, "o"),
		command("cr\u00e8me", "e", capability.TrustUser),
	})
	for line, want := range map[string]capability.ID{
		"/test go": "command:a.test", "/a:test go": "command:a.test", "/b:test go": "command:b.test",
		"/b:same go": "command:b.same", "/o go": "command:d.more", "/c:other go": "command:c.other",
		"/cre\u0300me go": "command:e.cr\u00e8me",
	} {
		if r, err := x.Parse(line); err != nil || r.Target != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", line, r.Target, err, want)
		}
	}
	if !x.Is("/same go") {
		t.Error("Is(/same) = false, want true: it is a command, if an ambiguous one")
	}
	_, err := x.Parse("/same go")
	if err == nil || !strings.Contains(err.Error(), "write /a:same or /b:same") {
		t.Errorf("Parse(/same) = %v, want a refusal that names both", err)
	}
}

// TestToolsUnderOneName: a name means what the user or this program brought,
// a command before a tool, a server's tool last; a project takes no name and no
// alias.
func TestToolsUnderOneName(t *testing.T) {
	tool := func(name, server string, id capability.ID, trust capability.Trust, aliases ...string) Command {
		return Command{Name: name, Extension: server, Trust: trust, Tool: true, Server: server != "", Aliases: aliases, Actions: []Action{{Target: id}}}
	}
	x := New([]Command{
		tool("read", "", "a:read", capability.TrustWorkspace), tool("read", "files", "mcp:files/read", capability.TrustUser),
		tool("read", "", "tool:read", capability.TrustBuiltin, "look", "peek"),
		tool("look", "", "a:look", capability.TrustWorkspace), tool("peek", "files", "mcp:files/peek", capability.TrustUser),
		tool("mark", "", "tool:mark", capability.TrustUser), tool("mark", "files", "mcp:files/mark", capability.TrustUser),
		tool("graph", "", "a:graph", capability.TrustWorkspace), tool("graph", "files", "mcp:files/graph", capability.TrustUser),
		tool("deploy", "", "tool:deploy", capability.TrustUser),
		{Name: "deploy", Trust: capability.TrustUser, Actions: []Action{{Target: "command:deploy"}}},
		{Name: "mark", Trust: capability.TrustWorkspace, Actions: []Action{{Target: "command:mark"}}},
		tool("only", "", "a:only", capability.TrustWorkspace),
	})
	for line, want := range map[string]capability.ID{
		"/read": "tool:read", "/look": "tool:read", "/peek": "tool:read", "/files:read": "mcp:files/read", "/files:peek": "mcp:files/peek",
		"/mark": "tool:mark", "/graph": "mcp:files/graph", "/deploy": "command:deploy", "/only": "a:only",
	} {
		if r, err := x.Parse(line); err != nil || r.Target != want {
			t.Errorf("Parse(%q) = %s, %v, want %s", line, r.Target, err, want)
		}
	}
}

func TestUnavailableActionsAreRefused(t *testing.T) {
	x := New([]Command{{Name: "x", Actions: []Action{{Name: "go", Unavailable: "it is switched off"}}}})
	_, err := x.Parse("/x go")
	if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "it is switched off") {
		t.Errorf("Parse = %v, want %v with the reason", err, capability.Unavailable)
	}
}

// TestTextCommands: a prompt takes its line as it is, apostrophes and all.
func TestTextCommands(t *testing.T) {
	c := &capability.Capability{
		ID: "command:review", Kind: capability.KindCommand, Name: "review", Aliases: []string{"rv"},
		Origin: capability.Origin{Format: "command"},
	}
	x := New(Commands([]*capability.Capability{c}, nil))
	for line, want := range map[string]string{
		"/review it's broken\n\n  see \"here": `{"arguments":"it's broken\n\n  see \"here"}`,
		"/rv --x=y":                           `{"arguments":"--x=y"}`,
		"/review":                             `{}`,
		"/review \r\n":                        `{}`,
	} {
		if got, err := arguments(x, line); err != nil || got != want {
			t.Errorf("arguments of %q = %s, %v, want %s", line, got, err, want)
		}
	}
	if _, err := x.Parse("/review a\x00"); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Parse with NUL = %v, want a refusal", err)
	}
}

func TestCommandsLeavesOutWhatCannotBeTyped(t *testing.T) {
	var all []*capability.Capability
	for _, name := range []string{"a b c", "", "-x", "x/y", "x\u202ey", "ok", "über:k_1.2"} {
		all = append(all, &capability.Capability{Kind: capability.KindCommand, Name: name})
	}
	all = append(all, &capability.Capability{Kind: capability.KindTool, Name: "tool"})
	var names []string
	for _, cmd := range Commands(all, nil) {
		names = append(names, cmd.Name)
	}
	if diff := cmp.Diff([]string{"ok", "über:k_1.2"}, names); diff != "" {
		t.Errorf("Commands (-want +got):\n%s", diff)
	}
}

func TestHelp(t *testing.T) {
	x := postman(t)
	h, err := x.Help("/postman")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, a := range h.Actions {
		lines = append(lines, a.Usage+": "+a.Description)
	}
	want := []string{
		"/postman get [<args>...]: Send a GET request and show the answer.",
		"/postman run <collection> [--bail] [--iterations <iterations>]: Run every request of a collection.",
	}
	if diff := cmp.Diff(want, lines); diff != "" || !h.Actions[0].Default || h.Extension != "tools.postman" {
		t.Errorf("Help = %+v (-want +got):\n%s", h, diff)
	}
	if _, err := x.Help("postmn"); capability.KindOf(err) != capability.NotFound || !strings.Contains(err.Error(), "did you mean /postman?") {
		t.Errorf("Help(postmn) = %v, want a suggestion", err)
	}
}

// TestSuggestsWhatHoldsTheWord: a command of which a word was typed is offered
// before those that are only spelled like it, and before a list of all.
func TestSuggestsWhatHoldsTheWord(t *testing.T) {
	var commands []Command
	for _, name := range []string{"analyze", "commit", "find-files", "fins", "git-log", "git_status", "digits", "gut", "list-files", "read-files", "x-files"} {
		commands = append(commands, Command{Name: name})
	}
	x := New(commands)
	for line, want := range map[string][]string{
		"/etc/hosts is broken": nil, "/analyze x": nil, "analyz": nil, "/" + strings.Repeat("a", 5000): nil,
		"/git log":   {"/git-log", "/git_status", "/gut"},
		"/GIT":       {"/git-log", "/git_status", "/gut"},
		"/find":      {"/find-files", "/fins"},
		"/nalyz":     {"/analyze"},
		"/files":     {"/x-files", "/find-files", "/list-files"},
		"/le":        nil, // too little to be looked for
		"/nonsenses": nil,
	} {
		if got := x.Suggest(line); !slices.Equal(got, want) {
			t.Errorf("Suggest(%q) = %q, want %q", line, got, want)
		}
	}
}

// TestDefaultAction checks that only formats which define a default action set it:
// others keep unknown keys in Meta.
func TestDefaultAction(t *testing.T) {
	for format, want := range map[string]string{capability.FormatExtension: "wipe", "memory": "wipe", "manifest": "", "rows": "", "mcptools": ""} {
		list := []*capability.Capability{
			{ID: "command:disk/show", Kind: capability.KindCommand, Name: "disk show", Origin: capability.Origin{Format: format}},
			{ID: "command:disk/wipe", Kind: capability.KindCommand, Name: "disk wipe", Origin: capability.Origin{Format: format}, Meta: map[string]string{"default_action": "wipe"}},
		}
		commands := Commands(list, nil)
		if len(commands) != 1 || commands[0].Default != want {
			t.Errorf("format %s: %+v, want the default action %q", format, commands, want)
		}
	}
}
