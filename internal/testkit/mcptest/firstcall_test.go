package mcptest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkFirstCall starts a Ken of its own with 2,000 tools behind it, up to the
// first call that its server has answered. warm: with what an earlier start has
// kept. cold: without the folder of caches; the server was accepted before. first:
// Ken has never seen the server. direct-ms is the same without Ken: the client starts
// the server, reads its list and calls.
func BenchmarkFirstCall(b *testing.B) {
	command := listedTools(b)
	servers := map[string]definition{"many": {Command: command[0], Args: command[1:]}}
	fresh := func(b *testing.B) *place {
		return newPlace(b, allowAll+"mcp: {surface: bridge}\nserve: {auth: off}\n", servers)
	}
	ways := map[string]func(p *place) *contender{
		"stdio": func(p *place) *contender {
			return &contender{name: "Ken, stdio", call: echoByKen, site: command[0], command: func() *exec.Cmd { return p.ken("mcp", "--standalone") }}
		},
		"http": func(p *place) *contender {
			addr := freeAddr(p.tb)
			return &contender{name: "Ken, HTTP", http: true, addr: addr, call: echoByKen, site: command[0], command: func() *exec.Cmd { return p.ken("serve", "--addr", addr) }}
		},
	}
	warm := sync.OnceValue(func() *place { // for both ways: reading all tools takes a minute
		p := fresh(b)
		p.prepare("mcp:many/echo")
		p.readAll(b)
		return p
	})
	for _, way := range []string{"stdio", "http"} {
		begin := ways[way]
		b.Run(way+"-warm", func(b *testing.B) {
			p := warm()
			begin(p).startAndStop(b)
			leastStart(b, command, func() *contender { return begin(p) })
		})
		b.Run(way+"-cold", func(b *testing.B) {
			p := fresh(b)
			p.prepare("mcp:many/echo")
			leastStart(b, command, func() *contender {
				if err := os.RemoveAll(filepath.Join(p.home, "cache")); err != nil {
					b.Fatal(err)
				}
				return begin(p)
			})
		})
		b.Run(way+"-first", func(b *testing.B) {
			leastStart(b, command, func() *contender { return begin(fresh(b)) })
		})
	}
}

// listedTools is the command of a server with the tools of manyTools that lists them
// without working them out.
func listedTools(b *testing.B) []string {
	b.Helper()
	many := manyTools(b)
	session := dial(b, exec.Command(many[0], many[1:]...))
	defer session.Close()
	var text []byte
	for tool, err := range session.Tools(b.Context(), nil) {
		if err != nil {
			b.Fatal(err)
		}
		line, err := json.Marshal(tool)
		if err != nil {
			b.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	file := filepath.Join(b.TempDir(), "listed.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return []string{many[0], "-listed", file}
}

// leastStart reports the least of the starts that next prepares.
func leastStart(b *testing.B, command []string, next func() *contender) {
	least, cpu, direct := time.Hour, time.Hour, time.Hour
	for b.Loop() {
		took, used := next().startAndStop(b)
		least, cpu = min(least, took), min(cpu, used)
		direct = min(direct, directly(b, command))
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	b.ReportMetric(ms(least), "wall-ms")
	b.ReportMetric(ms(cpu), "cpu-ms")
	b.ReportMetric(ms(direct), "direct-ms")
}

// startAndStop starts a gateway, makes one call and ends it. It returns how long that
// took and the processor time until then.
func (c *contender) startAndStop(tb testing.TB) (first, cpu time.Duration) {
	tb.Helper()
	c.start(tb)
	cpu = cpuOf(tb, c.between())
	c.stop()
	return c.firstCall, cpu
}

// directly returns how long a server takes from its start to its first answer, for
// a client that reads its list before.
func directly(b *testing.B, command []string) time.Duration {
	b.Helper()
	begin := time.Now()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	for _, err := range session.Tools(b.Context(), nil) {
		if err != nil {
			b.Fatal(err)
		}
	}
	if res, err := session.CallTool(b.Context(), echo(0)); err != nil || res.IsError {
		b.Fatalf("call: %v %v", err, res)
	}
	return time.Since(begin)
}
