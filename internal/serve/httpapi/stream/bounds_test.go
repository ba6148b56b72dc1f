package stream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
	"ken/internal/testkit"
)

// TestMostOwn: one principal cannot take the room of all, and what is no turn
// needs none.
func TestMostOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{events: make(chan event.Event)}
		h := New(Config{Turn: s.turn, MostSessions: 3, MostOwn: 2})
		first := start(t, h, "a")
		start(t, h, "b")
		_, err := begun(h, begin("c"))
		var p *wire.Problem
		if !errors.As(err, &p) || p.Status != http.StatusTooManyRequests || p.Code != "too-many-turns" || !strings.Contains(p.Detail, "2 turns of ada") {
			t.Errorf("Start above MostOwn = %v, want too-many-turns", err)
		}
		for _, bob := range []capability.Principal{{ID: "bob", Tenant: "t"}, {ID: "ada", Tenant: "u"}} {
			hold, err := h.Hold(bob, "c")
			if err != nil {
				t.Fatalf("Hold(%v) = %v, though there is room", bob, err)
			}
			hold.Release(false)
		}
		idle, err := h.Seize(ada, "c")
		if err != nil {
			t.Fatalf("Seize of what nothing runs in = %v", err)
		}
		if _, err := h.Seize(ada, "c"); capability.KindOf(err) != capability.Conflict {
			t.Errorf("Seize of what is held = %v, want a conflict", err)
		}
		if _, err := h.Seize(ada, "a"); capability.KindOf(err) != capability.Conflict {
			t.Errorf("Seize where a turn runs = %v, want a conflict", err)
		}
		idle.Release(true)
		h.Abort(ada, "a", nil)
		ended(t, first)
		synctest.Wait() // its room is free a moment after the end
		start(t, h, "c")
		h.abortAll()
		h.turns.Wait()
		if len(h.own) != 0 || h.busy != 0 {
			t.Errorf("own = %v and busy = %d when nothing runs", h.own, h.busy)
		}
	})
}

// TestAbortLeaves: whoever aborts a turn gets what it still asked, before others
// hear of its end; a hub that stops, and aborts what takes longer than
// it may, gives it to nobody.
func TestAbortLeaves(t *testing.T) {
	for _, test := range []struct {
		name  string
		abort bool
		want  string
	}{{"abort", true, "q2"}, {"drain", false, ""}} {
		t.Run(test.name, func(t *testing.T) {
			s := &source{events: make(chan event.Event)}
			h := New(Config{Turn: s.turn})
			turn := start(t, h, "s")
			s.events <- event.Asked{ID: "q1", What: event.Consent}
			s.events <- event.Asked{ID: "q2", What: event.Consent}
			s.events <- event.Answered{ID: "q1", Yes: true}
			s.events <- event.Notice{} // then the answer was taken in
			got := ""
			left := func(_ context.Context, asked []event.Asked) {
				for _, a := range asked {
					got += a.ID
				}
				select {
				case <-turn.over:
					t.Error("the turn was over for others before what it asked was settled")
				default:
				}
			}
			if test.abort {
				h.Abort(ada, "s", left)
				h.Abort(ada, "s", left)
			} else {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if err := h.Drain(ctx); capability.KindOf(err) != capability.Timeout || !strings.Contains(err.Error(), "1 turns") {
					t.Errorf("Drain = %v, want that one turn was aborted", err)
				}
			}
			if d, asked, err := turn.Wait(context.Background()); d.Reason != event.EndAborted || len(asked) != 0 || err != nil {
				t.Errorf("Wait = %+v, %v, %v", d, asked, err)
			}
			h.turns.Wait()
			if got != test.want {
				t.Errorf("left = %q, want %q", got, test.want)
			}
		})
	}
}

// TestTurnsOfOthers: when a session has turns that did not run here, followers
// are told to read it again.
func TestTurnsOfOthers(t *testing.T) {
	h := New(Config{Turn: quickTurn})
	run := func(number int) string {
		t.Helper()
		b := begin("s")
		b.Turn = number
		from := h.Mark(ada, "s").After
		turn := startAs(t, h, b)
		ended(t, turn)
		h.turns.Wait()
		return names(follow(context.Background(), h, "s", from))
	}
	h.Saw(ada, "s", 0)
	testkit.Equal(t, "the first turn", run(1), "said delta done")
	if got := run(2); got != "said delta done" { // its own number is 1: see quickTurn
		t.Errorf("the turn after it = %s", got)
	}
	h.Saw(ada, "s", 1)
	testkit.Equal(t, "a turn after those of others", run(4), "reset said delta done")
	from := h.Mark(ada, "s").After
	h.Saw(ada, "s", 9)
	h.Saw(ada, "s", 9)
	h.Saw(ada, "s", 3) // read long ago
	var got []Frame
	for f := range h.Follow(t.Context(), ada, "s", from) {
		if got = append(got, f); f.Name == "idle" {
			break
		}
	}
	if names(got) != "reset idle" {
		t.Errorf("after others were seen = %s, want one reset", names(got))
	}
}
