package catalogapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/know/source"
	"ken/internal/serve/auth"
	"ken/internal/testkit"
	"ken/internal/testkit/runtest"
)

// benchDoor opens a door to 6,067 real tools.
func benchDoor(tb testing.TB) *door.Door {
	tb.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		tb.Skip("KEN_BENCH is not set: the sets to measure on are not here")
	}
	tree := source.NewTree(source.TreeConfig{Name: "npm-mcp", Path: filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"), Trust: capability.TrustUser})
	tb.Cleanup(func() { tree.Close() })
	c := testkit.Must(catalog.New(catalog.Config{Sources: []capability.Source{tree}, Attachment: ranking.IndexedBy(&index.Cache{Model: embed.Builtin()})}))(tb)
	testkit.OK(tb, c.Load(context.Background()))
	d := runtest.Open(tb, c, nil, nil)
	if n := d.View(ann.Principal).Stats().Capabilities; n != 6067 {
		tb.Fatalf("the catalog has %d tools, want 6067", n)
	}
	return d.Door
}

// typed is what somebody types, letter by letter.
func typed() []string {
	var out []string
	for _, text := range []string{"create issue", "send a message to the team", "read_file", "playwright"} {
		for i := range text {
			out = append(out, text[:i+1])
		}
	}
	return append(out, "")
}

// BenchmarkSearchAPI is a letter typed in the page over 6,067 tools: the request
// from its line to its JSON, without the network.
func BenchmarkSearchAPI(b *testing.B) {
	mux := muxOf(Routes(Config{Door: benchDoor(b)})...)
	texts := typed()
	ask := func(i int) int {
		w := httptest.NewRecorder()
		mux.ServeAs(w, httptest.NewRequest("GET", "/api/v1/search?q="+url.QueryEscape(texts[i%len(texts)]), nil), ann)
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
		return w.Body.Len()
	}
	for i := range texts {
		ask(i)
	}
	i, size, before := 0, 0, cpuTime()
	b.ReportAllocs()
	for b.Loop() {
		size += ask(i)
		i++
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(size)/float64(b.N)/1e3, "kB/op")
}

// BenchmarkGraphAPI is the graph of 6,067 tools, made and written.
func BenchmarkGraphAPI(b *testing.B) {
	d := benchDoor(b)
	before, size, edges := cpuTime(), 0, 0
	i := 0
	for b.Loop() {
		who := auth.Identity{Principal: capability.Principal{ID: fmt.Sprint("somebody", i)}} // a class of their own: nothing is kept
		i++
		mux := muxOf(Routes(Config{Door: d})...)
		w := httptest.NewRecorder()
		mux.ServeAs(w, httptest.NewRequest("GET", "/api/v1/graph", nil), who)
		size, edges = w.Body.Len(), len(d.Edges(d.View(who.Principal)).From)
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(edges), "edges")
}

// BenchmarkDiscoverAPI is what GET /api/v1/discover takes longer than asking
// the door, over a real connection on loopback that stays open. Both are asked
// in turn.
func BenchmarkDiscoverAPI(b *testing.B) {
	d := benchDoor(b)
	mux := muxOf(Routes(Config{Door: d})...)
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(b)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeAs(w, r, ann) })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer func() {
		client.CloseIdleConnections()
		_ = server.Close()
		<-done
	}()
	texts := []string{"open an issue about the login page", "send a message to the team", "what is the weather in Paris", "query the database for orders of last week"}
	view := d.View(ann.Principal)
	direct := func(i int) time.Duration {
		start := time.Now()
		if _, err := d.Find(context.Background(), view, door.Query{Text: texts[i%len(texts)], Now: start}); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	asked := func(i int) time.Duration {
		start := time.Now()
		res := testkit.Must(client.Get("http://" + l.Addr().String() + "/api/v1/discover?q=" + url.QueryEscape(texts[i%len(texts)])))(b)
		_, err := io.Copy(io.Discard, res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != 200 {
			b.Fatal(err, res.Status)
		}
		return time.Since(start)
	}
	for i := range texts {
		direct(i)
		asked(i)
	}
	var plain, whole []time.Duration
	i := 0
	for b.Loop() {
		for range 8 { // enough for a median
			plain, whole = append(plain, direct(i)), append(whole, asked(i))
			i++
		}
	}
	slices.Sort(plain)
	slices.Sort(whole)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	b.ReportMetric(us(whole[len(whole)/2]-plain[len(plain)/2]), "overhead-us")
	b.ReportMetric(us(whole[len(whole)/2]), "p50-us")
}

// TestLargeGraph: that of many tools stays small and readable.
func TestLargeGraph(t *testing.T) {
	testkit.CI(t, "a catalog of 6,067 tools")
	d := benchDoor(t)
	mux := muxOf(Routes(Config{Door: d})...)
	for _, who := range []auth.Identity{ann, chief} {
		w := httptest.NewRecorder()
		mux.ServeAs(w, httptest.NewRequest("GET", "/api/v1/graph", nil), who)
		if w.Code != 200 || w.Body.Len() > 1_500_000 {
			t.Errorf("the graph has %d bytes, want at most 1.5 MB", w.Body.Len())
		}
	}
	edges := d.Edges(d.View(ann.Principal))
	if n := len(edges.From); n > 20_000 || n < 6_000 || edges.Cut == 0 {
		t.Errorf("%d edges and %d cut, want at most 20,000 and what is left out counted", n, edges.Cut)
	}
}
