package mcptest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/know/reader"
	"ken/internal/testkit"
	"ken/internal/tokenizer"
)

// A bench is a daemon of Ken with the tools behind it.
type bench struct {
	*place
	daemon *os.Process
}

// newBench starts a daemon that has listed its server before. reader is a
// value of discovery.reader; with auto, the second reader has read all tools
// before. There are so many other servers with twenty tools each.
func newBench(b *testing.B, reader string, others int) *bench {
	b.Helper()
	many := manyTools(b)
	servers := map[string]definition{"many": {Command: many[0], Args: many[1:]}}
	listed := []capability.ID{"mcp:many/echo"}
	for i := range others {
		name := "other" + strconv.Itoa(i)
		servers[name] = definition{Command: many[0], Args: []string{"-tools", "20"}}
		listed = append(listed, capability.ID("mcp:"+name+"/echo"))
	}
	p := newPlace(b, allowAll+"mcp: {surface: bridge}\ndiscovery: {reader: "+reader+"}\n", servers)
	p.prepare(listed...)
	if reader == "auto" {
		p.readAll(b)
	}
	cmd := p.ken("serve", "--daemon")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	socket := filepath.Join(p.home, "ken.sock")
	testkit.Wait(b, "ken serve --daemon has a socket", func() bool { _, err := os.Stat(socket); return err == nil })
	return &bench{p, cmd.Process}
}

// A peer is a session and the processes between it and the server that answers.
type peer struct {
	session *mcp.ClientSession
	between []int
	call    func(i int) *mcp.CallToolParams
	took    []time.Duration
	cpu     time.Duration
}

