package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/tokenizer"
)

// A TB is what a [TB] has that starts programs; the command compare has one
// of its own.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
	TempDir() string
}

// programs builds each program of these tests once.
var programs = struct {
	sync.Mutex
	dir  string
	path map[string]string
}{path: map[string]string{}}

// End removes the programs that were built.
func End() {
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
}

func build(tb TB, pkg string) string {
	tb.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.path[pkg]; path != "" {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "mcptest")
		if err != nil {
			tb.Fatal(err)
		}
		programs.dir = dir
	}
	path := filepath.Join(programs.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as released, and already in the build cache
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	programs.path[pkg] = path
	return path
}

func fixture(tb TB) string { return build(tb, "ken/internal/testkit/mcptest/fixture") }

// ken is the program that KEN_TEST_BINARY names, or one built here.
func ken(tb TB) string {
	if path := os.Getenv("KEN_TEST_BINARY"); path != "" {
		return path
	}
	return build(tb, "ken/cmd/ken")
}

// allowAll are rules under which every call is made without a question, so that
// a test tests something else.
const allowAll = `policy: {rules: [{id: all, effect: allow}], askAbove: 100}
`

// definition is how a client's configuration would name a server.
type definition struct {
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Timeout int               `json:"timeout,omitempty"` // milliseconds
}

// A place is a user's folder with Ken's configuration in it.
type place struct {
	tb   TB
	home string // KEN_HOME
	work string // where the client is
}

// newPlace makes one with a ken.yaml and, where there are any, servers in
// mcp.json as a client's configuration has them.
func newPlace(tb TB, kenYAML string, servers map[string]definition) *place {
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
		call := &mcp.CallToolParams{Name: "describe_capability", Arguments: map[string]any{"id": id}}
		var res *mcp.CallToolResult
		var err error
		testkit.Until(func() bool {
			res, err = session.CallTool(ctx, call)
			return err != nil || !res.IsError
		})
		if err != nil || res.IsError {
			p.tb.Fatalf("%s did not come: %v", id, err)
		}
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

// readAll has the second reader read all tools.
func (p *place) readAll(tb TB) {
	tb.Helper()
	p.write("one.jsonl", []byte(`{"id":"1","query":"echo","gold":["mcp:many/echo"]}`+"\n"))
	if err := p.ken("eval", "--queries", filepath.Join(p.home, "one.jsonl")).Run(); err != nil {
		tb.Fatalf("ken eval, which reads all tools: %v", err)
	}
}

// benchTools is how many tools stand behind Ken in the measurements.
const benchTools = 2000

// manyTools is the command of a server with that many, real ones where
// KEN_BENCH has them.
func manyTools(tb TB) []string {
	out := []string{fixture(tb), "-tools", strconv.Itoa(benchTools)}
	if dir := os.Getenv("KEN_BENCH"); dir != "" {
		out = append(out, "-catalog", filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"))
	}
	return out
}

// cpuOf sums what the threads of processes have run. A thread that has ended is
// missing, which Go's hardly ever do.
func cpuOf(tb TB, pids []int) (sum time.Duration) {
	tb.Helper()
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if len(files) == 0 {
			tb.Fatalf("process %d is gone", pid)
		}
		for _, name := range files {
			text, _ := os.ReadFile(name)
			field, _, _ := strings.Cut(string(text), " ")
			ns, _ := strconv.ParseInt(field, 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// residentOf is what processes have in memory, in MB.
func residentOf(tb TB, pids []int) (sum float64) {
	tb.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			tb.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += kb / 1e3
	}
	return sum
}

// menuTokens counts what a model reads of the menu: name, description and
// schema of each tool.
func menuTokens(tb TB, session *mcp.ClientSession) (n int) {
	tb.Helper()
	type tool struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		InputSchema any    `json:"input_schema"`
	}
	for t, err := range session.Tools(tb.Context(), nil) {
		if err != nil {
			tb.Fatal(err)
		}
		text, err := json.Marshal(tool{t.Name, t.Description, t.InputSchema})
		if err != nil {
			tb.Fatal(err)
		}
		n += tokenizer.Count(string(text))
	}
	return n
}

// textOf returns the text of a result.
func textOf(res *mcp.CallToolResult) string {
	var out strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			out.WriteString(t.Text + "\n")
		}
	}
	return out.String()
}
