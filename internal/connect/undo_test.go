package connect

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"
)

// listed puts a file of a client in a home folder of its own.
func listed(t *testing.T, client, name, before string) (path string, o Options) {
	t.Helper()
	home := t.TempDir()
	path = filepath.Join(home, name)
	testkit.OK(t, writeAll(path, []byte(before)))
	return path, Options{Where: Where{Client: client, Home: home}, Entry: Entry{Command: "/usr/local/bin/ken"}}
}

// connected puts a file there, connects the client, and gives the rest.
func connected(t *testing.T, client, name, before string) (path string, keep memory, o Options) {
	t.Helper()
	path, o = listed(t, client, name, before)
	keep = memory{}
	connectAgain(t, o, keep)
	return path, keep, o
}

func connectAgain(t *testing.T, o Options, keep Keep) *Plan {
	t.Helper()
	p := testkit.Must(Prepare(o))(t)
	testkit.OK(t, Apply(t.Context(), p, keep))
	return p
}

func rewrite(t *testing.T, path string, pairs ...string) {
	t.Helper()
	data := testkit.Must(os.ReadFile(path))(t)
	out := strings.NewReplacer(pairs...).Replace(string(data))
	if out == string(data) {
		t.Fatalf("nothing to replace in %s", data)
	}
	testkit.OK(t, os.WriteFile(path, []byte(out), 0o640))
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is\n%s\nwant\n%s\n(%v)", path, got, want, err)
	}
}

const (
	claudeBefore = "{\n  \"numStartups\": 1,\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    },\n    \"b\": {\n      \"command\": \"b\"\n    }\n  },\n  \"projects\": {\n    \"/p\": {\n      \"mcpServers\": {\n        \"c\": { \"command\": \"c\" }\n      }\n    }\n  }\n}\n"
	codexBefore  = "model = \"x\"\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.a.env]\nA = \"b\"\n\n[mcp_servers.b]\ncommand = \"b\"\n\n[tui]\ntheme = \"dark\"\n"
)

// Changes that others made after connecting stay; the servers come back.
func TestUndoOfChangedFile(t *testing.T) {
	tests := []struct {
		name, client, file, before string
		change                     []string
		want                       string // the file after Undo
		note                       string
	}{
		{"a counter", "claude", ".claude.json", claudeBefore, []string{`"numStartups": 1`, `"numStartups": 2`},
			strings.Replace(claudeBefore, `"numStartups": 1`, `"numStartups": 2`, 1), "was changed after"},
		{"a server came", "claude", ".claude.json", claudeBefore, []string{`    "ken": {`, "    \"n\": { \"command\": \"n\" },\n    \"ken\": {"},
			strings.Replace(claudeBefore, `    "a": {`, "    \"n\": { \"command\": \"n\" },\n    \"a\": {", 1), "was changed after"},
		{"the project is gone", "claude", ".claude.json", "{\n  \"projects\": {\n    \"/p\": {\n      \"mcpServers\": { \"c\": { \"command\": \"c\" } }\n    }\n  }\n}\n",
			[]string{"{\n    \"/p\": {\n      \"mcpServers\": {}\n    }\n  }", "{}"},
			"{\n  \"projects\": {\n    \"/p\": {\n      \"mcpServers\": {\n        \"c\": { \"command\": \"c\" }\n      }\n    }\n  },\n  \"mcpServers\": {}\n}\n", "was changed after"},
		{"one is there again", "claude", ".claude.json", claudeBefore, []string{`    "ken": {`, "    \"a\": { \"command\": \"other\" },\n    \"ken\": {"},
			strings.Replace(claudeBefore, "    \"a\": {\n      \"command\": \"a\"\n    },\n", "    \"a\": { \"command\": \"other\" },\n", 1), "a: there again"},
		{"Ken was taken out", "codex", ".codex/config.toml", codexBefore, []string{"[mcp_servers.ken]\ncommand = \"/usr/local/bin/ken\"\nargs = [\"mcp\"]\n\n", ""},
			"model = \"x\"\n\n[tui]\ntheme = \"dark\"\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.a.env]\nA = \"b\"\n\n[mcp_servers.b]\ncommand = \"b\"\n", "was changed after"},
		{"a setting of Codex", "codex", ".codex/config.toml", codexBefore, []string{`"dark"`, `"light"`},
			strings.Replace(codexBefore, `"dark"`, `"light"`, 1), "was changed after"},
		{"inline tables", "codex", ".codex/config.toml", "mcp_servers = { a.command = \"a\", b = { command = \"b\", env = { X = 'y' } } }\n\n[z]\n", []string{"[z]", "[z]\nq = 1"},
			"\n[z]\nq = 1\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.b]\ncommand = \"b\"\nenv = { X = 'y' }\n", "was changed after"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path, keep, _ := connected(t, test.client, test.file, test.before)
			rewrite(t, path, test.change...)
			done, err := Undo(t.Context(), test.client, keep, false)
			if err != nil || len(done) != 1 || done[0].How != "merged" {
				t.Fatalf("Undo() = %v, %v, want one file merged", done, err)
			}
			if notes := strings.Join(done[0].Notes, "\n"); !strings.Contains(notes, test.note) {
				t.Errorf("Undo() notes %q, want %q", notes, test.note)
			}
			wantFile(t, path, test.want)
		})
	}
}

