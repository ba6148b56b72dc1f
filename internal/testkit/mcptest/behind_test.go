package mcptest

import (
	"context"
	"encoding/json"
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

	"ken/capability"
	"ken/internal/testkit"
)

// A use is a call of a server that shows it works. {work} in it stands for the
// folder of the client.
type use struct {
	name, pkg string
	args      []string
	tool      string
	arguments map[string]any
	want      string // in the text of the result
	fails     bool   // and the call does
}

// known are uses of the servers that the first users have. page is the address
// of a page.
func known(page string) []use {
	const filesystem = "@modelcontextprotocol/server-filesystem"
	out := []use{
		{name: "everything", pkg: "@modelcontextprotocol/server-everything", tool: "echo", arguments: map[string]any{"message": "hello there"}, want: "hello there"},
		{name: "filesystem", pkg: filesystem, args: []string{"{work}"}, tool: "read_text_file", arguments: map[string]any{"path": "{work}/note.txt"}, want: "written in a note"},
		// The folder of its arguments counts, and no other.
		{name: "filesystem", pkg: filesystem, args: []string{"{work}"}, tool: "list_allowed_directories", arguments: map[string]any{}, want: "Allowed directories:\n{work}\n"},
		{name: "memory", pkg: "@modelcontextprotocol/server-memory", tool: "create_entities",
			arguments: map[string]any{"entities": []map[string]any{{"name": "ken", "entityType": "program", "observations": []string{"it remembers"}}}}, want: "it remembers"},
	}
	browse := use{name: "playwright", pkg: "@playwright/mcp", args: []string{"--headless", "--isolated"}, tool: "browser_navigate",
		arguments: map[string]any{"url": page}, want: "is not found at", fails: true}
	if chromium, err := exec.LookPath("chromium"); err == nil {
		// The browser's own sandbox and Ken's do not go into each other.
		browse.args = append(browse.args, "--no-sandbox", "--executable-path", chromium)
		browse.want, browse.fails = pageTitle, false
	}
	return append(out, browse)
}

const pageTitle = "A page of this machine"

// TestKnownServers puts them all behind ken mcp, and uses them through its
// menu and natively.
func TestKnownServers(t *testing.T) {
	testkit.Nightly(t, "runs published servers")
	t.Parallel()
	node := node(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "<!DOCTYPE html><title>%s</title><p>Hello</p>", pageTitle)
	}))
	t.Cleanup(web.Close)
	known := known(web.URL)
	for _, surface := range []string{"bridge", "direct"} {
		t.Run(surface, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, allowAll+"mcp: {surface: "+surface+"}\n", nil)
			fill := func(s string) string { return strings.ReplaceAll(s, "{work}", p.work) }
			servers := map[string]definition{}
			for _, k := range known {
				// Without its variable the memory would be a file among its own.
				d := definition{Command: node, Args: []string{script(t, k.pkg, "")}, Env: map[string]string{"MEMORY_FILE_PATH": p.work + "/memory.jsonl"}}
				for _, a := range k.args {
					d.Args = append(d.Args, fill(a))
				}
				servers[k.name] = d
			}
			text, err := json.Marshal(map[string]any{"mcpServers": servers})
			if err != nil {
				t.Fatal(err)
			}
			p.write("mcp.json", text)
			if err := os.WriteFile(filepath.Join(p.work, "note.txt"), []byte("written in a note\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var tools []capability.ID
			for _, k := range known {
				tools = append(tools, capability.ID("mcp:"+k.name+"/"+k.tool))
			}
			p.prepare(tools...)
			// Playwright reaches beyond this machine: that is asked about, and allowed here.
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					select { // a person reads first; Ken takes a faster answer for the client's own
					case <-time.After(1200 * time.Millisecond):
					case <-ctx.Done():
					}
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, nil
				},
			})
			session := p.connect(t.Context(), client, "--standalone")
			for _, k := range known {
				t.Run(k.name+"."+k.tool, func(t *testing.T) {
					arguments, err := json.Marshal(k.arguments)
					if err != nil {
						t.Fatal(err)
					}
					call := &mcp.CallToolParams{Name: native(t, session, k), Arguments: json.RawMessage(fill(string(arguments)))}
					if surface == "bridge" {
						call = &mcp.CallToolParams{Name: "invoke_capability",
							Arguments: map[string]any{"capability": "mcp:" + k.name + "/" + k.tool, "arguments": call.Arguments}}
					}
					res, err := session.CallTool(t.Context(), call)
					if err != nil {
						t.Fatalf("call %s: %v", k.tool, err)
					}
					if got := textOf(res); !strings.Contains(got, fill(k.want)) || res.IsError != k.fails {
						t.Errorf("call %s = %q (failed: %v), want %q in it (failed: %v)", k.tool, got, res.IsError, fill(k.want), k.fails)
					}
				})
			}
		})
	}
}

// native returns the name under which a session has a tool itself: its own, or
// where another server might have that too, with the server's before it. It is
// empty when it has none.
func native(tb testing.TB, session *mcp.ClientSession, k use) string {
	tb.Helper()
	tools := listed(tb, tb.Context(), session)
	for _, name := range []string{k.name + "__" + k.tool, k.tool} {
		if tools[name] != nil {
			return name
		}
	}
	return ""
}

// TestInspector puts the Inspector's own command line in front of ken mcp.
func TestInspector(t *testing.T) {
	testkit.Nightly(t, "runs the Inspector")
	t.Parallel()
	node, inspector := node(t), script(t, "@modelcontextprotocol/inspector", "")
	p := newPlace(t, allowAll+"mcp: {surface: direct}\n", map[string]definition{"fixture": {Command: fixture(t)}})
	p.prepare("mcp:fixture/test_simple_text")
	inspect := func(t *testing.T, args ...string) (out struct {
		Tools   []struct{ Name string }
		Content []struct{ Text string }
	}) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{inspector, "--cli", ken(t), "mcp", "--standalone"}, args...)...)
		cmd.Dir, cmd.Env = p.work, append(p.env(), "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
		cmd.WaitDelay = time.Second
		var stderr strings.Builder
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("inspector %s: %v\n%s%s", strings.Join(args, " "), err, text, &stderr)
		}
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("inspector %s printed %s: %v", strings.Join(args, " "), text, err)
		}
		return out
	}
	var names []string
	for _, tool := range inspect(t, "--method", "tools/list").Tools {
		names = append(names, tool.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "test_simple_text") {
		t.Errorf("inspector lists %q, want test_simple_text among them", names)
	}
	got := inspect(t, "--method", "tools/call", "--tool-name", "test_simple_text").Content
	if len(got) == 0 || got[0].Text != "This is a simple text response for testing." {
		t.Errorf("inspector's call of test_simple_text = %+v", got)
	}
}
