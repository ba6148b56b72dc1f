//go:build unix

package profile

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/run/mcpgateway"
)

// openFolder makes a folder that other users may look into, as those of
// installed programs are; t.TempDir lies below a closed one.
func openFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ken-profile-")
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

func TestTighten(t *testing.T) {
	home := t.TempDir()
	s := New(Config{
		KenHome: filepath.Join(home, ".ken"), UserHome: home, Gateway: mcpgateway.Config{Path: os.Getenv("PATH"), Work: filepath.Join(home, ".ken-servers")},
		Networks: func() []netip.Prefix { return nil }, Getenv: func(string) string { return "" },
	})
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
		{"home", mcpgateway.Server{Command: "/bin/sh", Args: []string{home}}, nil, nil, nil, "all of " + home},
		{"a file to be made at home", mcpgateway.Server{Command: "/bin/sh", Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(home, "memory.json")}}, nil, nil, nil, "memory.json, which does not exist yet"},
		{"another protocol", mcpgateway.Server{Command: "/bin/sh", Args: []string{"postgres://u:geheim@db.example.com:5432/x"}}, nil, nil, nil, "talks postgres to db.example.com:5432"},
		{"this machine", mcpgateway.Server{Command: "/bin/sh", Args: []string{"http://localhost:3000/"}}, nil, nil, nil, "sandbox.networks"},
		{"relative", mcpgateway.Server{Command: "/bin/sh", Cwd: d, Args: []string{"proj/src/main.py"}}, nil, nil, nil, "relative path"},
		{"fetched", mcpgateway.Server{Command: "npx", Args: []string{"-y", "@scope/pkg@1", "x"}}, nil, nil, nil, "npm install --global @scope/pkg@1"},
		{"fetched by flag", mcpgateway.Server{Command: "/usr/bin/uvx", Args: []string{"--from", "pkg", "prog"}}, nil, nil, nil, "uv tool install pkg"},
		{"in a container", mcpgateway.Server{Command: "docker", Args: []string{"run", "-i", "x"}}, nil, nil, nil, "arguments of docker"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, note := s.Tighten(tt.def)
			if confined := got.Profile == mcpgateway.ProfileConfined; confined != (tt.against == "") || !strings.Contains(note, tt.against) {
				t.Fatalf("Tighten() = profile %q, %q; want against it %q", got.Profile, note, tt.against)
			}
			if strings.Contains(note, "geheim") {
				t.Errorf("Tighten() shows a secret: %q", note)
			}
			if !slices.Equal(got.Read, tt.read) || !slices.Equal(got.Write, tt.write) || !slices.Equal(got.Hosts, tt.hosts) {
				t.Errorf("Tighten() = read %q, write %q, hosts %q; want %q, %q, %q", got.Read, got.Write, got.Hosts, tt.read, tt.write, tt.hosts)
			}
		})
	}
}