func TestUndoByForce(t *testing.T) {
	path, keep, _ := connected(t, "claude", ".claude.json", claudeBefore)
	rewrite(t, path, `"numStartups": 1`, `"numStartups": 2`)
	testkit.OK(t, os.WriteFile(path, []byte("{ broken"), 0o640))
	if _, err := Undo(t.Context(), "claude", keep, false); capability.KindOf(err) != capability.Conflict || !strings.Contains(err.Error(), "--force") {
		t.Errorf("Undo() of a broken file = %v, want a conflict that names --force", err)
	}
	if len(keep) == 0 {
		t.Fatal("Undo() that did nothing forgot what was kept")
	}
	testkit.Must(Undo(t.Context(), "claude", keep, true))(t)
	wantFile(t, path, claudeBefore)
	if _, err := Undo(t.Context(), "claude", keep, false); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Undo() again = %v, want not found", err)
	}
}

func TestUndoOfDeletedFile(t *testing.T) {
	path, keep, _ := connected(t, "claude", ".claude.json", claudeBefore)
	testkit.OK(t, os.Remove(path))
	testkit.Must(Undo(t.Context(), "claude", keep, false))(t)
	wantFile(t, path, claudeBefore)
}

// Connecting twice, with a server added in between and the program moved,
// still undoes to the first file with what was added.
func TestConnectTwice(t *testing.T) {
	path, keep, o := connected(t, "claude", ".claude.json", claudeBefore)
	o.Entry.Command = "/opt/ken"
	connectAgain(t, o, keep)
	testkit.Must(Undo(t.Context(), "claude", keep, false))(t)
	if got, _ := os.ReadFile(path); string(got) != claudeBefore {
		t.Fatalf("after moving the program and Undo() the file is %s", got)
	}

	connectAgain(t, o, keep)
	rewrite(t, path, `    "ken": {`, "    \"n\": { \"command\": \"n\" },\n    \"ken\": {")
	if p := connectAgain(t, o, keep); len(p.Servers) != 1 || p.Servers[0].Name != "n" {
		t.Fatalf("connecting again moves %v, want n", p.Servers)
	}
	if done, err := Undo(t.Context(), "claude", keep, false); err != nil || done[0].How != "restored" {
		t.Fatalf("Undo() = %v, %v", done, err)
	}
	got, _ := os.ReadFile(path)
	for _, name := range []string{`"a"`, `"b"`, `"c"`, `"n"`} {
		if !bytes.Contains(got, []byte(name)) {
			t.Errorf("after Undo() %s is not in %s", name, got)
		}
	}
	if bytes.Contains(got, []byte("/opt/ken")) {
		t.Errorf("after Undo() Ken is in %s", got)
	}
}

func TestApplyRefusesChangedFile(t *testing.T) {
	path, o := listed(t, "claude", ".claude.json", claudeBefore)
	p := testkit.Must(Prepare(o))(t)
	rewrite(t, path, `"numStartups": 1`, `"numStartups": 2`)
	now, _ := os.ReadFile(path)
	keep := memory{}
	if err := Apply(t.Context(), p, keep); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Apply() = %v, want a conflict", err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, now) || len(keep) != 0 {
		t.Errorf("Apply() that refused changed the file or kept %d things", len(keep))
	}
}

