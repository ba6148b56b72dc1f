package mcptest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
)

// allowAll are rules under which every call is made without a question, so that
// a test tests something else.
const allowAll = `policy: {rules: [{id: all, effect: allow}], askAbove: 100}
`

// A place is a user's folder with Ken's configuration in it.
type place struct {
	tb   testing.TB
	home string // KEN_HOME
	work string // where the client is
}

// newPlace makes one with a ken.yaml and, where there are any, servers in
// mcp.json as a client's configuration has them.
func newPlace(tb testing.TB, kenYAML string, servers map[string]definition) *place {
	tb.Helper()
	// A socket's path is short, and the name of a test need not be.
	dir, err := os.MkdirTemp("", "ken")
	if err != nil {
		tb.Fatal(err)
	}
	p := &place{tb: tb, home: filepath.Join(dir, ".ken"), work: filepath.Join(dir, "work")}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{p.home, p.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	p.write("ken.yaml", []byte(kenYAML))
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		tb.Fatal(err)
	}
	p.write("mcp.json", text)
	return p
}

func (p *place) write(name string, text []byte) {
	p.tb.Helper()
	if err := os.WriteFile(filepath.Join(p.home, name), text, 0o600); err != nil {
		p.tb.Fatal(err)
	}
}

func (p *place) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.home), "KEN_HOME=" + p.home, "GORACE=atexit_sleep_ms=0"}
}

func (p *place) ken(args ...string) *exec.Cmd {
	cmd := exec.Command(ken(p.tb), args...)
	cmd.Dir, cmd.Env = p.work, p.env()
	cmd.Stderr = os.Stderr
	return cmd
}

// prepare lets Ken list its servers for the first time, and waits until it has
// these tools, so that what follows finds them at once.
func (p *place) prepare(tools ...capability.ID) {
	p.tb.Helper()
	ken(p.tb) // building it does not count
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "prepare", Version: "1"}, nil)
	session := p.connect(ctx, client, "--standalone")
	defer session.Close()
	for _, id := range tools {
		testkit.Wait(p.tb, string(id)+" comes", func() bool {
			call := &mcp.CallToolParams{Name: "describe_capability", Arguments: map[string]any{"id": id}}
			res, err := session.CallTool(ctx, call)
			if err != nil {
				p.tb.Fatalf("%s did not come: %v", id, err)
			}
			return !res.IsError
		})
	}
}

// serve starts ken serve and returns the address of its MCP and its process.
func (p *place) serve() (url string, process *os.Process) {
	p.tb.Helper()
	url, process, stop := p.serveUntil()
	p.tb.Cleanup(stop)
	return url, process
}

// serveUntil is serve for one who stops it.
func (p *place) serveUntil() (url string, process *os.Process, stop func()) {
	p.tb.Helper()
	cmd := p.ken("serve", "--addr", "127.0.0.1:0", "--json")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			p.tb.Errorf("ken serve ended with %v", err)
		}
	}
	var hello struct{ URL string }
	if err := json.NewDecoder(stdout).Decode(&hello); err != nil {
		stop()
		p.tb.Fatalf("ken serve printed no URL: %v", err)
	}
	return hello.URL + "/mcp", cmd.Process, stop
}

// connect starts ken mcp as a client does and connects to it.
func (p *place) connect(ctx context.Context, client *mcp.Client, args ...string) *mcp.ClientSession {
	p.tb.Helper()
	cmd := p.ken(append([]string{"mcp"}, args...)...)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, nil)
	if err != nil {
		p.tb.Fatalf("connect to ken mcp: %v", err)
	}
	p.tb.Cleanup(func() { session.Close() })
	return session
}
