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
	"ken/internal/testkit"
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