func dial(b *testing.B, cmd *exec.Cmd) *mcp.ClientSession {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatalf("connect to %s: %v", cmd, err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

// run makes a number of calls and adds up what they took.
func (p *peer) run(b *testing.B, n int) {
	b.Helper()
	before := p.cpuTime(b)
	for i := range n {
		start := time.Now()
		res, err := p.session.CallTool(b.Context(), p.call(i))
		p.took = append(p.took, time.Since(start))
		if err != nil {
			b.Fatalf("call: %v", err)
		}
		if res.IsError {
			b.Fatalf("call %d: %s", i, textOf(res))
		}
	}
	p.cpu += p.cpuTime(b) - before
}

// perCall is the processor time of a call in microseconds, and the median of
// what a caller waits.
func (p *peer) perCall() (cpu, p50 float64) {
	slices.Sort(p.took)
	n := len(p.took)
	return float64(p.cpu.Nanoseconds()) / 1e3 / float64(n), float64(p.took[n/2].Nanoseconds()) / 1e3
}

// cpuTime sums what the processes between client and server have run.
func (p *peer) cpuTime(b *testing.B) time.Duration {
	b.Helper()
	return cpuOf(b, p.between)
}

// BenchmarkMCPCall makes the same call of the same server directly, through the
// least that could stand between, and through Ken, in turns. Ken decides on
// each, and has it in its record on disk before it is answered.
func BenchmarkMCPCall(b *testing.B) {
	many := manyTools(b)
	arguments := func(i int) map[string]any { return map[string]any{"text": fmt.Sprint("say this again, number ", i)} }
	native := func(i int) *mcp.CallToolParams { return &mcp.CallToolParams{Name: "echo", Arguments: arguments(i)} }

	direct := &peer{session: dial(b, exec.Command(many[0], many[1:]...)), call: native}
	relayed := exec.Command(build(b, "ken/internal/testkit/mcptest/relay"), many...)
	relay := &peer{session: dial(b, relayed), call: native, between: []int{relayed.Process.Pid}}
	k := newBench(b, "fast", 0)
	shim := k.ken("mcp")
	ken := &peer{session: dial(b, shim), between: []int{k.daemon.Pid, shim.Process.Pid}, call: func(i int) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:many/echo", "arguments": arguments(i)}}
	}}
	peers := []*peer{direct, relay, ken}
	for _, p := range peers {
		p.run(b, 50) // starts what is not yet
		p.took, p.cpu = nil, 0
	}
	for b.Loop() {
		for _, p := range peers {
			p.run(b, 100)
		}
	}
	_, plain := direct.perCall()
	relayCPU, relayed50 := relay.perCall()
	kenCPU, ken50 := ken.perCall()
	b.ReportMetric(kenCPU/1e3, "cpu-ms")
	b.ReportMetric(kenCPU/relayCPU, "cpu-x-relay")
	b.ReportMetric((ken50-plain)/1e3, "p50-ms-added")
	b.ReportMetric(plain/1e3, "direct-p50-ms")
	b.ReportMetric((relayed50-plain)/1e3, "relay-p50-ms-added")
	b.ReportMetric(relayCPU/1e3, "relay-cpu-ms")
}

// BenchmarkMCPHTTP makes the same calls and searches over HTTP: through the least
// that could stand between, and through ken serve, in turns. It reports what a call
// leaves behind as garbage, too, as the server counts it, and both for a client of an
// older protocol, with a session.
func BenchmarkMCPHTTP(b *testing.B) {
	many := manyTools(b)
	arguments := func(i int) map[string]any { return map[string]any{"text": fmt.Sprint("say this again, number ", i)} }
	cmd := exec.Command(build(b, "ken/internal/testkit/mcptest/relay"), append([]string{"-http", "127.0.0.1:0"}, many...)...)
	relay := &peer{session: dialHTTP(b, startCommand(b, cmd), ""), between: []int{cmd.Process.Pid}, call: func(i int) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "echo", Arguments: arguments(i)}
	}}
	p := newPlace(b, allowAll+"mcp: {surface: bridge}\ndiscovery: {reader: fast}\nserve: {auth: off}\n", map[string]definition{"many": {Command: many[0], Args: many[1:]}})
	p.prepare("mcp:many/echo")
	url, process := p.serve()
	session := dialHTTP(b, url, "")
	call := &peer{session: session, between: []int{process.Pid}, call: func(i int) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:many/echo", "arguments": arguments(i)}}
	}}
	older := &peer{session: dialHTTP(b, url, "2025-11-25"), between: call.between, call: call.call}
	find := &peer{session: session, between: []int{process.Pid}, call: func(i int) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "discover_capabilities", Arguments: map[string]any{"query": wishes[i%len(wishes)]}}
	}}
	for _, p := range []*peer{relay, call, find, older} {
		p.run(b, 50) // starts what is not yet
		p.took, p.cpu = nil, 0
	}
	// The server counts its own time, with that of threads that have ended.
	var callCPU, findCPU, garbage, olderCPU, olderGarbage float64
	const cpu, bytes = "process_cpu_seconds_total", "go_memstats_alloc_bytes_total"
	for b.Loop() {
		relay.run(b, 100)
		first := counters(b, url)
		call.run(b, 100)
		second := counters(b, url)
		find.run(b, 100)
		third := counters(b, url)
		older.run(b, 100)
		fourth := counters(b, url)
		olderCPU += fourth[cpu] - third[cpu]
		olderGarbage += fourth[bytes] - third[bytes]
		callCPU += second[cpu] - first[cpu]
		findCPU += third[cpu] - second[cpu]
		garbage += second[bytes] - first[bytes]
	}
	relayCPU, _ := relay.perCall()
	_, call50 := call.perCall()
	_, find50 := find.perCall()
	calls := float64(len(call.took))
	b.ReportMetric(callCPU*1e3/calls, "cpu-ms")
	b.ReportMetric(callCPU*1e6/calls/relayCPU, "cpu-x-relay")
	b.ReportMetric(relayCPU/1e3, "relay-cpu-ms")
	b.ReportMetric(call50/1e3, "p50-ms")
	b.ReportMetric(garbage/1e3/calls, "garbage-kB")
	b.ReportMetric(olderCPU*1e3/calls, "session-cpu-ms")
	b.ReportMetric(olderGarbage/1e3/calls, "session-garbage-kB")
	b.ReportMetric(findCPU*1e3/calls, "find-cpu-ms")
	b.ReportMetric(find50/1e3, "find-p50-ms")
}

