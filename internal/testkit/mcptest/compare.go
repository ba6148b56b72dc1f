package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

// How much one round asks of each gateway.
const (
	roundCalls = 100 // one after the other
	callers    = 32
	callsEach  = 10 // of each caller
)

// idle is how long nothing is asked before memory is measured.
const idle = 15 * time.Second

// A Comparison says how gateways are compared.
type Comparison struct {
	NPM      string // the folder with the packages of testdata/compare; may be empty
	Gateways string // NAME=COMMAND on each line, with the command of the server in $SITE
	Rounds   int    // of calls
	Page     string // the file to write
}

// Compare makes the same calls of the same server through Ken and through other
// gateways, in turns, and writes a page about it. Other gateways speak MCP on their
// standard input and output.
func Compare(tb TB, how Comparison) {
	contenders := contendersOf(tb, how)
	defer func() {
		for _, c := range contenders {
			c.stop()
		}
	}()
	for _, c := range contenders {
		c.start(tb)
		c.tokens = menuTokens(tb, c.session)
		c.round(tb) // starts what is not yet
		c.took, c.together, c.cpu, c.busy = nil, nil, 0, 0
	}
	for range how.Rounds {
		for _, c := range contenders {
			c.round(tb)
		}
	}
	time.Sleep(idle)
	for _, c := range contenders {
		c.memory = residentOf(tb, c.between())
	}
	how.write(tb, contenders)
}

// A contender is a gateway and what was measured of it.
type contender struct {
	name, version string
	http          bool
	command       func() *exec.Cmd // starts the gateway; with http, at addr
	addr          string           // where it listens, with http
	call          func(i int) *mcp.CallToolParams
	site          string // the server behind it

	session *mcp.ClientSession
	process *os.Process
	ended   <-chan struct{} // closed when the process has, with http

	firstCall time.Duration   // from the start to the first answer
	took      []time.Duration // by calls one after the other
	together  []time.Duration // by calls of many at once
	busy      time.Duration   // the time of all of those
	cpu       time.Duration   // of the calls one after the other
	tokens    int
	memory    float64 // MB
}

func echo(i int) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": fmt.Sprint("say this again, number ", i)}}
}

// echoAs is echo of a gateway that has other names for tools.
func echoAs(name string) func(i int) *mcp.CallToolParams {
	return func(i int) *mcp.CallToolParams {
		call := echo(i)
		call.Name = name
		return call
	}
}

func echoByKen(i int) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:many/echo", "arguments": echo(i).Arguments}}
}

// contendersOf returns the gateways, the ones from npm only if they are installed.
func contendersOf(t TB, how Comparison) []*contender {
	// All tools are on one page: some gateways read only the first.
	many := append(manyTools(t), "-page", strconv.Itoa(2*benchTools))
	relay := build(t, "ken/internal/testkit/mcptest/relay")
	settings := allowAll + "mcp: {surface: bridge}\nserve: {auth: off}\n"
	servers := map[string]definition{"many": {Command: many[0], Args: many[1:]}}
	stdio, web := newPlace(t, settings, servers), newPlace(t, settings, servers)
	for _, p := range []*place{stdio, web} {
		p.prepare("mcp:many/echo")
		p.readAll(t) // in the background otherwise, at the cost of the first calls
	}
	relayAddr, kenAddr := freeAddr(t), freeAddr(t)
	version := kenVersion(t)
	out := []*contender{
		{name: "pass-through on the same SDK, stdio", version: "-", call: echo, command: func() *exec.Cmd { return exec.Command(relay, many...) }},
		{name: "Ken, stdio (`ken mcp --standalone`)", version: version, call: echoByKen, command: func() *exec.Cmd { return stdio.ken("mcp", "--standalone") }},
		{name: "pass-through on the same SDK, HTTP", version: "-", http: true, addr: relayAddr, call: echo, command: func() *exec.Cmd {
			return exec.Command(relay, append([]string{"-http", relayAddr}, many...)...)
		}},
		{name: "Ken, HTTP (`ken serve`)", version: version, http: true, addr: kenAddr, call: echoByKen, command: func() *exec.Cmd { return web.ken("serve", "--addr", kenAddr) }},
	}
	if how.NPM != "" {
		out = append(out, fromNpm(t, how.NPM, many)...)
	}
	for line := range strings.Lines(how.Gateways) {
		name, command, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		out = append(out, &contender{name: name, version: "-", call: echo, command: func() *exec.Cmd {
			cmd := exec.Command("/bin/sh", "-c", command)
			cmd.Env = append(os.Environ(), "SITE="+strings.Join(many, " "))
			return cmd
		}})
	}
	for _, c := range out {
		c.site = many[0]
	}
	return out
}