// A file behind a link is changed where it is, with its mode.
func TestApplyFollowsLinks(t *testing.T) {
	home := t.TempDir()
	target := filepath.Join(home, "dotfiles", "claude.json")
	testkit.OK(t, writeAll(target, []byte(claudeBefore)))
	path := filepath.Join(home, ".claude.json")
	if err := os.Symlink("dotfiles/claude.json", path); err != nil {
		t.Skip("cannot here: no links")
	}
	o := Options{Where: Where{Client: "claude", Home: home}, Entry: Entry{Command: "/ken"}}
	keep := memory{}
	connectAgain(t, o, keep)
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has mode %v, %v, want 0640", info.Mode(), err)
	}
	testkit.Must(Undo(t.Context(), "claude", keep, false))(t)
	wantFile(t, target, claudeBefore)
	left, _ := filepath.Glob(filepath.Join(home, "dotfiles", unfinished))
	if len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	os.Remove(target)
	if _, err := Prepare(o); err == nil {
		t.Error("Prepare() followed a link to nothing")
	}
}

// meddler is a Keep during whose work somebody changes a file.
type meddler struct {
	memory
	meddle func()
}

func (m meddler) Save(ctx context.Context, key string, data []byte) error {
	m.meddle()
	return m.memory.Save(ctx, key, data)
}

// When the second of two files cannot be written the first is put back.
func TestApplyRollsBack(t *testing.T) {
	home := t.TempDir()
	mine, theirs := filepath.Join(home, ".cursor", "mcp.json"), filepath.Join(home, "p", ".cursor", "mcp.json")
	const before = `{"mcpServers": {"a": {"command": "a"}}}`
	for _, path := range []string{mine, theirs} {
		testkit.OK(t, writeAll(path, []byte(before)))
	}
	p, err := Prepare(Options{Where: Where{Client: "cursor", Home: home, Project: filepath.Join(home, "p")}, Entry: Entry{Command: "/ken"}})
	if err != nil || len(p.Files) != 2 {
		t.Fatalf("Prepare() = %v, %v, want two files", p, err)
	}
	keep := meddler{memory{}, func() { rewrite(t, theirs, `"a"`, `"z"`) }}
	if err := Apply(t.Context(), p, keep); capability.KindOf(err) != capability.Conflict {
		t.Fatalf("Apply() = %v, want a conflict", err)
	}
	after := snapshot(t, home)
	if string(after[".cursor/mcp.json"]) != before || !strings.Contains(string(after["p/.cursor/mcp.json"]), "z") || len(keep.memory) != 0 || len(after) != 2 {
		t.Errorf("Apply() that failed left %q and kept %d things", after, len(keep.memory))
	}
}

func TestFindNothing(t *testing.T) {
	for _, c := range Clients() {
		_, err := Find(Where{Client: c.Name, Home: t.TempDir()})
		if capability.KindOf(err) != capability.NotFound || err == nil || !strings.Contains(err.Error(), "--file") {
			t.Errorf("Find(%s) = %v, want not found and --file", c.Name, err)
		}
	}
	if _, err := Find(Where{Client: "emacs"}); capability.KindOf(err) != capability.NotFound || err == nil || !strings.Contains(err.Error(), "claude") {
		t.Errorf("Find(emacs) = %v, want the names of the clients", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	tests := []struct{ client, file, data, want string }{
		{"claude", ".claude.json", `{"mcpServers": {"a": "ghp_secretsecretsecret"`, "line 1"},
		{"claude", ".claude.json", "{\n\"mcpServers\": {}, \"mcpServers\": {}}", "twice"},
		{"claude", ".claude.json", `[1]`, "not an object"},
		{"claude", ".claude.json", `{"mcpServers": []}`, "not a table"},
		{"codex", ".codex/config.toml", "a = \nb = ghp_secretsecretsecret", "line 1"},
		{"codex", ".codex/config.toml", "[[mcp_servers]]\na = 1", "not a table"},
	}
	for _, test := range tests {
		home := t.TempDir()
		testkit.OK(t, writeAll(filepath.Join(home, test.file), []byte(test.data)))
		_, err := Prepare(Options{Where: Where{Client: test.client, Home: home}, Entry: Entry{Command: "/ken"}})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("Prepare(%q) = %v, want %q", test.data, err, test.want)
		}
	}
	home := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(home, ".cursor"), 0o700))
	if _, err := Prepare(Options{Where: Where{Client: "cursor", Home: home}, Entry: Entry{Command: "ken"}}); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Prepare() with a relative path = %v, want invalid", err)
	}
}

