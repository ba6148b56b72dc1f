package discover

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
	"ken/internal/testkit/findtest"
)

type hashed = findtest.Hashed

// A broken embedder does what embed says, and counts how often it was asked.
type broken struct {
	hashed
	asked *atomic.Int32
	embed func(ctx context.Context) ([][]float32, error)
}

func (b broken) Embed(ctx context.Context, _ []string) ([][]float32, error) {
	b.asked.Add(1)
	return b.embed(ctx)
}

func weatherThings() []thing {
	return caps(
		capability.Capability{Name: "weather", Description: "Forecast for a city"},
		capability.Capability{Name: "calendar", Description: "Appointments of today"},
	)
}

// asleep is a second reader that counts who asks for it: its name is in its
// weights.
type asleep struct {
	hashed
	asked *atomic.Int32
}

func (a asleep) Model() string {
	a.asked.Add(1)
	return a.hashed.Model()
}

// TestNoSearchWakesTheReader: before the second reader has read anything, a
// search does not load it; afterwards it reads messages.
func TestNoSearchWakesTheReader(t *testing.T) {
	var asked atomic.Int32
	w := worldOf(t, Parts{Embedder: asleep{asked: &asked}, Local: true}, memory(weatherThings()...))
	if sel := w.find(t, "forecast for the city", Defaults()); asked.Load() != 0 || len(sel.Degraded) != 0 {
		t.Errorf("the reader was asked %d times, and the answer says %q, want neither", asked.Load(), sel.Degraded)
	}
	testkit.OK(t, ranking.Embed(t.Context(), w.catalog, asleep{asked: new(atomic.Int32)}))
	if w.find(t, "forecast for the city", Defaults()); asked.Load() == 0 {
		t.Error("the reader was not asked once it had read all capabilities")
	}
}

// TestT17BrokenEmbedder: whatever an embedder does, words answer, the answer
// says that they did so alone, and the next message does not wait for it.
func TestT17BrokenEmbedder(t *testing.T) {
	vector := func(change func([]float32) []float32) func(context.Context) ([][]float32, error) {
		return func(context.Context) ([][]float32, error) {
			return [][]float32{change(findtest.HashedVector("forecast"))}, nil
		}
	}
	set := func(x float32) func([]float32) []float32 {
		return func(v []float32) []float32 { v[7] = x; return v }
	}
	tests := []struct {
		name  string
		embed func(ctx context.Context) ([][]float32, error)
		says  string
		takes time.Duration
	}{
		{"fails", func(context.Context) ([][]float32, error) { return nil, errors.New("no such model") }, "no such model", 0},
		{"gives up on its own", func(context.Context) ([][]float32, error) { return nil, context.Canceled }, "canceled", 0},
		{"panics", func(context.Context) ([][]float32, error) { panic("index out of range") }, "panic: index out of range", 0},
		{"gives none", func(context.Context) ([][]float32, error) { return nil, nil }, "no vector of 64 numbers", 0},
		{"gives two", func(context.Context) ([][]float32, error) { return make([][]float32, 2), nil }, "no vector of 64 numbers", 0},
		{"gives a short one", vector(func(v []float32) []float32 { return v[:63] }), "no vector of 64 numbers", 0},
		{"gives a long one", vector(func(v []float32) []float32 { return append(v, 1) }), "no vector of 64 numbers", 0},
		{"gives no number", vector(set(float32(math.NaN()))), "contains NaN or Inf", 0},
		{"gives the infinite", vector(set(float32(math.Inf(-1)))), "contains NaN or Inf", 0},
		{"waits for its context", func(ctx context.Context) ([][]float32, error) { <-ctx.Done(); return nil, ctx.Err() }, "longer than discovery.embeddingTimeout 50 ms", 50 * time.Millisecond},
		{"is slow and does not listen", func(context.Context) ([][]float32, error) { time.Sleep(time.Hour); return nil, nil }, "longer than discovery.embeddingTimeout 50 ms", 50 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				w := worldOf(t, Parts{Embedder: broken{asked: &asked, embed: tt.embed}}, memory(weatherThings()...))
				plain := of(t, weatherThings()...)
				start := time.Now()
				for i, message := range []string{"forecast for the city", "forecast for the city", "appointments today"} {
					sel := w.find(t, message, Defaults())
					if len(sel.Degraded) != 1 || !strings.Contains(sel.Degraded[0], tt.says) || !strings.Contains(sel.Degraded[0], "hashed-words") {
						t.Errorf("message %d: degraded = %q, want one note with %q and the model", i, sel.Degraded, tt.says)
					}
					sel.Degraded = []string{}
					if got, want := asJSON(t, sel), asJSON(t, plain.find(t, message, Defaults())); got != want {
						t.Errorf("message %d: %s, want what words alone give: %s", i, got, want)
					}
					if took := time.Since(start); took != tt.takes {
						t.Errorf("after message %d %v have passed, want %v", i, took, tt.takes)
					}
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("the embedder was asked %d times, want once", n)
				}
				time.Sleep(rest + time.Second)
				w.find(t, "forecast for the city", Defaults())
				if n := asked.Load(); n != 2 {
					t.Errorf("after its rest the embedder was asked %d times, want twice", n)
				}
				time.Sleep(2 * time.Hour) // for those who are slow
			})
		})
	}
}