// fromNpm returns the gateways of testdata/compare.
func fromNpm(t TB, dir string, many []string) []*contender {
	node := func(pkg, script string, args ...string) *exec.Cmd {
		cmd := exec.Command("node", append([]string{filepath.Join(dir, "node_modules", pkg, script)}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		return cmd
	}
	config := filepath.Join(t.TempDir(), "servers.json")
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]definition{"many": {Command: many[0], Args: many[1:]}}})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	proxyAddr, hubAddr := freeAddr(t), freeAddr(t)
	proxy := &contender{name: "mcp-proxy, HTTP", version: npmVersion(t, dir, "mcp-proxy"), http: true, addr: proxyAddr, call: echo}
	proxy.command = func() *exec.Cmd {
		_, port, _ := net.SplitHostPort(proxyAddr)
		args := append([]string{"--host", "127.0.0.1", "--port", port, "--server", "stream", "--"}, many...)
		return node("mcp-proxy", "dist/bin/mcp-proxy.mjs", args...)
	}
	hub := &contender{name: "mcp-hub, HTTP", version: npmVersion(t, dir, "mcp-hub"), http: true, addr: hubAddr, call: echoAs("many__echo")}
	hub.command = func() *exec.Cmd {
		_, port, _ := net.SplitHostPort(hubAddr)
		return node("mcp-hub", "dist/cli.js", "--port", port, "--config", config)
	}
	return []*contender{proxy, hub}
}

