package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/connect/yamltable"
	"ken/internal/testkit"
)

// Seeds for the editors: the files of all stories.
func seeds(f *testing.F, format string) {
	paths := testkit.Must(filepath.Glob("testdata/*.txtar"))(f)
	for _, path := range paths {
		data := testkit.Must(os.ReadFile(path))(f)
		for part := range strings.SplitSeq(string(data), "\n-- ") {
			if name, body, ok := strings.Cut(part, " --\n"); ok && strings.Contains(name, format) {
				f.Add([]byte(body))
			}
		}
	}
}

// Whatever is read can be edited: the rest stays, Ken arrives, and what was
// moved can be put back. changed itself compares; here it must not refuse.
func edited(t *testing.T, f format, at []string, data []byte) {
	doc, err := f.read(data)
	if err != nil {
		return
	}
	entries, err := table(doc, at)
	if err != nil || entries == nil && doc[at[0]] != nil {
		return
	}
	names := f.names(data, at)
	c := change{at: at, drop: map[string]bool{}, put: []put{{name: "ken", value: pairs{{"command", "/ken"}, {"args", []string{"mcp"}}}}}}
	for i, name := range names {
		_, isTable := entries[name].(map[string]any) // others are never moved
		if name == "ken" && !isTable {
			return
		}
		c.drop[name] = isTable && (i%3 != 1 || name == "ken")
	}
	maps.DeleteFunc(c.drop, func(_ string, drop bool) bool { return !drop })
	out, edits, err := changed(f, data, []change{c})
	if err != nil {
		if strings.Contains(err.Error(), "twice") {
			return
		}
		if _, ok := f.(yamlFormat); ok {
			return // it has many ways to be written, of which Ken may refuse some and harm none
		}
		t.Fatalf("changed(%q) = %v", data, err)
	}
	for i := range edits {
		if e := ordered(edits)[i]; i > 0 && e.start < ordered(edits)[i-1].end {
			t.Fatalf("changed(%q) overlaps", data)
		}
	}
	back := change{at: at, drop: map[string]bool{"ken": true}}
	for _, name := range names {
		if c.drop[name] {
			back.put = append(back.put, put{name: name, raw: f.raw(data, at, name), plain: entries[name]})
		}
	}
	again, _, err := changed(f, out, []change{back})
	if err != nil {
		if _, ok := f.(yamlFormat); ok {
			return
		}
		t.Fatalf("putting back into %q = %v", out, err)
	}
	then := testkit.Must(f.read(again))(t)
	was, is := cutTable(doc, at), cutTable(then, at)
	if printed(doc) != printed(then) || len(was)+len(is) > 0 && printed(was) != printed(is) {
		t.Fatalf("%q became %q, and back %q", data, out, again)
	}
}

