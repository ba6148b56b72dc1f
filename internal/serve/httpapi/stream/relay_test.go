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
	"ken/internal/talk/event"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A cluster has hubs on one PostgreSQL, each with a store of its own.
type cluster struct {
	address string
	ctx     context.Context
	running sync.WaitGroup

	mu       sync.Mutex
	hubs     []*Hub
	sources  []*source
	lost     map[string]bool
	answered string
	left     int
}

func name(i int) string { return fmt.Sprintf("hub%d", i) }

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{address: storetest.Postgres(t), lost: map[string]bool{}}
	var stop context.CancelFunc
	c.ctx, stop = context.WithCancel(context.Background())
	for range n {
		c.run(c.add(t, storetest.Open(t, c.address)))
	}
	t.Cleanup(func() {
		stop()
		c.running.Wait()
	})
	return c
}

// add makes one more hub, which the others know.
func (c *cluster) add(t *testing.T, db *store.Store) *Hub {
	t.Helper()
	src := &source{events: make(chan event.Event)}
	i := len(c.hubs)
	h := New(Config{Turn: src.turn, Relay: &Relay{
		Name: name(i), Store: func() (*store.Store, error) { return db, nil },
		Peers: func() []string { return c.peers(i) },
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hubs, c.sources = append(c.hubs, h), append(c.sources, src)
	return h
}

// run makes a hub listen to the others.
func (c *cluster) run(h *Hub) { c.running.Go(func() { h.Run(c.ctx) }) }

// peers returns the names of the hubs beside one, but for those that are lost.
func (c *cluster) peers(of int) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.hubs {
		if j != of && !c.lost[name(j)] {
			out = append(out, name(j))
		}
	}
	return out
}

// collect follows a session until something is so, and returns the frames. It may run
// beside the test.
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
	t.Errorf("only %s came", names(frames))
	return frames
}

func has(name string) func([]Frame) bool {
	return func(frames []Frame) bool {
		return slices.ContainsFunc(frames, func(f Frame) bool { return f.Name == name })
	}
}

// waiting follows a session in which nothing runs, until the next turn is over. It
// returns when it waits for that.
func waiting(t *testing.T, h *Hub, session string) <-chan []Frame {
	frames, ready := make(chan []Frame, 1), make(chan struct{})
	here := sync.OnceFunc(func() { close(ready) })
	go func() {
		defer here()
		frames <- collect(t, h, session, "", func(f []Frame) bool {
			if has("idle")(f) {
				here()
			}
			return has("done")(f)
		})
	}()
	<-ready
	return frames
}

// TestPostgresRelayLate: a replica that did not listen yet when another one asked it for
// a session is asked again.
func TestPostgresRelayLate(t *testing.T) {
	c := newCluster(t, 1)
	late := c.add(t, storetest.Open(t, c.address))
	frames := waiting(t, c.hubs[0], "s")
	c.run(late)
	turn := start(t, late, "s")
	collect(t, c.hubs[0], "s", "", has("said"))
	close(c.sources[1].events)
	<-turn.over
	testkit.Equal(t, "followers on the other replica", names(<-frames), "idle said done")
}

// TestPostgresRelay: a turn that runs on one replica is followed on all, from its
// beginning and from every event of it, and the next turn runs on another one.
func TestPostgresRelay(t *testing.T) {
	c := newCluster(t, 3)
	a, b, d := c.hubs[0], c.hubs[1], c.hubs[2]
	idle := waiting(t, d, "s") // this one is there before the turn begins
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
	testkit.Equal(t, "on a third one", heard(<-idle), want)
	// A client goes from one to another at any event.
	for i := 0; i < len(frames)-1; i += 7 {
		want := heard(follow(t.Context(), a, "s", frames[i].ID))
		for _, h := range []*Hub{b, d} {
			testkit.Equal(t, fmt.Sprintf("after %s", frames[i].ID), heard(collect(t, h, "s", frames[i].ID, has("done"))), want)
		}
	}
	testkit.Equal(t, "from the beginning", heard(collect(t, b, "s", turn.After, has("done"))), want)
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
		testkit.Equal(t, fmt.Sprintf("the turn of another replica on %d", i), strings.TrimPrefix(names(collect(t, h, "s", last, has("done"))), "idle "), "said done")
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