func npmVersion(t TB, dir, pkg string) string {
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", pkg, "package.json"))
	if err != nil {
		t.Fatalf("%s is not installed below -npm: %v", pkg, err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p.Version
}

func kenVersion(t TB) string {
	out, err := exec.Command(ken(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "ken ")
}

// freeAddr returns an address that nothing listens on.
func freeAddr(t TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a gateway and measures how long its first call takes.
func (c *contender) start(t TB) {
	t.Helper()
	begin := time.Now()
	cmd := c.command()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "compare", Version: "1"}, nil)
	var err error
	if c.http {
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.process = cmd.Process
		ended := make(chan struct{})
		c.ended = ended
		go func() {
			defer close(ended)
			_ = cmd.Wait() // it is told to end
		}()
		for c.session == nil && ctx.Err() == nil { // it may listen before it can answer
			if c.session, err = c.connectHTTP(ctx, client); err != nil {
				pause(ctx)
			}
		}
		if err != nil {
			t.Logf("%s wrote:\n%s", c.name, &said)
		}
	} else {
		c.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	}
	if err != nil {
		t.Fatalf("connect to %s: %v", c.name, err)
	}
	c.process = cmd.Process
	for {
		res, err := c.session.CallTool(ctx, c.call(0))
		if err == nil && !res.IsError {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%s does not answer a call: %v %v", c.name, err, res)
		}
		pause(ctx)
	}
	c.firstCall = time.Since(begin)
}

// connectHTTP connects by the newer way of HTTP, and by SSE where a gateway has
// only that.
func (c *contender) connectHTTP(ctx context.Context, client *mcp.Client) (*mcp.ClientSession, error) {
	url := "http://" + c.addr + "/mcp"
	many := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	session, err := client.Connect(context.WithoutCancel(ctx), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: many}, nil)
	if err == nil {
		return session, nil
	}
	session, second := client.Connect(context.WithoutCancel(ctx), &mcp.SSEClientTransport{Endpoint: url, HTTPClient: many}, nil)
	if second != nil {
		return nil, errors.Join(err, second)
	}
	return session, nil
}

// pause waits between two looks at what another program does.
func pause(ctx context.Context) {
	tick := time.NewTimer(5 * time.Millisecond)
	defer tick.Stop()
	select {
	case <-tick.C:
	case <-ctx.Done():
	}
}

func (c *contender) stop() {
	if c.session != nil {
		c.session.Close()
	}
	if c.http && c.process != nil {
		for _, pid := range slices.Backward(family(c.process.Pid)) {
			if p, err := os.FindProcess(pid); err == nil {
				p.Signal(os.Interrupt)
			}
		}
		select {
		case <-c.ended:
		case <-time.After(idle):
		}
	}
}

// round makes the calls of one round.
func (c *contender) round(t TB) {
	t.Helper()
	before := cpuOf(t, c.between())
	for i := range roundCalls {
		took, err := c.once(t.Context(), i)
		if err != nil {
			t.Fatalf("%s: call %d: %v", c.name, i, err)
		}
		c.took = append(c.took, took)
	}
	c.cpu += cpuOf(t, c.between()) - before

	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	begin := time.Now()
	for caller := range callers {
		all.Go(func() {
			for i := range callsEach {
				took, err := c.once(t.Context(), caller*callsEach+i)
				mu.Lock()
				c.together = append(c.together, took)
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	c.busy += time.Since(begin)
	if failed != nil {
		t.Fatalf("%s: calls of %d at once: %v", c.name, callers, failed)
	}
}

func (c *contender) once(ctx context.Context, i int) (time.Duration, error) {
	begin := time.Now()
	res, err := c.session.CallTool(ctx, c.call(i))
	if err == nil && res.IsError {
		err = errors.New(textOf(res))
	}
	return time.Since(begin), err
}

// between returns the processes of a gateway, without the server behind it.
func (c *contender) between() (out []int) {
	site, err := os.Stat(c.site)
	if err != nil {
		return nil
	}
	for _, pid := range family(c.process.Pid) {
		if exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && !os.SameFile(exe, site) {
			out = append(out, pid)
		}
	}
	return out
}

// family returns a process and all that it started, and those they did.
func family(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", out[i]))
		for _, name := range files {
			text, _ := os.ReadFile(name)
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil && !slices.Contains(out, child) {
					out = append(out, child)
				}
			}
		}
	}
	return out
}

// at returns the time that a share of all took at most, in ms.
func at(took []time.Duration, share float64) float64 {
	slices.Sort(took)
	return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1e3
}

// A measure is a column of the comparison.
type measure struct {
	title  string
	format string
	of     func(c *contender) float64
	more   bool // more is better
}

var measures = []measure{
	{"CPU per call, ms", "%.2f", func(c *contender) float64 { return float64(c.cpu.Microseconds()) / 1e3 / float64(len(c.took)) }, false},
	{"p50, ms", "%.1f", func(c *contender) float64 { return at(c.took, .5) }, false},
	{"p99, ms", "%.1f", func(c *contender) float64 { return at(c.took, .99) }, false},
	{"calls/s, 32 callers", "%.0f", func(c *contender) float64 { return float64(len(c.together)) / c.busy.Seconds() }, true},
	{"p99 with 32 callers, ms", "%.0f", func(c *contender) float64 { return at(c.together, .99) }, false},
	{"start to first answer, ms", "%.0f", func(c *contender) float64 { return float64(c.firstCall.Milliseconds()) }, false},
	{"memory 15 s later, MB", "%.0f", func(c *contender) float64 { return c.memory }, false},
	{"tokens of the menu", "%.0f", func(c *contender) float64 { return float64(c.tokens) }, false},
}

// write writes the page.
func (how Comparison) write(t TB, contenders []*contender) {
	t.Helper()
	var b strings.Builder
	texts := "made-up tools"
	if os.Getenv("KEN_BENCH") != "" {
		texts = "the names, descriptions and schemas of real tools"
	}
	fmt.Fprintf(&b, `# Benchmarks

`+"`make compare`"+` measures Ken beside other gateways and writes this page. Each gateway has the same
server behind it, with %d tools (%s), all in one page of
its list. The gateways take turns and call the server's tool `+"`echo`"+` in one session. There are %d rounds.
In each round, one caller makes %d calls in a row. Then %d callers make %d calls each at the same time.

Ken decides each call by its rules (here one rule, which allows everything) and writes it to its audit log
on disk before it answers. Over HTTP it asks for no token (`+"`serve.auth: off`"+`). It has started before, so its
caches are filled, and its second reader has read all tools. The pass-through is the smallest program on
the SDK that Ken uses; it checks and records nothing. It is there to show what the protocol alone costs.

Measured on %s on %d cores of %s, %s. CPU is the processor time of all processes
between client and server, the helpers of Ken's sandbox included. Memory is that of the same processes,
15 seconds after the last call. The menu is what `+"`tools/list`"+` returns: names, descriptions and input schemas.
Compare only rows of this page: another machine, or this one with other work to do, has other numbers.

`, benchTools, texts, how.Rounds, roundCalls, callers, callsEach, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), processor(), runtime.Version())
	b.WriteString("| gateway | version |")
	for _, m := range measures {
		fmt.Fprintf(&b, " %s |", m.title)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(measures)) + "\n")
	for _, c := range contenders {
		fmt.Fprintf(&b, "| %s | %s |", c.name, c.version)
		for _, m := range measures {
			fmt.Fprintf(&b, " "+m.format+" |", m.of(c))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n## Where others are ahead of Ken\n\n")
	for _, web := range []bool{false, true} {
		for _, m := range measures {
			if line := aheadOfKen(contenders, m, web); line != "" {
				b.WriteString("- " + line + "\n")
			}
		}
	}
	b.WriteString(`
## Measuring another gateway

` + "`make compare GATEWAYS='NAME=COMMAND'`" + ` adds a gateway that speaks MCP on its standard input and
output and keeps the names of tools. ` + "`$SITE`" + ` in the command is the command of the server. The
gateways from npm are in ` + "`testdata/compare/package.json`" + `. They run without a network other than
loopback.
`)
	if err := os.WriteFile(how.Page, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", b.String())
}

// aheadOfKen lists the gateways of one transport that have a better value than Ken, or
// returns "" if there are none.
func aheadOfKen(contenders []*contender, m measure, web bool) string {
	var ken *contender
	var ahead []string
	for _, c := range contenders {
		if c.http == web && strings.HasPrefix(c.name, "Ken,") {
			ken = c
		}
	}
	for _, c := range contenders {
		if c.http == web && (m.more && m.of(c) > m.of(ken) || !m.more && m.of(c) < m.of(ken)) {
			ahead = append(ahead, fmt.Sprintf("%s "+m.format, strings.TrimSuffix(strings.TrimSuffix(c.name, ", stdio"), ", HTTP"), m.of(c)))
		}
	}
	if len(ahead) == 0 {
		return ""
	}
	transport := "stdio"
	if web {
		transport = "HTTP"
	}
	return fmt.Sprintf("%s, over %s: Ken "+m.format+", %s.", m.title, transport, m.of(ken), strings.Join(ahead, ", "))
}

// processor names the processor.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
