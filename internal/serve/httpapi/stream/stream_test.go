package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/problem"
	"ken/internal/talk/event"
	"ken/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = capability.Principal{ID: "ada", Tenant: "t"}

// A source is a turn whose events a test gives, one after the other.
type source struct {
	events chan event.Event
	err    error
}

func (s *source) turn(ctx context.Context, _ event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for {
			select {
			case e, ok := <-s.events:
				if !ok {
					if s.err != nil {
						yield(nil, s.err)
						return
					}
					yield(event.Done{Turn: 1, Reason: event.EndAnswer, Text: "all"}, nil)
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				yield(event.Done{Turn: 1, Reason: event.EndAborted}, nil)
				return
			}
		}
	}
}

func begin(session string) Begin {
	return Begin{Input: event.Input{Principal: ada, Session: session, Text: "hi"}, Said: "hi", Turn: 1}
}

// begun holds a session and begins a turn in it.
func begun(h *Hub, b Begin) (*Turn, error) {
	hold, err := h.Hold(b.Input.Principal, b.Input.Session)
	if err != nil {
		return nil, err
	}
	return hold.Start(b), nil
}

func start(t testing.TB, h *Hub, session string) *Turn {
	t.Helper()
	return startAs(t, h, begin(session))
}

func startAs(t testing.TB, h *Hub, b Begin) *Turn {
	t.Helper()
	turn, err := begun(h, b)
	if err != nil {
		t.Fatalf("Start(%s) = %v", b.Input.Session, err)
	}
	return turn
}

// ended waits for the end of a turn, which must not fail.
func ended(t testing.TB, turn *Turn) {
	t.Helper()
	if _, _, err := turn.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// first returns the name of the first frame that somebody gets who comes then.
func first(t testing.TB, h *Hub, who capability.Principal, session, after string) string {
	t.Helper()
	for f := range h.Follow(context.Background(), who, session, after) {
		if want := h.epoch + "-"; !strings.HasPrefix(f.ID, want) {
			t.Errorf("the id of %s is %q, want %q and a number", f.Name, f.ID, want)
		}
		return f.Name
	}
	return ""
}

// heard joins frames into what a client makes of them: fragments next to each
// other are one.
func heard(frames []Frame) string {
	var b strings.Builder
	last := ""
	for _, f := range frames {
		var d event.Delta
		if f.Name != "delta" {
			if f.Name != "idle" && f.Name != "" {
				b.WriteString("|" + string(f.Data))
				last = ""
			}
			continue
		}
		if err := json.Unmarshal(f.Data, &d); err != nil {
			b.WriteString(err.Error())
		}
		now := "text:"
		if d.Thought != "" {
			now = "thought:"
		}
		if now != last {
			b.WriteString("|" + now)
			last = now
		}
		b.WriteString(d.Text + d.Thought)
	}
	return b.String()
}

func names(frames []Frame) string {
	var out []string
	for _, f := range frames {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

// follow returns the frames up to the end of a turn.
func follow(ctx context.Context, h *Hub, session, after string) (frames []Frame) {
	for f := range h.Follow(ctx, ada, session, after) {
		frames = append(frames, f)
		if f.Name == "done" || f.Name == "failed" {
			break
		}
	}
	return frames
}

var someEvent = rapid.Custom(func(t *rapid.T) event.Event {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return event.Notice{Name: "n", Text: rapid.StringN(0, 30, -1).Draw(t, "text")}
	case 1, 2:
		return event.Delta{Thought: rapid.StringN(1, 8, -1).Draw(t, "thought")}
	}
	return event.Delta{Text: rapid.StringN(1, 8, -1).Draw(t, "text") + rapid.SampledFrom([]string{"", "\xff", "é"}).Draw(t, "odd")}
})

// TestFollowFromAnywhere: whoever comes back with the id of any event they had
// gets exactly the rest, however fragments were joined meanwhile.
func TestFollowFromAnywhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(someEvent, 1, 150).Draw(r, "events")
		s := &source{events: make(chan event.Event)}
		h := New(Config{Turn: s.turn})
		turn := start(t, h, "s")
		var live []Frame
		over := make(chan struct{})
		go func() {
			defer close(over)
			live = follow(context.Background(), h, "s", turn.After)
		}()
		for _, e := range list {
			s.events <- e
		}
		close(s.events)
		<-over
		want := heard(live)
		if got := heard(follow(context.Background(), h, "s", turn.After)); got != want {
			r.Fatalf("a late follower heard %q, want %q", got, want)
		}
		at := rapid.IntRange(0, len(live)-2).Draw(r, "cut")
		rest := follow(context.Background(), h, "s", live[at].ID)
		if got := heard(slices.Concat(live[:at+1], rest)); got != want {
			r.Fatalf("after %s a follower heard %q, want %q", live[at].ID, got, want)
		}
	})
}

