package mcptest

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/know/reader"
	"ken/internal/tokenizer"
)

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