func FuzzJSON(f *testing.F) {
	seeds(f, "json")
	f.Add([]byte(`{"mcpServers":{"a":{},/*x*/"b":1,},"z":[1,],}`))
	f.Add([]byte(`{"mcpServers":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		edited(t, jsonFormat{}, []string{"mcpServers"}, data)
		root, err := parseJSON(data)
		if err != nil || root == nil {
			if json.Valid(data) && bytes.TrimSpace(data) != nil && err != nil && !bytes.ContainsRune(data, '\uFFFD') && strings.ToValidUTF8(string(data), "") == string(data) && !strings.Contains(err.Error(), "nested") {
				t.Fatalf("parseJSON(%q) = %v, and it is JSON", data, err)
			}
			return
		}
		ReadServers(data)
	})
}

func FuzzTOML(f *testing.F) {
	seeds(f, "toml")
	f.Add([]byte("mcp_servers.a.b = 1\n[mcp_servers.c]\nx = '''y'''\n[[d]]\n[mcp_servers.c.e]\n"))
	f.Fuzz(func(t *testing.T, data []byte) { edited(t, tomlFormat{}, []string{"mcp_servers"}, data) })
}

func FuzzYAML(f *testing.F) {
	seeds(f, "y")
	f.Add([]byte("a: 1\nmcpServers:\n- name: x\n  command: y\n# c\n- name: x\n...\n"))
	f.Add([]byte("mcpServers: {a: {}}\n"))
	f.Add([]byte("? mcpServers\n: a:\n    b: |\n      # c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, list := range []bool{false, true} {
			edited(t, yamlFormat{yamltable.Table{Key: "mcpServers", List: list}}, []string{"mcpServers"}, data)
		}
	})
}

// A value with secrets taken out, and put in again, is the value.
func FuzzSeek(f *testing.F) {
	for _, s := range []string{"Bearer abc", "--token=x", "postgres://a:b@c/d?key=12345678", `{"apiKey":"x y"}`, "$${a}", "A: b", "ghp_abcdefghijklmnopqrstuvwxyz", "$"} {
		f.Add("API_KEY", s)
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		b := &builder{client: Client{Name: "x"}, plan: &Plan{}, inputs: map[string]string{}}
		tr := &translator{builder: b, server: "s"}
		got := tr.named(name, "arg1", value)
		if tr.why != "" {
			return
		}
		if back := tr.expand(got); back != value {
			t.Fatalf("named(%q, %q) = %q, which reads as %q", name, value, got, back)
		}
		for _, s := range tr.secrets {
			if !storeName.MatchString(s.Name) {
				t.Fatalf("seal gives the name %q", s.Name)
			}
		}
	})
}

// genServers makes entries of the form that clients share.
func genServers() *rapid.Generator[map[string]any] {
	name := rapid.StringMatching(`[a-z]{1,3}|ken|weird näme|[a-z]\.[a-z]`)
	value := rapid.StringMatching(`[a-zA-Z0-9 ${}:/?=@"\\#'-]{0,20}`)
	entry := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return map[string]any{"url": "https://x.example/" + rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "path"), "headers": map[string]any{"Authorization": value.Draw(t, "auth")}}
		case 1:
			return map[string]any{"type": "sdk", "name": "x"}
		}
		return map[string]any{
			"command": rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "command"),
			"args":    rapid.SliceOfN(value, 0, 3).Draw(t, "args"),
			"env":     rapid.MapOfN(rapid.StringMatching(`[A-Z_]{1,8}(TOKEN|KEY)?`), value, 0, 3).Draw(t, "env"),
		}
	})
	return rapid.MapOfN(name, entry, 0, 5)
}

// genFile writes servers in some layout, for a client.
func genFile(t *rapid.T, client string, servers map[string]any) []byte {
	if client == "codex" {
		return genTOML(t, servers)
	}
	c, _ := clientNamed(client)
	if _, ok := c.format.(yamlFormat); ok {
		return genYAML(t, c, servers)
	}
	doc := map[string]any{"a": 1, "z": []any{"x", nil}}
	if rapid.Bool().Draw(t, "table") {
		doc[c.at[0]] = servers
	}
	if client == "claude" && rapid.Bool().Draw(t, "projects") {
		doc["projects"] = map[string]any{"/p": map[string]any{"mcpServers": servers}, "/q": map[string]any{}}
	}
	var data []byte
	switch rapid.IntRange(0, 3).Draw(t, "layout") {
	case 0:
		data, _ = json.Marshal(doc)
	case 1:
		data, _ = json.MarshalIndent(doc, "", "\t")
	case 2:
		data, _ = json.MarshalIndent(doc, "", "    ")
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	default:
		data, _ = json.MarshalIndent(doc, "", "  ")
		data = bytes.ReplaceAll(data, []byte(": {\n"), []byte(": { // here\n"))
		data = bytes.ReplaceAll(data, []byte("]\n"), []byte("], /* there */\n"))
	}
	if rapid.Bool().Draw(t, "mark") {
		data = append(slices.Clone(byteOrderMark), data...)
	}
	return data
}

// genYAML writes servers as the clients with YAML have them.
func genYAML(t *rapid.T, c Client, servers map[string]any) []byte {
	var puts []put
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		m := servers[name].(map[string]any)
		value := pairs{{"enabled", true}, {"type", "stdio"}}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			switch v := m[key].(type) {
			case map[string]any:
			case map[string]string:
				if c.Name == "goose" {
					key = "envs"
				}
				value = append(value, pair{key, sorted(v)})
			case string:
				if key == "command" && c.Name == "goose" {
					key = "cmd"
				}
				if key != "type" && key != "name" {
					value = append(value, pair{key, v})
				}
			default:
				value = append(value, pair{key, v})
			}
		}
		puts = append(puts, put{name: name, value: value})
	}
	data := []byte("# top\na: 1\n")
	edits := testkit.Must(c.format.edits(data, []change{{at: c.at, put: puts}}))(t)
	data = append(apply(data, edits), "# about z\nz: |\n  # in it\n  b: c\n"...)
	if rapid.Bool().Draw(t, "crlf") {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	if rapid.Bool().Draw(t, "mark") {
		data = append(slices.Clone(byteOrderMark), data...)
	}
	return data
}

