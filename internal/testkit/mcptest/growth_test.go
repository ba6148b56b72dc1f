package mcptest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

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
