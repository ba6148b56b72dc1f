//lint:file-ignore SA1019 servers list more to clients that can sample

package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/testkit"
)

// TestFortyServers starts every server of the sample twice, plainly and behind
// a gateway under its defaults, and compares what they list.
func TestFortyServers(t *testing.T) {
	testkit.Nightly(t, "runs published servers")
	t.Parallel()
	npmDir(t) // skips them all at once
	servers := sample(t)
	if len(servers) != 40 {
		t.Errorf("servers.json has %d servers, want 40", len(servers))
	}
	for _, p := range servers {
		t.Run(strings.ReplaceAll(p.Package, "/", "."), func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			d := p.define(t, work)
			want := plainly(t, d, work)
			if len(want) != p.Tools {
				t.Errorf("%s lists %d tools, and servers.json says %d", p.Package, len(want), p.Tools)
			}
			got := behind(t, d, work)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if g, ok := got[name]; !ok {
					t.Errorf("behind the gateway %s is missing", name)
				} else if diff := compare(want[name], g); diff != "" {
					t.Errorf("behind the gateway %s differs: %s", name, diff)
				}
				delete(got, name)
			}
			for name := range got {
				t.Errorf("behind the gateway there is also %s", name)
			}
		})
	}
}

// A listing is what a catalog has of a tool.
type listing struct {
	description string
	schema      json.RawMessage
}

// behind starts a server in a gateway and returns what the gateway offers of it.
func behind(tb testing.TB, d definition, work string) map[string]listing {
	tb.Helper()
	g, err := mcpgateway.New(mcpgateway.Config{
		Servers: []mcpgateway.Server{{Name: "it", Command: d.Command, Args: d.Args, Env: d.Env, Cwd: work, Trust: capability.TrustUser}},
		Work:    tb.TempDir(),
		Path:    filepath.Dir(d.Command) + ":/usr/bin:/bin",
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer g.Close()
	st := g.List(tb.Context(), "it")[0]
	if st.Err != "" {
		tb.Fatalf("list behind the gateway: %s\nfix: %s\nstderr: %s", st.Err, st.Fix, st.Stderr)
	}
	if st.Noise > 0 {
		tb.Logf("%d lines on its standard output were no messages, as %q", st.Noise, st.NoiseSample)
	}
	source := g.Sources()[0]
	batch, err := source.Load(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range batch.Problems {
		tb.Logf("problem: %+v", p)
	}
	out := map[string]listing{}
	for _, c := range batch.Capabilities {
		if c.Run == nil || c.Run.Runner != "mcp.call" {
			continue
		}
		detail, err := source.(capability.Detailer).Detail(tb.Context(), c)
		if err != nil {
			tb.Fatalf("schema of %s: %v", c.ID, err)
		}
		out[strings.TrimPrefix(string(c.ID), "mcp:it/")] = listing{c.Description, detail.Schema}
	}
	return out
}

// compare says how a tool differs from what the server said, or nothing.
func compare(want *mcp.Tool, got listing) string {
	if got.description != want.Description {
		return fmt.Sprintf("description %q, want %q", got.description, want.Description)
	}
	a, err := json.Marshal(want.InputSchema)
	if err != nil {
		return err.Error()
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(got.schema, &y) != nil || !reflect.DeepEqual(x, y) {
		return fmt.Sprintf("schema %s, want %s", got.schema, a)
	}
	return ""
}

// A published server is one line of servers.json: how it is started, and what
// it then offers.
type published struct {
	Package string            `json:"package"`
	Version string            `json:"version"`
	Bin     string            `json:"bin,omitempty"`
	Args    []string          `json:"args,omitempty"` // {work} is an empty folder
	Env     map[string]string `json:"env,omitempty"`  // made-up keys
	Tools   int               `json:"tools"`
}

// sample reads servers.json.
func sample(tb testing.TB) []published {
	tb.Helper()
	data, err := os.ReadFile("servers.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out []published
	if err := json.Unmarshal(data, &out); err != nil {
		tb.Fatalf("servers.json: %v", err)
	}
	return out
}

// define returns how the server is started with work as its folder.
func (p published) define(tb testing.TB, work string) definition {
	tb.Helper()
	args := []string{script(tb, p.Package, p.Bin)}
	for _, a := range p.Args {
		args = append(args, strings.ReplaceAll(a, "{work}", work))
	}
	env := map[string]string{"HOME": work}
	for k, v := range p.Env {
		env[k] = strings.ReplaceAll(v, "{work}", work)
	}
	return definition{Command: node(tb), Args: args, Env: env}
}

// command returns the process of a definition, with nothing else in its
// environment but the path.
func (d definition) command(ctx context.Context, work string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.Command, d.Args...)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + filepath.Dir(d.Command) + ":/usr/bin:/bin"}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		cmd.Env = append(cmd.Env, k+"="+d.Env[k])
	}
	return cmd
}

// plainly starts a server as a client without Ken would, and returns its tools.
func plainly(tb testing.TB, d definition, work string) map[string]*mcp.Tool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), testkit.Patience)
	defer cancel()
	cmd := d.command(ctx, work)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	session, err := fullClient().Connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(messages(stdout)), Writer: stdin}, nil)
	if err != nil {
		tb.Fatalf("connect plainly: %v", err)
	}
	defer session.Close()
	return listed(tb, ctx, session)
}

// fullClient is a client with every capability but roots, as Ken is to servers:
// some list more to one that can be asked.
func fullClient() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "plain", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Sampling:    &mcp.SamplingCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return nil, errors.New("no model here")
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
}

// messages leaves out lines that are no messages, as most clients do.
func messages(r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			if json.Valid(line) {
				if _, err := in.Write(line); err != nil {
					return
				}
			}
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

// listed returns the tools of a session by name.
func listed(tb testing.TB, ctx context.Context, session *mcp.ClientSession) map[string]*mcp.Tool {
	tb.Helper()
	out := map[string]*mcp.Tool{}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			tb.Fatalf("tools/list: %v", err)
		}
		out[t.Name] = t
	}
	return out
}
