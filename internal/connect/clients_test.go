package connect

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

// TestMain lets the test binary stand for Ken: under that name it is a small
// MCP server, so that clients which start what they list find one.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ken" {
		if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("KEN_CONNECT_LOOP") != "" {
		loop()
		return
	}
	os.Exit(m.Run())
}

// What the clients themselves make of what is written. KEN_CLIENTS is a folder
// with their programs.
func TestRealClients(t *testing.T) {
	testkit.Nightly(t, "starts published clients")
	bin := os.Getenv("KEN_CLIENTS")
	if bin == "" {
		t.Skip("cannot here: there are no clients to ask; KEN_CLIENTS names the folder of their programs, which .ci/clients.sh prints")
	}
	const token = "kent_0123456789abcdef"
	address := serve(t, token)
	tests := []struct {
		client, file, before string
		list                 []string
		stdio, http          []string // all of them are in what the client prints
	}{
		{"claude", ".claude.json", `{"numStartups": 3, "mcpServers": {"moved": {"type": "stdio", "command": "/bin/true", "args": [], "env": {"A_TOKEN": "s3cr3ts3cr3t"}}}}`,
			[]string{"mcp", "get", "ken"}, []string{"Connected", "Type: stdio", "Args: mcp"}, []string{"Type: http", "URL: " + address, "Connected"}},
		{"codex", ".codex/config.toml", "model = \"x\"\n[mcp_servers.moved]\ncommand = \"/bin/true\"\n",
			[]string{"mcp", "get", "ken"}, []string{"transport: stdio", "args: mcp", "enabled: true"}, []string{"transport: streamable_http", "url: " + address, "Authorization"}},
		{"gemini", ".gemini/settings.json", `{"mcpServers": {"moved": {"command": "/bin/true"}}}`,
			[]string{"mcp", "list"}, []string{"ken mcp (stdio)", "- Connected"}, []string{address + " (http)", "- Connected"}},
		{"qwen", ".qwen/settings.json", `{"$version": 4, "mcpServers": {"moved": {"command": "/bin/true"}}}`,
			[]string{"mcp", "list"}, []string{"ken mcp (stdio)", "- Connected"}, []string{address + " (http)", "- Connected"}},
		{"opencode", ".config/opencode/opencode.jsonc", "{\n  // mine\n  \"mcp\": {\"moved\": {\"type\": \"local\", \"command\": [\"/bin/true\"],},},\n}\n",
			[]string{"mcp", "list"}, []string{"✓ ken"}, []string{"✓ ken", address}},
		{"copilot", ".copilot/mcp-config.json", `{"mcpServers": {"moved": {"type": "local", "command": "/bin/true", "args": [], "tools": ["*"]}}}`,
			[]string{"mcp", "get", "ken"}, []string{"Type: local", "ken mcp", "Tools: * (all)"}, []string{"Type: http", "URL: " + address}},
	}
	for _, test := range tests {
		program := filepath.Join(bin, test.client)
		if _, err := os.Stat(program); err != nil {
			t.Run(test.client, func(t *testing.T) {
				t.Skipf("cannot here: KEN_CLIENTS has no %s; .ci/clients.sh installs those with a free licence", test.client)
			})
			continue
		}
		for _, way := range []struct {
			name  string
			want  []string
			entry func(home string) Entry
		}{
			{"stdio", test.stdio, func(home string) Entry { return Entry{Command: filepath.Join(home, "ken")} }},
			{"http", test.http, func(string) Entry { return Entry{URL: address, Token: token} }},
		} {
			t.Run(test.client+"/"+way.name, func(t *testing.T) {
				home := t.TempDir()
				self := testkit.Must(os.Executable())(t)
				testkit.OK(t, os.Symlink(self, filepath.Join(home, "ken")))
				path := filepath.Join(home, test.file)
				testkit.OK(t, writeAll(path, []byte(test.before)))
				p := testkit.Must(Prepare(Options{Where: Where{Client: test.client, Home: home}, Entry: way.entry(home)}))(t)
				keep := memory{}
				testkit.OK(t, Apply(t.Context(), p, keep))
				out := ask(t, home, program, test.list)
				for _, want := range way.want {
					if !strings.Contains(out, want) {
						t.Errorf("%s %v does not say %q:\n%s", test.client, test.list, want, out)
					}
				}
				if strings.Contains(out, "moved") {
					t.Errorf("%s %v still has the moved server:\n%s", test.client, test.list, out)
				}
				// The client may have written to the file by now.
				if done, err := Undo(t.Context(), test.client, keep, false); err != nil {
					t.Errorf("Undo() = %v, %v", done, err)
				}
				if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `moved`) || strings.Contains(string(data), `/ken"`) {
					t.Errorf("after Undo() the file is %s, %v", data, err)
				}
			})
		}
	}
}

// serve is Ken over HTTP, for whoever has the token.
func serve(t *testing.T, token string) (address string) {
	server := newServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" || r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.CloseClientConnections)
	t.Cleanup(ts.Close)
	return ts.URL + "/mcp"
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "ken", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	return server
}

func ask(t *testing.T, home, program string, args []string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "TERM=dumb", "GEMINI_CLI_TRUST_WORKSPACE=true", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s %v: %v", program, args, err)
	}
	t.Logf("%s", out)
	return string(out)
}
