package stream

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
)

// BenchmarkStreams is 500 clients that follow turns over real connections, each
// turn with 20 fragments a second. The delay is from the moment a fragment is
// made to the moment a client has it; the memory is that of server and clients
// together. The bars are 100 ms for one in a hundred, and memory that stays as
// it is.
func BenchmarkStreams(b *testing.B) {
	for _, c := range []struct{ sessions, followers int }{{50, 10}, {500, 1}} {
		b.Run(fmt.Sprintf("%dx%d", c.sessions, c.followers), func(b *testing.B) {
			for b.Loop() {
				streams(b, c.sessions, c.followers)
			}
		})
	}
}

const (
	tick  = 50 * time.Millisecond
	ticks = 80
)

// ticking is a turn that says what time it is.
func ticking(ctx context.Context, _ event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		clock := time.NewTicker(tick)
		defer clock.Stop()
		for range ticks {
			select {
			case <-clock.C:
			case <-ctx.Done():
			}
			yield(event.Delta{Text: " " + strconv.FormatInt(time.Now().UnixNano(), 10)}, nil)
		}
		yield(event.Done{Turn: 1, Reason: event.EndAnswer}, nil)
	}
}

func streams(b *testing.B, sessions, followers int) {
	h := New(Config{MostOwn: 1000, Turn: ticking})
	server := httptest.NewServer(serving(h))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: sessions * followers}}
	defer client.CloseIdleConnections()
	before := heap()
	var all, there sync.WaitGroup
	delays := make([][]time.Duration, sessions*followers)
	for i := range delays {
		there.Add(1)
		all.Go(func() {
			delays[i] = listen(b, client, server.URL+"/events/"+strconv.Itoa(i%sessions), there.Done)
		})
	}
	there.Wait()
	for i := range sessions {
		start(b, h, strconv.Itoa(i))
		time.Sleep(tick / time.Duration(sessions)) // not all at the same moment
	}
	time.Sleep(time.Second)
	early := heap()
	time.Sleep(ticks*tick - 2500*time.Millisecond)
	late := heap()
	all.Wait()
	var took []time.Duration
	for _, d := range delays {
		took = append(took, d...)
	}
	if want := ticks * len(delays); len(took) != want {
		b.Fatalf("%d fragments came, want %d", len(took), want)
	}
	slices.Sort(took)
	ms := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(float64(early-before)/1024/float64(len(delays)), "heap-kb/stream")
	b.ReportMetric(float64(late-early)/1024, "growth-kb")
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // pools are empty after the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// serving serves the events of a hub, as the API does.
func serving(h *Hub) http.Handler {
	mux := wire.NewMux(slog.New(slog.DiscardHandler), auth.HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ auth.Identity) { http.NotFound(w, r) }), wire.Route{
		Method: "GET", Path: "/events/{id}", Name: "events",
		Stream: func(w http.ResponseWriter, r *wire.Request) error {
			out, err := wire.NewEvents(w)
			if err != nil {
				return err
			}
			for f := range h.Follow(r.Context(), r.Who.Principal, r.PathValue("id"), r.Header.Get("Last-Event-ID")) {
				if err := out.Event(f.ID, f.Name, f.Data); err != nil {
					return nil
				}
			}
			return nil
		},
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeAs(w, r, auth.Identity{Principal: ada}) })
}

// listen follows a turn to its end and gives the delay of each fragment. It says
// when it is there.
func listen(tb testing.TB, client *http.Client, url string, there func()) (delays []time.Duration) {
	res, err := client.Get(url)
	if err != nil {
		there()
		tb.Error(err)
		return nil
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		now := time.Now()
		line := lines.Text()
		switch {
		case line == "event: idle":
			there()
		case line == "event: done":
			return delays
		case strings.HasPrefix(line, `data: {"type":"delta"`):
			_, text, _ := strings.Cut(line, `"text":"`)
			text, _, _ = strings.Cut(text, `"`)
			for word := range strings.FieldsSeq(text) {
				n, err := strconv.ParseInt(word, 10, 64)
				if err != nil {
					tb.Error(err)
				}
				delays = append(delays, now.Sub(time.Unix(0, n)))
			}
		}
	}
	return delays
}