// TestSlowFollower: one that does not read holds up nobody, and is told that it
// has missed something.
func TestSlowFollower(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn, MostBytes: 64 << 10})
	turn := start(t, h, "s")
	next, stop := iter.Pull(h.Follow(context.Background(), ada, "s", turn.After))
	defer stop()
	if f, _ := next(); f.Name != "said" {
		t.Fatalf("the first frame is %q", f.Name)
	}
	text := strings.Repeat("x", 1000)
	for range 1000 {
		s.events <- event.Output{ID: "c", Text: text}
		l, _ := h.look(ada, "s")
		l.mu.Lock()
		if size := l.ring.bytes; size > 64<<10 {
			t.Fatalf("the ring has %d bytes, want at most %d", size, 64<<10)
		}
		if n := real(&l.ring); n != l.ring.bytes {
			t.Fatalf("the ring says %d bytes and has %d", l.ring.bytes, n)
		}
		l.mu.Unlock()
	}
	close(s.events)
	ended(t, turn)
	if f, _ := next(); f.Name != "reset" {
		t.Errorf("a follower that fell out got %q, want reset", f.Name)
	}
	if f, _ := next(); f.Name != "idle" {
		t.Errorf("after the reset it got %q, want idle", f.Name)
	}
}

func real(r *ring) (n int) {
	for i := range r.items {
		n += r.items[i].size()
	}
	return n
}

// TestWhereToBegin is about ids.
func TestWhereToBegin(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn})
	testkit.Equal(t, "without a turn", first(t, h, ada, "s", ""), "idle")
	turn := start(t, h, "s")
	s.events <- event.Delta{Text: "a"}
	s.events <- event.Notice{}
	for _, test := range []struct{ after, want string }{
		{"", "said"}, {turn.After, "said"}, {h.id(1), "delta"}, {h.id(99), "reset"}, {"beef-1", "reset"}, {"x", "reset"}, {h.epoch + "--1", "reset"}, {h.epoch + "-1x", "reset"},
	} {
		testkit.Equal(t, fmt.Sprintf("after %q the first frame", test.after), first(t, h, ada, "s", test.after), test.want)
	}
	testkit.Equal(t, "another tenant", first(t, h, capability.Principal{ID: "ada", Tenant: "other"}, "s", ""), "idle")
	close(s.events)
	ended(t, turn)
}

