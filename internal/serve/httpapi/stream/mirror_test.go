package stream

import (
	"testing"
	"time"

	"ken/internal/store"
)

// TestLostAnswer: what comes after an answer that was lost is not taken for the beginning,
// and the repeated answer is taken once.
func TestLostAnswer(t *testing.T) {
	h := New(Config{Turn: quickTurn, Relay: &Relay{
		Name: "here", Store: func() (*store.Store, error) { return nil, store.ErrClosed }, Peers: func() []string { return []string{"there"} },
	}})
	l := h.use(keyOf(ada, "s"))
	defer h.leave(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	h.relay.wantLocked(l, "")
	word := func(n int64, name string) parcel {
		return parcel{N: n, Name: name, Data: []byte(`{"type":"` + name + `"}`)}
	}
	if h.apply(l, "there", &update{After: 1, Last: 2, Parcels: []parcel{word(2, "step")}, Turn: &remoteTurn{Number: 1}}) {
		t.Error("the second half of a turn was taken for all of it")
	}
	q := l.mirror.waiting["there"]
	q.at = time.Now().Add(-q.pause)
	l.mirror.waiting["there"] = q
	h.relay.look(l, map[string]bool{"there": true}, 1)
	if again := l.mirror.waiting["there"]; again.pause != 2*q.pause {
		t.Errorf("the next question comes after %v, want twice %v", again.pause, q.pause)
	}
	for range 2 {
		if !h.apply(l, "there", &update{Fresh: true, Last: 2, Parcels: []parcel{word(1, "said"), word(2, "step")}, Turn: &remoteTurn{Number: 1}}) {
			t.Error("the whole turn was not taken")
		}
	}
	var pieces [8]piece
	if n, _ := l.ring.read(0, pieces[:]); n != 2 {
		t.Errorf("%d events are here, want 2", n)
	}
}