// The list of allowed servers lets Ken in, and loses it again.
func TestListsOfNames(t *testing.T) {
	for _, before := range []string{
		`{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`,
		"{\n  \"mcp\": {\n    \"allowed\": [\n      \"a\", // one\n    ]\n  },\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}\n}\n",
		`{"allowMCPServers": ["a", "ken"], "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`,
		`{"mcp": {"excluded": ["b"]}, "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`,
	} {
		home := t.TempDir()
		path := filepath.Join(home, ".gemini", "settings.json")
		testkit.OK(t, writeAll(path, []byte(before)))
		o := Options{Where: Where{Client: "gemini", Home: home}, Entry: Entry{Command: "/usr/local/bin/ken"}}
		keep := memory{}
		p := connectAgain(t, o, keep)
		if len(p.Servers) != 2 || p.Servers[0].Disabled || !p.Servers[1].Disabled {
			t.Errorf("Prepare(%s) = %+v, want b switched off", before, p.Servers)
		}
		now, _ := os.ReadFile(path)
		doc := testkit.Must(jsonFormat{}.read(now))(t)
		for _, at := range allowLists {
			if list, ok := listAt(doc, at); ok && !strings.Contains(strings.Join(list, " "), "ken") {
				t.Errorf("connecting %s left Ken out:\n%s", before, now)
			}
		}
		testkit.OK(t, os.WriteFile(path, append(now, '\n'), 0o600))
		if done, err := Undo(t.Context(), "gemini", keep, false); err != nil || done[0].How != "merged" {
			t.Fatalf("Undo() = %v, %v", done, err)
		}
		got, _ := os.ReadFile(path)
		was, _ := jsonFormat{}.read([]byte(before))
		if is, err := (jsonFormat{}).read(got); err != nil || printed(is) != printed(was) {
			t.Errorf("%s\nwas merged back to\n%s (%v)", before, got, err)
		}
	}
}

// What a killed process left is taken away, and nothing that is younger.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, ".ken-connect-1"), filepath.Join(dir, ".ken-connect-2")
	for _, path := range []string{old, young} {
		testkit.OK(t, os.WriteFile(path, nil, 0o600))
	}
	testkit.OK(t, os.Chtimes(old, time.Now(), time.Now().Add(-time.Hour)))
	testkit.OK(t, replaceFile(filepath.Join(dir, "file"), []byte("x"), false, func() error { return nil }))
	if isThere(old) || !isThere(young) {
		t.Errorf("replaceFile() left the old one: %t, the young one: %t", isThere(old), isThere(young))
	}
}

// The gateway takes a command as it stands, so references in one are resolved
// when connecting.
func TestCommandsAreResolved(t *testing.T) {
	_, o := listed(t, "claude", ".claude.json", `{"mcpServers": {"a": {"command": "${BIN}/a"}, "b": {"command": "${NONE:-/opt}/b"}, "c": {"command": "${NONE}/c"}}}`)
	o.Where.Getenv = func(name string) string { return map[string]string{"BIN": "/bin"}[name] }
	p := testkit.Must(Prepare(o))(t)
	if len(p.Servers) != 2 || p.Servers[0].Command != "/bin/a" || p.Servers[1].Command != "/opt/b" {
		t.Errorf("Prepare() = %+v, want /bin/a and /opt/b", p.Servers)
	}
	if len(p.Kept) != 1 || p.Kept[0].Name != "c" {
		t.Errorf("Prepare() keeps %v, want c", p.Kept)
	}
}