// TestLinger: what nobody needs is let go of after a while, and its ids are
// never given again.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Turn: quickTurn, Linger: time.Minute})
		turn := start(t, h, "s")
		frames := follow(t.Context(), h, "s", turn.After)
		synctest.Wait()
		time.Sleep(59 * time.Second)
		testkit.Equal(t, "within the time", names(follow(t.Context(), h, "s", frames[0].ID)), "delta done")
		synctest.Wait()
		time.Sleep(61 * time.Second)
		if n, _ := known(h, "s"); n != 0 {
			t.Fatalf("%d sessions are kept, want none", n)
		}
		old := frames[len(frames)-1].ID
		turn = start(t, h, "other")
		if turn.After != old {
			t.Errorf("the next session begins after %s, want %s", turn.After, old)
		}
		<-turn.over
		testkit.Equal(t, "an id of before", first(t, h, ada, "s", frames[0].ID), "reset")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		h = New(Config{Turn: quickTurn, MostSessions: 3})
		for i := range 5 {
			<-start(t, h, fmt.Sprint(i)).over
			synctest.Wait()
		}
		if n, oldest := known(h, "1"); n != 3 || oldest {
			t.Errorf("%d sessions are kept, want the newest 3", n)
		}
		time.Sleep(time.Hour)
	})
}

// known says of how many sessions something is kept, and whether of this one.
func known(h *Hub, session string) (int, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.logs), h.logs[keyOf(ada, session)] != nil
}

func quickTurn(context.Context, event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		_ = yield(event.Delta{Text: "hello"}, nil) && yield(event.Done{Turn: 1, Reason: event.EndAnswer, Text: "hello"}, nil)
	}
}

// TestBeat: silence is broken from time to time.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{Turn: quickTurn, Beat: time.Second})
		began, n := time.Now(), 0
		for f := range h.Follow(t.Context(), ada, "s", "") {
			if n++; n > 1 && f.Name != "" {
				t.Errorf("frame %d is %q, want a beat", n, f.Name)
			}
			if n == 4 {
				break
			}
		}
		testkit.Equal(t, "three beats took", time.Since(began), 3*time.Second)
		time.Sleep(time.Hour)
	})
}

// TestOneTurnAtATime: a second one is a conflict, also while the session is held,
// and an abort ends the first.
func TestOneTurnAtATime(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn, MostSessions: 2})
	turn := start(t, h, "s")
	if _, err := begun(h, begin("s")); capability.KindOf(err) != capability.Conflict {
		t.Errorf("a second turn = %v, want a conflict", err)
	}
	hold, err := h.Hold(ada, "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Hold(ada, "third"); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("one above the most = %v, want unavailable", err)
	}
	if !h.Running(ada, "s") || h.Running(ada, "other") || h.Running(capability.Principal{ID: "bob"}, "s") {
		t.Error("Running does not know what runs")
	}
	if h.Abort(capability.Principal{ID: "ada"}, "s", nil) || h.Abort(ada, "other", nil) {
		t.Error("Abort ended what was not there")
	}
	before := h.Mark(ada, "other")
	hold.Release(true)
	if after := h.Mark(ada, "other"); after.Gen == before.Gen {
		t.Error("a session that was changed has the mark of before")
	}
	testkit.Equal(t, "after a change followers get", first(t, h, ada, "other", before.After), "reset")
	if !h.Abort(ada, "s", nil) {
		t.Error("Abort found nothing")
	}
	if d, _, err := turn.Wait(context.Background()); d.Reason != event.EndAborted || err != nil {
		t.Errorf("the turn ended with %+v, %v", d, err)
	}
	if frames := follow(context.Background(), h, "s", turn.After); names(frames) != "said done" {
		t.Errorf("followers got %s", names(frames))
	}
	start(t, h, "s").cancel() // whoever sees the end may begin
	h.turns.Wait()
}

