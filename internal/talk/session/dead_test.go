package session_test

import (
	"context"
	"errors"
	"testing"

	"ken/capability"
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
		for name, begin := range map[string]func(context.Context, capability.Principal, string) (*session.Turn, error){"Prepare": other.Prepare, "Lock": other.Lock} {
			turn, err := begin(t.Context(), ann, id)
			if free := err == nil; free != tt.free || !free && !errors.Is(err, session.ErrBusy) {
				t.Errorf("%s: %s = %v, want it free: %v", tt.name, name, err, tt.free)
			}
			if turn != nil {
				release(t, turn)
				lock(t, s, ann, id) // the dead one's again
			}
		}
	}
}
