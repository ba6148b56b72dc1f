package connect

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/secret"
)

// storeName is the rule of internal/secret for names.
var storeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`)

func TestReadServers(t *testing.T) {
	const doc = `{
  // by hand
  "mcpServers": {
    "a": { "command": "npx", "args": ["-y", 5, true], "env": { "A": "b", "N": 1, "Z": null }, "cwd": "/x", "timeout": 1500 },
    "b": { "serverUrl": "https://b.example/mcp", "transport": "streamable-http", "headers": { "X": "${secret:mcp.b.X}" }, "enabled": false },
    "c": { "httpUrl": "https://c.example/mcp", "x-ken": { "from": ["claude", "codex"], "scope": "session", "profile": "strict", "hosts": ["c.example"], "concurrent": 2 } },
    "d": { "type": "sse", "url": "${D_URL}", "timeout": "30s", "oauth": { "clientId": "ken", "scope": "a b" }, "disabled": false },
    "e": { "command": "x", "colour": "red" },
    "f": { "command": ["x"] },
    "g": { "command": "x", "url": "https://g.example" },
    "h": { "type": "ws", "url": "https://h.example" },
    "i": { "url": "ftp://h.example" },
    "j": 1,
    "k k": { "command": "x" },
    "l": { "command": "x", "x-ken": { "scop": "user" } },
    "m": { "command": "x", "type": "http" },
    "n": { "command": "first" },
    "n": { "command": "second" },
  },
}`
	servers, problems := ReadServers([]byte(doc))
	want := []Server{
		{Name: "a", Command: "npx", Args: []string{"-y", "5", "true"}, Env: map[string]string{"A": "b", "N": "1"}, Cwd: "/x", Timeout: 1500 * time.Millisecond, Line: 4},
		{Name: "b", URL: "https://b.example/mcp", Transport: "http", Headers: map[string]string{"X": "${secret:mcp.b.X}"}, Disabled: true, Line: 5},
		{Name: "c", URL: "https://c.example/mcp", Transport: "http", Line: 6, Ken: Extra{From: []string{"claude", "codex"}, Scope: "session", Profile: "strict", Hosts: []string{"c.example"}, Concurrent: 2}},
		{Name: "d", URL: "${D_URL}", Transport: "sse", Timeout: 30 * time.Second, ClientID: "ken", Scopes: []string{"a", "b"}, Line: 7},
		{Name: "e", Command: "x", Line: 8},
		{Name: "n", Command: "second", Line: 18},
	}
	if diff := cmp.Diff(want, servers); diff != "" {
		t.Errorf("ReadServers() (-want +got):\n%s", diff)
	}
	var lines []int
	for _, p := range problems {
		lines = append(lines, p.Origin.Line)
	}
	if want := []int{8, 9, 10, 11, 12, 13, 14, 15, 16, 17}; !slices.Equal(lines, want) {
		t.Fatalf("ReadServers() has problems in lines %v, want %v: %v", lines, want, problems)
	}
	if problems[0].Severity != capability.Warning || !strings.Contains(problems[0].Message, `"colour"`) {
		t.Errorf("ReadServers() of an unknown key = %v, want a warning that names it", problems[0])
	}
	for _, p := range problems[1:] {
		if p.Severity != capability.Grave || p.Fix == "" {
			t.Errorf("ReadServers() = %+v, want an error with a fix", p)
		}
	}
}

func TestReadServersOfNonsense(t *testing.T) {
	for data, want := range map[string]string{
		"":                                     "",
		"  // nothing\n":                       "",
		"{}":                                   "",
		`{"mcpServers": null}`:                 "not an object",
		`{"other": {}}`:                        "no \"mcpServers\"",
		"[]":                                   "not an object",
		"{\n\n\"mcpServers\": x":               "not JSON",
		`{"servers": {"a": {"command": "a"}}}`: "",
	} {
		_, problems := ReadServers([]byte(data))
		if (len(problems) > 0) != (want != "") || want != "" && !strings.Contains(problems[0].Message, want) {
			t.Errorf("ReadServers(%q) = %v, want %q", data, problems, want)
		}
	}
}

func TestMerge(t *testing.T) {
	github := Server{Name: "github", URL: "https://g.example/mcp", Transport: "http"}
	other := Server{Name: "github", Command: "docker", Args: []string{"run"}}
	project := Server{Name: "github", Command: "docker", Ken: Extra{Project: "/p"}}
	must := func(data []byte, from string, servers ...Server) ([]byte, map[string]string) {
		t.Helper()
		out, renames, err := Merge(data, servers, from)
		if err != nil {
			t.Fatal(err)
		}
		return out, renames
	}
	names := func(data []byte) string {
		servers, problems := ReadServers(data)
		var out []string
		for _, s := range servers {
			out = append(out, s.Name+"("+strings.Join(s.Ken.From, "+")+")")
		}
		if len(problems) > 0 {
			t.Errorf("ReadServers(%s) = %v", data, problems)
		}
		return strings.Join(out, " ")
	}
	data := []byte("{\n  // mine\n  \"mcpServers\": {\n    \"own\": { \"command\": \"own\" }\n  }\n}\n")
	data, _ = must(data, "claude", github, project)
	data, renames := must(data, "codex", other, Server{Name: "own", Command: "own"})
	if renames["github"] != "github-codex" {
		t.Errorf("Merge() renames %v, want github to github-codex", renames)
	}
	data, _ = must(data, "gemini", github)
	if got, want := names(data), "own() github(claude+gemini) github-claude(claude) github-codex(codex)"; got != want {
		t.Errorf("Merge() = %s, want %s", got, want)
	}
	if !strings.Contains(string(data), "// mine") || !strings.Contains(string(data), `"own": { "command": "own" }`) {
		t.Errorf("Merge() changed what a person wrote:\n%s", data)
	}
	// Again, the same; and brought up to date, under the same name, with what
	// a person told Ken kept.
	if same, _ := must(data, "codex", other); string(same) != string(data) {
		t.Errorf("Merge() again changed\n%s\nto\n%s", data, same)
	}
	data = []byte(strings.Replace(string(data), `"from": "codex"`, `"from": "codex", "scope": "session"`, 1))
	newer := other
	newer.Args = []string{"run", "-i"}
	data, _ = must(data, "codex", newer)
	servers, _ := ReadServers(data)
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == "github-codex" })
	if i < 0 || len(servers[i].Args) != 2 || servers[i].Ken.Scope != "session" {
		t.Errorf("Merge() of a newer server = %+v", servers)
	}
	// One that is shared changes for one of its clients.
	moved := github
	moved.URL = "https://new.example/mcp"
	data, renames = must(data, "gemini", moved)
	if got, want := names(data), "own() github(claude) github-claude(claude) github-codex(codex) github-gemini(gemini)"; got != want || renames["github"] != "github-gemini" {
		t.Errorf("Merge() = %s, %v, want %s", got, renames, want)
	}

	data, removed, _, err := Unmerge(data, "claude")
	if err != nil || !slices.Equal(removed, []string{"github", "github-claude"}) {
		t.Errorf("Unmerge(claude) = %v, %v", removed, err)
	}
	for _, from := range []string{"codex", "gemini"} {
		if data, _, _, err = Unmerge(data, from); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := names(data), "own()"; got != want {
		t.Errorf("after Unmerge() of all: %s, want %s", got, want)
	}
	if _, _, err := Merge([]byte("{"), nil, "x"); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Merge() into a broken document = %v, want invalid", err)
	}
}

func TestUnmergeNamesLooseSecrets(t *testing.T) {
	data, _, err := Merge(nil, []Server{
		{Name: "a", Command: "a", Env: map[string]string{"K": "${secret:mcp.a.K}", "S": "${secret:shared}"}},
	}, "claude")
	if err != nil {
		t.Fatal(err)
	}
	if data, _, err = Merge(data, []Server{{Name: "b", Command: "b", Env: map[string]string{"S": "${secret:shared}"}}}, "codex"); err != nil {
		t.Fatal(err)
	}
	if _, _, loose, err := Unmerge(data, "claude"); err != nil || !slices.Equal(loose, []string{"mcp.a.K"}) {
		t.Errorf("Unmerge() leaves %v loose, %v, want mcp.a.K", loose, err)
	}
}

// A name that is taken by another value is not taken again, and one with the
// same value is: so the same server of two clients stays one.
func TestSecretsOfTwoClients(t *testing.T) {
	stored := map[string]string{"mcp.a.A_TOKEN": "one"}
	for value, want := range map[string]string{"one": "mcp.a.A_TOKEN", "two": "mcp.a.A_TOKEN.x"} {
		b := &builder{client: Client{Name: "x"}, plan: &Plan{}, sealed: map[string]secret.Value{}}
		b.options.Secret = func(name string) (secret.Value, bool) { v, ok := stored[name]; return secret.Of(v), ok }
		tr := &translator{builder: b, server: "a"}
		if got := tr.seal("A_TOKEN", value); got != want {
			t.Errorf("seal(%s) = %s, want %s", value, got, want)
		}
	}
	for _, name := range []string{"mcp.ä.X", "mcp." + strings.Repeat("x", 200) + ".K", "mcp.input.a b"} {
		if got := fitName(name); !storeName.MatchString(got + ".opencode.99") {
			t.Errorf("fitName(%q) = %q, which the store refuses", name, got)
		}
	}
	for _, name := range []string{"", "ä", "a b", strings.Repeat("x", 300), "-a", "a/b"} {
		if got := safeName(name); !goodName().MatchString(got) || got != safeName(name) {
			t.Errorf("safeName(%q) = %q", name, got)
		}
	}
}