// TestT17AnAskerInAHurry: who waits less than the embedder may take goes
// without, and costs nobody else the embedder.
func TestT17AnAskerInAHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		slow := func(context.Context) ([][]float32, error) {
			time.Sleep(20 * time.Millisecond)
			return [][]float32{findtest.HashedVector("forecast")}, nil
		}
		w := worldOf(t, Parts{Embedder: broken{asked: &asked, embed: slow}}, memory(weatherThings()...))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := w.Find(ctx, w.view, Query{Text: "forecast"}, Defaults()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Find in a hurry = %v, want its deadline", err)
		}
		sel := w.find(t, "forecast", Defaults())
		if n := asked.Load(); n != 2 || sel.EmbedUS != 20_000 {
			t.Errorf("the next one asked %d times in all and waited %d µs, want 2 and 20,000; degraded %q", n, sel.EmbedUS, sel.Degraded)
		}
	})
}

// TestFindEndsWithItsContext: nothing is done for who is gone.
func TestFindEndsWithItsContext(t *testing.T) {
	w := of(t, weatherThings()...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Find(ctx, w.view, Query{Text: "forecast"}, Defaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("Find = %v, want canceled", err)
	}
	if _, err := w.Call(ctx, w.view, ToolDiscover, []byte(`{"query":"forecast"}`), Defaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("Call = %v, want canceled", err)
	}
}

// TestEmbedderFindsWithoutWords: what no word of the message is in is found by
// its meaning, once the capabilities have vectors; until then the answer says
// what is missing.
func TestEmbedderFindsWithoutWords(t *testing.T) {
	// hashed knows words, so the description has the word and search does not
	// see it: a stop word.
	list := caps(capability.Capability{Name: "alpha", Description: "then then then then"})
	for i := range 80 {
		list = append(list, thing{Capability: capability.Capability{Name: fmt.Sprintf("filler%c%c", 'a'+i/26, 'a'+i%26), Description: fmt.Sprintf("filling%c%c number", 'a'+i/26, 'a'+i%26)}})
	}
	m := memory(list...)
	w := worldOf(t, Parts{Embedder: hashed{}}, m)
	cfg := patient()
	cfg.MinRelevance = 0
	sel := w.find(t, "then then", cfg)
	if len(sel.Ranking) != 0 || len(sel.Degraded) != 1 || !strings.Contains(sel.Degraded[0], "no vectors of the embedder yet") {
		t.Errorf("before: ranking %v, degraded %q; want nothing, and that there are no vectors", sel.Ranking, sel.Degraded)
	}
	testkit.OK(t, ranking.Embed(t.Context(), w.catalog, hashed{}))
	sel = w.find(t, "then then", cfg)
	if len(sel.Briefs) == 0 || sel.Briefs[0].ID != "tool:alpha" || len(sel.Degraded) != 0 {
		t.Fatalf("after: briefs %v, degraded %q; want tool:alpha first and nothing degraded", idsOf(sel.Briefs), sel.Degraded)
	}
	if why := sel.Briefs[0].Why; len(why) != 1 || !strings.HasSuffix(why[0], "similar meaning") {
		t.Errorf("why = %q, want its meaning", why)
	}
	// One more has none yet.
	m.Put(capability.Capability{Name: "late"}, capability.Detail{})
	batch := testkit.Must(m.Load(t.Context()))(t)
	w.view = w.See(w.catalog.Replace("test", batch), "", nil)
	sel = w.find(t, "then then", cfg)
	if len(sel.Degraded) != 1 || !strings.Contains(sel.Degraded[0], "81 of 82 capabilities have vectors yet") {
		t.Errorf("with one more: degraded %q, want how many have vectors", sel.Degraded)
	}
}

// TestVectorsAreRemembered: a message is given to the embedder once, and a long
// one is not kept for it.
func TestVectorsAreRemembered(t *testing.T) {
	var asked atomic.Int32
	good := func(context.Context) ([][]float32, error) { return [][]float32{findtest.HashedVector("forecast")}, nil }
	w := worldOf(t, Parts{Embedder: broken{asked: &asked, embed: good}}, memory(weatherThings()...))
	long := strings.Repeat("forecast ", 100_000)
	for range 3 {
		w.find(t, long, patient())
		w.find(t, "forecast", patient())
	}
	w.find(t, "", patient())
	if n := asked.Load(); n != 2 {
		t.Errorf("the embedder was asked %d times for two messages, want 2", n)
	}
	for i := range 2 * mostVectors {
		w.find(t, fmt.Sprint("forecast ", i), patient())
	}
	m := w.vectors
	if n := len(m.young) + len(m.old); n > mostVectors {
		t.Errorf("%d vectors are kept, want at most %d", n, mostVectors)
	}
}

// unreadable is a catalog whose pages cannot be read.
type unreadable struct {
	*catalog.Catalog
	ids []capability.ID
}

func (u unreadable) Detail(ctx context.Context, e *catalog.Entry) (capability.Detail, error) {
	if slices.Contains(u.ids, e.ID) {
		return capability.Detail{}, &capability.Error{Kind: capability.Conflict, Op: "read", Target: string(e.ID), Err: errors.New("it changed on disk")}
	}
	return u.Catalog.Detail(ctx, e)
}

// TestT17UnreadablePages: what cannot be read is left out, told, and costs
// nothing else.
func TestT17UnreadablePages(t *testing.T) {
	things := append(weatherThings(), thing{
		capability.Capability{Kind: capability.KindCard, Name: "forecasts", Triggers: &capability.Triggers{Keywords: []string{"forecast"}, ConfidenceThreshold: 0.1}},
		capability.Detail{Body: "Ask for the city."},
	})
	c := findtest.Catalog(t, catalog.Config{Sources: []capability.Source{memory(things...)}})
	f := NewFinder(Parts{Source: unreadable{c, []capability.ID{"tool:weather", "card:forecasts"}}})
	w := &world{f, c, f.See(c.Snapshot(), "", nil)}
	sel := w.find(t, "weather forecast for the city", Defaults())
	if len(sel.Briefs) == 0 || sel.Briefs[0].ID != "tool:weather" {
		t.Errorf("briefs = %v, want tool:weather first", idsOf(sel.Briefs))
	}
	if len(sel.Fulls) != 0 || len(sel.Cards) != 0 {
		t.Errorf("fulls %v and cards %v, want none", idsOf(sel.Fulls), idsOf(sel.Cards))
	}
	for _, id := range []capability.ID{"tool:weather", "card:forecasts"} {
		if got := reason(sel, id); !strings.Contains(got, "could not be read") || !strings.Contains(got, "it changed on disk") {
			t.Errorf("%s was skipped for %q, want that it could not be read", id, got)
		}
		if !slices.ContainsFunc(sel.Degraded, func(d string) bool { return strings.HasPrefix(d, string(id)+" could not be read") }) {
			t.Errorf("degraded = %q, want %s in it", sel.Degraded, id)
		}
	}
	if a := w.call(t, ToolDescribe, `{"id":"tool:weather"}`); !a.Failed || !strings.Contains(a.Text, "it changed on disk") {
		t.Errorf("describe = %+v, want a refusal that says why", a)
	}
}
