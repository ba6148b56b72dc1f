package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/store/storetest"
	"ken/internal/talk/event"
)

// A cluster has hubs on one PostgreSQL, each with a store of its own.
type cluster struct {
	hubs    []*Hub
	sources []*source

	mu       sync.Mutex
	lost     map[string]bool
	answered string
	left     int
}

func name(i int) string { return fmt.Sprintf("hub%d", i) }

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	address := storetest.Postgres(t)
	c := &cluster{lost: map[string]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range n {
		db := storetest.Open(t, address)
		src := &source{events: make(chan event.Event)}
		h := New(Config{Turn: src.turn, Relay: &Relay{
			Name: name(i), Store: func() (*store.Store, error) { return db, nil },
			Peers: func() (out []string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				for j := range n {
					if j != i && !c.lost[name(j)] {
						out = append(out, name(j))
					}
				}
				return out
			},
			Answer: func(_ context.Context, _ capability.Principal, _ string, asked event.Asked, answer json.RawMessage) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.answered = asked.ID + string(answer)
				return nil
			},
			Left: func(context.Context, capability.Principal, string, []event.Asked) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.left++
			},
		}})
		c.hubs, c.sources = append(c.hubs, h), append(c.sources, src)
		running.Go(func() { h.Run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return c
}

// collect follows a session until something is so, and returns the frames.
func collect(t *testing.T, h *Hub, session, after string, enough func([]Frame) bool) []Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var frames []Frame
	for f := range h.Follow(ctx, ada, session, after) {
		if f.Name != "" {
			frames = append(frames, f)
		}
		if enough(frames) {
			return frames
		}
	}
	t.Fatalf("only %s came", names(frames))
	return nil
}

func has(name string) func([]Frame) bool {
	return func(frames []Frame) bool {
		return slices.ContainsFunc(frames, func(f Frame) bool { return f.Name == name })
	}
}

// TestPostgresRelay: a turn that runs on one replica is followed on all, from its
// beginning and from every event of it, and the next turn runs on another one.
func TestPostgresRelay(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.hubs[0], c.hubs[1], c.hubs[2]
	idle := make(chan []Frame, 1)
	ready := make(chan struct{})
	go func() { // this one is there before the turn begins
		var once sync.Once
		idle <- collect(t, d, "s", "", func(f []Frame) bool {
			if has("idle")(f) {
				once.Do(func() { close(ready) })
			}
			return has("done")(f)
		})
	}()
	<-ready
	turn := start(t, a, "s")
	for i := range 100 {
		c.sources[0].events <- event.Delta{Text: fmt.Sprintf("word%d ", i)}
	}
	c.sources[0].events <- event.Step{}
	live := make(chan []Frame, 1)
	go func() { live <- collect(t, b, "s", "", has("done")) }()
	collect(t, b, "s", "", has("step"))
	if !b.Running(ada, "s") {
		t.Error("the turn does not run on the other replica")
	}
	for i := range 100 {
		c.sources[0].events <- event.Delta{Text: fmt.Sprintf("more%d ", i)}
	}
	close(c.sources[0].events)
	<-turn.over
	frames := <-live
	want := heard(follow(t.Context(), a, "s", turn.After))
	if got := heard(frames); got != want || !strings.Contains(want, "more99") {
		t.Errorf("on another replica: %q\nwant %q", got, want)
	}
	if got := heard(<-idle); got != want {
		t.Errorf("on a third one: %q\nwant %q", got, want)
	}
	// A client goes from one to another at any event.
	for i := 0; i < len(frames)-1; i += 7 {
		want := heard(follow(t.Context(), a, "s", frames[i].ID))
		for _, h := range []*Hub{b, d} {
			if got := heard(collect(t, h, "s", frames[i].ID, has("done"))); got != want {
				t.Errorf("after %s: %q\nwant %q", frames[i].ID, got, want)
			}
		}
	}
	if got := heard(collect(t, b, "s", turn.After, has("done"))); got != want {
		t.Errorf("from the beginning: %q", got)
	}
	// The next turn runs elsewhere, and its events go to those who followed the first.
	last := frames[len(frames)-1].ID
	next := begin("s")
	next.Turn = 2
	if _, err := begun(b, next); err != nil {
		t.Fatal(err)
	}
	close(c.sources[1].events)
	for i, h := range c.hubs {
		// It may not have heard of the turn when the follower comes.
		if got := strings.TrimPrefix(names(collect(t, h, "s", last, has("done"))), "idle "); got != "said done" {
			t.Errorf("the turn of another replica on %d: %s", i, got)
		}
	}
}

