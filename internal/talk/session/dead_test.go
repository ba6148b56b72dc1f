package session_test

import (
	"errors"
	"testing"

	"ken/internal/talk/session"
)

// TestDeadHolder: the lock of a process that is gone for certain is free at
// once, for a turn that is prepared too; that of any other is not.
func TestDeadHolder(t *testing.T) {
	s, db := fresh(t, session.Config{Process: "a"})
	id := begin(t, s, ann).ID
	lock(t, s, ann, id)
	for _, tt := range []struct {
		name string
		dead func(string) bool
		free bool
	}{
		{"nobody knows", nil, false},
		{"it lives", func(string) bool { return false }, false},
		{"it is dead", func(p string) bool { return p == "a" }, true},
	} {
		other := session.New(db, session.Config{Process: "b", Dead: tt.dead})
		turn, err := other.Prepare(t.Context(), ann, id)
		if free := err == nil; free != tt.free || !free && !errors.Is(err, session.ErrBusy) {
			t.Errorf("%s: Prepare = %v, want it free: %v", tt.name, err, tt.free)
		}
		if turn != nil {
			release(t, turn)
			lock(t, s, ann, id) // the dead one's again
		}
		turn, err = other.Lock(t.Context(), ann, id)
		if free := err == nil; free != tt.free || !free && !errors.Is(err, session.ErrBusy) {
			t.Errorf("%s: Lock = %v, want it free: %v", tt.name, err, tt.free)
		}
		if turn != nil {
			release(t, turn)
		}
	}
}
