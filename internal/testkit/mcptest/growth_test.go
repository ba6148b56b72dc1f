package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

// manyMore is how many capabilities BenchmarkGrowth has.
const manyMore = 100_000

// BenchmarkGrowth starts ken serve with 100,000 capabilities: with nothing kept
// from an earlier start, and again. It reports the processor time of the first start
// up to the first search that is answered from all of them, how long the second start
// takes until the first call is answered, what is in memory 15 s later, and how long a
// search over the HTTP API takes.
func BenchmarkGrowth(b *testing.B) {
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		b.Skip("cannot here: KEN_BENCH is not set")
	}
	site := manyTools(b)
	servers := map[string]definition{"few": {Command: site[0], Args: []string{"-tools", "1"}}}
	p := newPlace(b, allowAll+"mcp: {surface: bridge}\ndiscovery: {reader: fast}\nserve: {auth: off}\ncatalog: {starter: off, sources: [{name: grown, path: grown.jsonl}]}\n", servers)
	file := filepath.Join(p.home, "grown.jsonl")
	grown(b, filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"), file)
	var cold, warm, memory, find float64
	for b.Loop() {
		os.RemoveAll(filepath.Join(p.home, "cache"))
		url, _, stop := p.serveUntil()
		firstCall(b, url)
		search(b, url, wishes[0])
		cold = counters(b, url)["process_cpu_seconds_total"]
		stop()

		begin := time.Now()
		url, process, stop := p.serveUntil()
		firstCall(b, url)
		warm = float64(time.Since(begin).Microseconds()) / 1e3
		var took []time.Duration
		for i := range 10 * len(wishes) {
			start := time.Now()
			search(b, url, wishes[i%len(wishes)])
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		find = float64(took[len(took)/2].Microseconds()) / 1e3
		time.Sleep(idle)
		memory = residentOf(b, []int{process.Pid})
		stop()
	}
	b.ReportMetric(cold, "cold-cpu-s")
	b.ReportMetric(warm, "warm-ms")
	b.ReportMetric(memory, "rss-MB")
	b.ReportMetric(find, "find-p50-ms")
}

// grown writes a catalog of manyMore rows to a file: those of another, again and
// again under other names.
func grown(b *testing.B, from, to string) {
	b.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		b.Fatal(err)
	}
	rows := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	f, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range manyMore {
		var row map[string]any
		if err := json.Unmarshal(rows[i%len(rows)], &row); err != nil {
			b.Fatal(err)
		}
		if round := i / len(rows); round > 0 {
			row["id"] = fmt.Sprintf("%s-%d", row["id"], round)
			row["name"] = fmt.Sprintf("%s_%d", row["name"], round)
			row["description"] = fmt.Sprintf("%s Part %d.", row["description"], round)
		}
		line, err := json.Marshal(row)
		if err != nil {
			b.Fatal(err)
		}
		w.Write(append(line, '\n'))
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

// firstCall calls the tool echo until that succeeds.
func firstCall(b *testing.B, url string) {
	b.Helper()
	session := dialHTTP(b, url, "")
	defer session.Close()
	call := &mcp.CallToolParams{Name: "invoke_capability", Arguments: map[string]any{"capability": "mcp:few/echo", "arguments": map[string]any{}}}
	testkit.Wait(b, "a call is answered", func() bool {
		res, err := session.CallTool(b.Context(), call)
		return err == nil && !res.IsError
	})
}

// search finds over the HTTP API.
func search(b *testing.B, at, wish string) {
	b.Helper()
	res, err := http.Get(strings.TrimSuffix(at, "/mcp") + "/api/v1/discover?q=" + url.QueryEscape(wish))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK || body.Len() < 100 {
		b.Fatalf("search: %v, %s: %s", err, res.Status, &body)
	}
}