// TestPostgresRelayActs: a turn is stopped and answered through another replica.
func TestPostgresRelayActs(t *testing.T) {
	c := newCluster(t, 2)
	a, b := c.hubs[0], c.hubs[1]
	turn := start(t, a, "s")
	c.sources[0].events <- event.Asked{ID: "1.1", What: event.Ask, Text: "well?", Call: &event.Call{ID: "c", Arguments: []byte(`{"a":1}`)}}
	if got := b.Locate(t.Context(), ada, "s"); got != name(0) {
		t.Fatalf("the turn is on %q", got)
	}
	collect(t, b, "s", "", has("asked"))
	if m := b.Mark(ada, "s"); !m.Running || len(m.Asked) != 1 || m.Asked[0].Text != "well?" || string(m.Asked[0].Call.Arguments) != `{"a":1}` || m.After != turn.After || m.Base != 0 {
		t.Errorf("on the other replica the session stands so: %+v", m)
	}
	if done, err := b.AnswerElsewhere(t.Context(), ada, "s", "9.9", "x"); !done || err == nil {
		t.Errorf("an answer to nothing: %v, %v", done, err)
	}
	if done, err := b.AnswerElsewhere(t.Context(), ada, "s", "1.1", map[string]bool{"yes": true}); !done || err != nil {
		t.Errorf("an answer: %v, %v", done, err)
	}
	if c.answered != `1.1{"yes":true}` {
		t.Errorf("the turn was told %s", c.answered)
	}
	if done, err := b.AbortElsewhere(t.Context(), ada, "s"); !done || err != nil {
		t.Errorf("abort: %v, %v", done, err)
	}
	collect(t, b, "s", turn.After, has("done"))
	<-turn.over
	if turn.done.Reason != event.EndAborted || c.left != 1 {
		t.Errorf("the turn ended %v, %d left", turn.done.Reason, c.left)
	}
	if done, err := b.AbortElsewhere(t.Context(), ada, "s"); done || err != nil {
		t.Errorf("abort what is over: %v, %v", done, err)
	}
}

// TestPostgresRelayLost: the end of a replica ends its turns for those who follow them
// elsewhere, once, and the session goes on there.
func TestPostgresRelayLost(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.hubs[0], c.hubs[1], c.hubs[2]
	turn := start(t, a, "s")
	c.sources[0].events <- event.Delta{Text: "half"}
	var got [2]string
	var both sync.WaitGroup
	for i, h := range []*Hub{b, d} {
		both.Go(func() {
			first := true
			frames := collect(t, h, "s", "", func(f []Frame) bool {
				if first && has("delta")(f) {
					first = false
					c.mu.Lock()
					defer c.mu.Unlock()
					c.lost[name(0)] = true
				}
				return has("failed")(f)
			})
			got[i] = names(frames) + " " + string(frames[len(frames)-1].Data)
		})
	}
	both.Wait()
	for _, text := range got {
		if !strings.Contains(text, "replica-lost") || strings.Count(text, "failed ") != 1 {
			t.Errorf("followers got %s", text)
		}
	}
	if b.Running(ada, "s") {
		t.Error("the turn still runs")
	}
	next := begin("s")
	next.Input.Continue = true
	if _, err := begun(b, next); err != nil {
		t.Fatal(err)
	}
	close(c.sources[1].events)
	collect(t, d, "s", "", func(f []Frame) bool { return has("done")(f) || has("idle")(f) })
	a.Abort(ada, "s", nil)
	<-turn.over
}