// dialHTTP connects with a version of the protocol; empty is the newest.
func dialHTTP(b *testing.B, url, version string) *mcp.ClientSession {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.Fatalf("connect to %s: %v", url, err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

// counters reads the numbers that ken serve has without labels.
func counters(b *testing.B, url string) map[string]float64 {
	b.Helper()
	res, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// wishes are what people ask for; each is searched once before it comes again.
var wishes = []string{
	"open an issue about the login page", "what changed in the last deployment", "send the report to the team channel",
	"find flights to Lisbon next week", "translate this paragraph", "list the containers that use most memory",
	"make a chart of sales by month", "delete the old branches", "read the notes about the meeting",
	"add a row to the customers table", "take a screenshot of the page", "who is on call tonight",
	"convert this PDF to text", "search the web for recent papers on retrieval", "create a calendar event for Friday",
	"show slow queries in the database", "invite Ada to the workspace", "upload the logo", "summarize the open tickets",
	"restart the payment service",
}

// BenchmarkMCPFind searches through the menu of a client, with the small model
// alone.
func BenchmarkMCPFind(b *testing.B) {
	benchFind(b, "fast", func(i int) string { return wishes[i%len(wishes)] })
}

// BenchmarkMCPFindRead is the same with the second reader, as by default. No
// message comes twice: the vectors of messages are remembered.
func BenchmarkMCPFindRead(b *testing.B) {
	if !reader.Supported() {
		b.Skip("cannot here: there are no kernels for this processor")
	}
	n := 0
	benchFind(b, "auto", func(i int) string {
		n++
		return fmt.Sprintf("%s, as in note %d", wishes[i%len(wishes)], n)
	})
}

func benchFind(b *testing.B, reader string, wish func(i int) string) {
	k := newBench(b, reader, 0)
	shim := k.ken("mcp")
	p := &peer{session: dial(b, shim), between: []int{k.daemon.Pid, shim.Process.Pid}}
	p.call = func(i int) *mcp.CallToolParams {
		return &mcp.CallToolParams{Name: "discover_capabilities", Arguments: map[string]any{"query": wish(i)}}
	}
	p.run(b, len(wishes))
	p.took, p.cpu = nil, 0
	var most int
	for i := range wishes {
		res, err := p.session.CallTool(b.Context(), p.call(i))
		if err != nil || res.IsError {
			b.Fatalf("find: %v %v", err, res)
		}
		most = max(most, tokenizer.Count(textOf(res)))
	}
	for b.Loop() {
		p.run(b, len(wishes))
	}
	cpu, p50 := p.perCall()
	b.ReportMetric(cpu/1e3, "cpu-ms")
	b.ReportMetric(p50/1e3, "p50-ms")
	b.ReportMetric(float64(most), "most-tokens")
	b.ReportMetric(float64(menuTokens(b, p.session)), "menu-tokens")
}

// BenchmarkMCPConnect starts a client's ken mcp, up to its list of tools, while
// the daemon runs.
func BenchmarkMCPConnect(b *testing.B) {
	k := newBench(b, "fast", 0)
	k.menu(b)
	took := []time.Duration{}
	for b.Loop() {
		took = append(took, k.menu(b))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
}

// BenchmarkMCPStart starts a Ken of its own, up to its list of tools, with what
// an earlier start has kept.
func BenchmarkMCPStart(b *testing.B) {
	many := manyTools(b)
	p := newPlace(b, allowAll+"mcp: {surface: bridge}\n", map[string]definition{"many": {Command: many[0], Args: many[1:]}})
	p.prepare("mcp:many/echo")
	p.menu(b, "--standalone")
	least := time.Hour
	for b.Loop() {
		least = min(least, p.menu(b, "--standalone"))
	}
	b.ReportMetric(float64(least.Microseconds())/1e3, "wall-ms/op")
}

// menu starts ken mcp and returns how long its list of tools took.
func (p *place) menu(b *testing.B, args ...string) time.Duration {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	start := time.Now()
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: p.ken(append([]string{"mcp"}, args...)...)}, nil)
	if err != nil {
		b.Fatalf("connect: %v", err)
	}
	tools, err := session.ListTools(b.Context(), nil)
	took := time.Since(start)
	if err != nil || len(tools.Tools) == 0 {
		b.Fatalf("list: %v, %d tools", err, len(tools.Tools))
	}
	session.Close()
	return took
}

// BenchmarkMCPMemory holds a thousand sessions, one after the other and eight
// at a time, each with a search and a call, and reports what the daemon, with the
// second reader, then has in memory, and how much more that is than after the first hundred.
func BenchmarkMCPMemory(b *testing.B) {
	b.Run("one-server", func(b *testing.B) { memory(b, 0) })
	b.Run("26-servers", func(b *testing.B) { memory(b, 25) })
}

func memory(b *testing.B, others int) {
	k := newBench(b, "auto", others)
	var first, last float64
	for b.Loop() {
		k.sessions(b, 100)
		first = k.resident(b)
		k.sessions(b, 900)
		last = k.resident(b)
	}
	b.ReportMetric(last, "rss-MB")
	b.ReportMetric(last/first, "grown-x")
}

// sessions runs that many through ken mcp, eight at a time.
func (k *bench) sessions(b *testing.B, n int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	failed := make(chan error, 8)
	for range cap(failed) {
		go func() {
			for left.Add(-1) >= 0 {
				if err := k.session(b.Context()); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
}

// session is what a client does with Ken in a short conversation.
func (k *bench) session(ctx context.Context) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: k.ken("mcp")}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := session.ListTools(ctx, nil); err != nil {
		return err
	}
	for _, call := range []*mcp.CallToolParams{
		{Name: "discover_capabilities", Arguments: map[string]any{"query": wishes[0]}},
		{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:many/echo", "arguments": map[string]any{}}},
	} {
		if res, err := session.CallTool(ctx, call); err != nil || res.IsError {
			return fmt.Errorf("%s: %v %v", call.Name, err, res)
		}
	}
	return nil
}

// resident is what the daemon has in memory, in MB.
func (k *bench) resident(b *testing.B) float64 {
	b.Helper()
	return residentOf(b, []int{k.daemon.Pid})
}
