package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

const serversText = `mcp:
  surface: bridge
  pinned: ["mcp:files/read"]
  new: accept
  changed: accept
  idle: 0s
  import: [~/other.json]
  servers:
    wiki:
      url: https://wiki.example.com/mcp
      transport: sse
      headers: {X-Team: "${TEAM}"}
      clientId: abc
      scopes: [read]
      scope: shared
    files:
      command: npx
      args: [-y, server-files, 007, "", true]
      env: {API_KEY: hunter2, MODE: "${MODE}"}
      cwd: ~/data
      scope: session
      profile: confined
      read: [/srv]
      write: [~/out]
      hosts: [api.example.com]
      timeout: 5s
      startTimeout: 2m
      concurrent: 3
      include: ["read_*"]
      exclude: [read_all]
      disabled: true
`

// TestMCP reads every key of the section, and shows no value that could be a
// secret.
func TestMCP(t *testing.T) {
	places, home, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	write(t, file, serversText)
	got, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	want := MCP{
		Surface: SurfaceBridge, Pinned: []string{"mcp:files/read"}, New: PinAccept, Changed: PinAccept, Instructions: 500, Registry: "https://registry.modelcontextprotocol.io", MaxTools: 10_000, Import: []string{filepath.Join(home, "other.json")},
		Servers: []Server{
			{
				Name: "files", Command: "npx", Args: []string{"-y", "server-files", "007", "", "true"}, Env: map[string]string{"API_KEY": "hunter2", "MODE": "${MODE}"},
				Cwd: filepath.Join(home, "data"), Scope: ScopeSession, Profile: ProfileConfined, Read: []string{"/srv"}, Write: []string{filepath.Join(home, "out")},
				Hosts: []string{"api.example.com"}, Timeout: 5 * time.Second, StartTimeout: 2 * time.Minute, Concurrent: 3,
				Include: []string{"read_*"}, Exclude: []string{"read_all"}, Disabled: true, Origin: capability.Origin{Path: file, Line: 16},
			},
			{
				Name: "wiki", URL: "https://wiki.example.com/mcp", Transport: TransportSSE, Headers: map[string]string{"X-Team": "${TEAM}"},
				ClientID: "abc", Scopes: []string{"read"}, Scope: ScopeShared, Origin: capability.Origin{Path: file, Line: 9},
			},
		},
	}
	if !reflect.DeepEqual(got.MCP, want) {
		t.Errorf("MCP = %+v\nwant %+v", got.MCP, want)
	}
	shown, origin, err := got.Explain("mcp.servers")
	if err != nil || strings.Contains(shown, "hunter2") || !strings.Contains(shown, "${MODE}") || origin != file+":8" {
		t.Errorf("Explain(mcp.servers) = %s, %s, %v", shown, origin, err)
	}
}

// TestServersRefused: what is wrong with a server is told, and a project starts
// none.
func TestServersRefused(t *testing.T) {
	places, _, _ := at(t)
	own, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	for _, test := range []struct{ own, project, want string }{
		{"{a: {}}", "", "says neither command nor url"},
		{"{a: {command: x, url: https://b}}", "", "both a command and a url"},
		{"{a: {command: x, headers: {A: b}}}", "", "words about an address"},
		{"{a: {url: https://b, args: [x]}}", "", "words about a program"},
		{"{a: {url: http://example.com}}", "", "unprotected over the network"},
		{"{a: {url: ftp://example.com}}", "", "is not an address"},
		{"{a: {url: http://127.0.0.1:1/mcp}}", "", ""},
		{"{a: {url: https://b, oauth: {grant: client-credentials, clientSecret: hunter2}}}", "", "has a secret in oauth itself"},
		{"{a: {url: https://b, oauth: {secret: x}}}", "", "mcp.servers.a.oauth.secret"},
		{"{a: {command: x, oauth: {grant: jwt-bearer}}}", "", "words about an address"},
		{`{a: {url: https://b, clientId: k, oauth: {grant: client-credentials, issuer: https://c, clientSecret: "${secret:s}"}}}`, "", ""},
		{"{a: {command: x, read: [/a]}}", "", "is not confined"},
		{"{a: {command: x, env: {A-B: c}}}", "", "is not the name of a variable"},
		{"{a: {command: x, env: {A: [c]}}}", "", "mcp.servers.a.env.A"},
		{"{a: {command: x, args: [{}]}}", "", "mcp.servers.a.args[0]"},
		{"{a: {command: x, scope: everyone}}", "", "everyone"},
		{"{a: {comand: x}}", "", "did you mean mcp.servers.a.command?"},
		{"{a/b: {command: x}}", "", "is not the name of a server"},
		{"{a: x}", "", "must be a map"},
		{"{}", "{a: {command: x}}", "mcp.servers"},
		{"{a: {command: x, env: {A: b}}}", "{a: {command: x, env: {A: c}}}", "mcp.servers"},
		{"{a: {command: x, env: {A: b}}}", "{a: {command: x, env: {A: b}}}", ""},
	} {
		write(t, own, "mcp: {servers: "+test.own+"}\n")
		write(t, project, "")
		if test.project != "" {
			write(t, project, "mcp: {servers: "+test.project+"}\n")
		}
		_, err := Load(places, "")
		switch {
		case test.want == "" && err != nil:
			t.Errorf("Load(%s, %s) = %v, want none", test.own, test.project, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("Load(%s, %s) = %v, want %q", test.own, test.project, err, test.want)
		}
	}
}