func genTOML(t *rapid.T, servers map[string]any) []byte {
	var b strings.Builder
	b.WriteString("# top\nmodel = 'x'\n")
	var tables strings.Builder
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		m := servers[name].(map[string]any)
		value := pairs{}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			switch v := m[key].(type) {
			case map[string]any:
				value = append(value, pair{"http_headers", pairs{{"A", v["Authorization"]}}})
			case map[string]string:
				value = append(value, pair{key, sorted(v)})
			default:
				value = append(value, pair{key, v})
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			fmt.Fprintf(&b, "mcp_servers.%s = %s # behind\n", tomlKey(name), renderTOML(value))
		case 1:
			for _, kv := range value {
				fmt.Fprintf(&b, "mcp_servers.%s.%s = %s\n", tomlKey(name), tomlKey(kv.name), renderTOML(kv.value))
			}
		default:
			fmt.Fprintf(&tables, "\n# about\n[mcp_servers.%s]\n", tomlKey(name))
			for _, kv := range value {
				fmt.Fprintf(&tables, "  %s = %s\n", tomlKey(kv.name), renderTOML(kv.value))
			}
		}
	}
	return []byte(b.String() + "[[x]]\ny = [1,\n 2]\n" + tables.String() + "\n[tail]\nq = '''\n[mcp_servers.no]\n'''")
}

// For any file: connecting and disconnecting gives the same bytes, and nothing
// that was sealed is in what is shown.
func TestConnectDisconnect(t *testing.T) {
	home := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(Clients()).Draw(t, "client")
		path := filepath.Join(home, "file")
		before := genFile(t, c.Name, genServers().Draw(t, "servers"))
		testkit.OK(t, os.WriteFile(path, before, 0o600))
		p, err := Prepare(Options{Where: Where{Client: c.Name, Home: home, File: path}, Entry: Entry{Command: "/usr/bin/ken"}})
		if err != nil {
			t.Fatalf("Prepare(%s, %s) = %v", c.Name, before, err)
		}
		out, _, err := Merge(nil, p.Servers, p.Client)
		if err != nil {
			t.Fatalf("Merge() = %v", err)
		}
		read, problems := ReadServers(out)
		if len(read) > len(p.Servers) || len(problems) > 0 {
			t.Fatalf("ReadServers(%s) = %v, %v", out, read, problems)
		}
		keep := memory{}
		if err := Apply(t.Context(), p, keep); err != nil {
			t.Fatalf("Apply() = %v", err)
		}
		diff := p.Diff()
		for _, s := range p.Secrets {
			if v := s.Value.Reveal(); len(v) >= 12 && !kenRef().MatchString(v) && strings.Contains(diff, v) {
				t.Fatalf("%s is in\n%s", s.Name, diff)
			}
		}
		if len(p.Files) == 0 {
			return
		}
		if rapid.Bool().Draw(t, "touched") && c.Name != "codex" {
			now, _ := os.ReadFile(path)
			testkit.OK(t, os.WriteFile(path, append(now, '\n'), 0o600))
			if done, err := Undo(t.Context(), c.Name, keep, false); err != nil || done[0].How != "merged" {
				t.Fatalf("Undo() = %v, %v", done, err)
			}
			was, _ := c.format.read(before)
			got, _ := os.ReadFile(path)
			is, err := c.format.read(got)
			if a, b := cutTable(was, c.at), cutTable(is, c.at); err != nil || printed(was) != printed(is) || len(a)+len(b) > 0 && printed(a) != printed(b) {
				t.Fatalf("%s\nbecame, and was merged back to\n%s (%v)", before, got, err)
			}
			return
		}
		if _, err := Undo(t.Context(), c.Name, keep, false); err != nil {
			t.Fatalf("Undo() = %v", err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, before) {
			t.Fatalf("after Undo() %q, want %q", got, before)
		}
	})
}