// TestFailures: what was no turn is told as a problem, and what breaks takes
// nothing with it.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name string
		turn func(context.Context, event.Input) iter.Seq2[event.Event, error]
		want []string
	}{
		{"refused", func(context.Context, event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				yield(nil, &capability.Error{Kind: capability.Unavailable, Op: "begin", Target: "s", Err: errors.New("in use"), Fix: "wait"})
			}
		}, []string{`"status":503`, `"code":"unavailable"`, `in use`, `"fix":"wait"`}},
		{"panics", func(context.Context, event.Input) iter.Seq2[event.Event, error] {
			return func(func(event.Event, error) bool) { panic("secret") }
		}, []string{`"code":"internal"`}},
		{"says nothing", func(context.Context, event.Input) iter.Seq2[event.Event, error] {
			return func(func(event.Event, error) bool) {}
		}, []string{`"code":"internal"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := New(Config{Turn: test.turn})
			turn := start(t, h, "s")
			frames := follow(context.Background(), h, "s", turn.After)
			last := frames[len(frames)-1]
			if last.Name != "failed" || !strings.HasPrefix(string(last.Data), `{"type":"failed","problem":{`) || strings.Contains(string(last.Data), "secret") {
				t.Errorf("the last frame is %s %s", last.Name, last.Data)
			}
			for _, want := range test.want {
				if !strings.Contains(string(last.Data), want) {
					t.Errorf("the problem is %s, want %s in it", last.Data, want)
				}
			}
			if _, _, err := turn.Wait(context.Background()); err == nil {
				t.Error("Wait = nil, want an error")
			}
		})
	}
}

// TestAnotherProcess: a turn that has another number than was expected makes
// followers read again.
func TestAnotherProcess(t *testing.T) {
	h := New(Config{Turn: quickTurn})
	b := begin("s")
	b.Turn = 7
	turn := startAs(t, h, b)
	var got []Frame
	for f := range h.Follow(context.Background(), ada, "s", turn.After) {
		if got = append(got, f); f.Name == "reset" {
			break
		}
	}
	if names(got) != "said delta done reset" {
		t.Errorf("frames: %s", names(got))
	}
}

// TestDrain: turns that run are finished, new ones refused, and followers end.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{events: make(chan event.Event)}
		kept := 0
		h := New(Config{Turn: s.turn, Keep: func(context.Context, capability.Principal, string, int, []byte) error {
			time.Sleep(time.Second)
			kept++
			return nil
		}})
		turn := start(t, h, "s")
		var all sync.WaitGroup
		var running, idle []Frame
		all.Go(func() {
			for f := range h.Follow(context.Background(), ada, "s", turn.After) {
				running = append(running, f)
			}
		})
		all.Go(func() {
			for f := range h.Follow(context.Background(), ada, "idle", "") {
				idle = append(idle, f)
			}
		})
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- h.Drain(context.Background()) }()
		synctest.Wait()
		if _, err := begun(h, begin("new")); func() string { p, _ := problem.Of(err); return p.Code }() != "stopping" {
			t.Errorf("a new turn = %v, want stopping", err)
		}
		s.events <- event.Delta{Text: "still here"}
		close(s.events)
		if err := <-drained; err != nil || kept != 1 {
			t.Errorf("Drain = %v with %d records, want nil and 1", err, kept)
		}
		all.Wait()
		if names(running) != "said delta done leaving" || names(idle) != "idle leaving" {
			t.Errorf("followers got %q and %q", names(running), names(idle))
		}
		testkit.Equal(t, "who comes late gets", names(slices.Collect(h.Follow(context.Background(), ada, "s", turn.After))), "said delta done idle leaving")
		time.Sleep(time.Hour)
	})
}

// TestDrainLeaves: a turn that waits for a person does not hold up the stop. It
// ends with what it asks, and goes on another time.
func TestDrainLeaves(t *testing.T) {
	h := New(Config{Turn: func(_ context.Context, in event.Input) iter.Seq2[event.Event, error] {
		return func(yield func(event.Event, error) bool) {
			yield(event.Asked{ID: "1.1", What: event.Ask, Text: "well?"}, nil)
			<-in.Leave
			yield(event.Done{Turn: 1, Reason: event.EndWaiting}, nil)
		}
	}})
	turn := start(t, h, "s")
	if err := h.Drain(t.Context()); err != nil {
		t.Errorf("Drain = %v, want nil", err)
	}
	d, asked, err := turn.Wait(t.Context())
	if d.Reason != event.EndWaiting || len(asked) != 1 || asked[0].ID != "1.1" || err != nil {
		t.Errorf("Wait = %+v, %+v, %v; want that it waits for 1.1", d, asked, err)
	}
	if err := h.Drain(t.Context()); err != nil {
		t.Errorf("Drain once more = %v, want nil", err)
	}
}

// TestClaim: a question is answered once.
func TestClaim(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn})
	turn := start(t, h, "s")
	s.events <- event.Asked{ID: "1.1", What: event.Ask, Text: "well?"}
	s.events <- event.Notice{}
	kind := func(id string) capability.ErrorKind {
		_, _, err := h.Claim(ada, "s", id)
		return capability.KindOf(err)
	}
	testkit.Equal(t, "an unknown question", kind("9.9"), capability.NotFound)
	if _, _, err := h.Claim(capability.Principal{ID: "bob"}, "s", "1.1"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("somebody else's question = %v", err)
	}
	asked, settle, err := h.Claim(ada, "s", "1.1")
	if err != nil || asked.Text != "well?" || kind("1.1") != capability.Conflict {
		t.Fatalf("Claim = %+v, %v", asked, err)
	}
	settle(false)
	if _, settle, err = h.Claim(ada, "s", "1.1"); err != nil {
		t.Fatalf("after an answer that was not taken: %v", err)
	}
	settle(true)
	if got := kind("1.1"); got != capability.Conflict || len(h.Mark(ada, "s").Asked) != 1 {
		t.Errorf("an answer on its way = %v", got)
	}
	s.events <- event.Answered{ID: "1.1", Yes: true}
	s.events <- event.Asked{ID: "1.2", What: event.Ask}
	s.events <- event.Notice{}
	if m := h.Mark(ada, "s"); len(m.Asked) != 1 || m.Asked[0].ID != "1.2" || kind("1.1") != capability.Conflict {
		t.Errorf("asked = %+v", m.Asked)
	}
	close(s.events)
	<-turn.over
	if len(h.Mark(ada, "s").Asked) != 0 || kind("1.2") != capability.Conflict {
		t.Error("a turn that is over still asks")
	}
}

// TestRecord: the record has what happened without fragments, within its size,
// and says what it leaves out.
func TestRecord(t *testing.T) {
	long := strings.Repeat("é\"<", 40_000)
	found := door.Found{}
	found.Map, found.Briefs = long, []door.Piece{{ID: "tool:a", Text: long}}
	events := []event.Event{event.Selected{Found: found, Why: "why"}}
	for i := range 150 {
		events = append(events, event.Delta{Text: "word"},
			event.Started{Call: event.Call{ID: fmt.Sprint(i), Target: "tool:a"}},
			event.Finished{ID: fmt.Sprint(i), Target: "tool:a", Result: capability.Result{Parts: []capability.Part{{Text: long}, {Data: []byte(long), MIME: "image/png"}}}})
	}
	var kept []byte
	h := New(Config{
		MostBytes: 1 << 20,
		Keep: func(_ context.Context, who capability.Principal, session string, turn int, record []byte) error {
			if who.ID != ada.ID || who.Tenant != ada.Tenant || session != "s" || turn != 3 {
				t.Errorf("Keep(%v, %s, %d)", who, session, turn)
			}
			kept = record
			return errors.New("the disk is full")
		},
		Turn: func(context.Context, event.Input) iter.Seq2[event.Event, error] {
			return func(yield func(event.Event, error) bool) {
				for _, e := range events {
					yield(e, nil)
				}
				yield(event.Done{Turn: 3, Reason: event.EndAnswer, Text: long}, nil)
			}
		},
	})
	b := begin("s")
	b.Turn = 3
	turn := startAs(t, h, b)
	d, _, err := turn.Wait(context.Background())
	if err != nil || d.Text != long {
		t.Fatalf("Wait gives %d bytes of text, %v; want all %d", len(d.Text), err, len(long))
	}
	h.turns.Wait()
	var list []map[string]any
	if err := json.Unmarshal(kept, &list); err != nil || len(kept) > 256<<10 {
		t.Fatalf("the record has %d bytes: %v", len(kept), err)
	}
	n := len(list)
	if list[0]["type"] != "selected" || list[n-1]["type"] != "done" || list[n-2]["name"] != "cut" || !strings.Contains(fmt.Sprint(list[0]), "bytes]") {
		t.Errorf("the record begins with %.200v and ends with %.200v, %.200v", list[0], list[n-2], list[n-1])
	}
	if slices.ContainsFunc(list, func(m map[string]any) bool { return m["type"] == "delta" }) {
		t.Error("the record has fragments")
	}
	if again, ok := h.Record(ada, "s", 3); !ok || string(again) != string(kept) {
		t.Error("Record gives something else than what is kept")
	}
	if _, ok := h.Record(ada, "s", 2); ok {
		t.Error("Record gives the record of another turn")
	}
}

// TestShrink: what does not fit is cut visibly, and stays the event that it is.
func TestShrink(t *testing.T) {
	long := strings.Repeat("ab", 5000)
	for _, test := range []struct {
		in   any
		most int
	}{
		{map[string]any{"type": "asked", "id": "1.1", "text": long}, 1000},
		{map[string]any{"type": "asked", "id": "1.1", "lines": strings.Split(long, "a")}, 1000},
	} {
		data, err := json.Marshal(test.in)
		if err != nil {
			t.Fatal(err)
		}
		got := shrink("asked", data, test.most)
		if len(got) > test.most || !strings.HasPrefix(string(got), `{"type":"asked"`) || !json.Valid(got) || !strings.Contains(string(got), `"id":"1.1"`) {
			t.Errorf("shrink(%.40s…, %d) = %s", data, test.most, got)
		}
	}
}

// TestLateBeginning: of a turn that said more than is kept, those who come late
// see everything from one of its steps on.
func TestLateBeginning(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn, MostBytes: 64 << 10, Last: func(context.Context, capability.Principal, string) (int, error) { return 42, nil }})
	b := begin("s")
	b.Base = 7
	turn := startAs(t, h, b)
	if m := h.Mark(ada, "s"); m.Base != 7 || m.After != turn.After {
		t.Errorf("Mark = %+v, want the beginning", m)
	}
	for range 200 {
		s.events <- event.Output{Text: strings.Repeat("x", 1000)}
	}
	s.events <- event.Step{Number: 1}
	s.events <- event.Notice{}
	s.events <- event.Notice{}
	m := h.Mark(ada, "s")
	if m.Base != 42 || !m.Running {
		t.Fatalf("Mark = %+v, want what was written at the step", m)
	}
	close(s.events)
	testkit.Equal(t, "from there on", names(follow(context.Background(), h, "s", m.After)), "notice notice done")
}

// TestRecordOfWhatWasTakenBack: it is told no more, also where the turn in its
// place fails.
func TestRecordOfWhatWasTakenBack(t *testing.T) {
	s := &source{events: make(chan event.Event)}
	h := New(Config{Turn: s.turn})
	turn := start(t, h, "a")
	s.events <- event.Notice{Name: "old", Text: "taken back"}
	close(s.events)
	ended(t, turn)
	if _, ok := h.Record(ada, "a", 1); !ok {
		t.Error("there is no record of a turn that stands")
	}
	s.events, s.err = make(chan event.Event), errors.New("the store is away")
	close(s.events)
	b := begin("a")
	b.Changed, b.Turn = true, 2
	again := startAs(t, h, b)
	if _, _, err := again.Wait(t.Context()); err == nil {
		t.Error("the turn in its place did not fail")
	}
	if record, ok := h.Record(ada, "a", 1); ok {
		t.Errorf("Record of what was taken back = %s", record)
	}
}
