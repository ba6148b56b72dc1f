package session_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/talk/session"
	"ken/internal/testkit/storetest"
)

// TestOutageStormOfTurns: while connections break, also in the middle of a commit,
// no acknowledged entry is lost and none is there twice, and what this process
// remembers is what is there.
func TestOutageStormOfTurns(t *testing.T) {
	o := storetest.NewOutage(t)
	s := session.New(storetest.Open(t, o.Address), session.Config{})
	beside := session.New(storetest.Open(t, o.Beside), session.Config{})
	want := map[string][]string{} // what was acknowledged of each session
	for range 100 {
		want[begin(t, s, ann).ID] = nil
	}
	stop := o.Storm()
	n := 0
	for id := range want {
		turn, err := s.Prepare(ctx, ann, id)
		if err != nil {
			continue
		}
		for _, text := range []string{"first", "second", "last"} {
			if text == "last" {
				turn.Closing()
			}
			if turn.Append(ctx, said(text)) == nil {
				want[id] = append(want[id], text)
				n++
			}
		}
		_ = turn.Release(ctx) // the lock may be lost
	}
	t.Logf("%d sessions were ended, %d entries acknowledged", stop(), n)
	if n == 0 {
		t.Fatal("nothing was acknowledged")
	}
	for id, texts := range want {
		_, got, err := beside.Read(ctx, ann, id)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, e := range got {
			seen[e.Blocks[0].Text]++
		}
		for _, text := range texts {
			if seen[text] != 1 {
				t.Errorf("%q of %s is there %d times", text, id, seen[text])
			}
		}
		if _, again, err := s.Read(ctx, ann, id); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("Read(%s) = %v, %v; beside it %v", id, again, err, got)
		}
		if len(texts) > 0 && texts[len(texts)-1] == "last" {
			release(t, lock(t, beside, ann, id)) // it was let go of
		}
	}
}

// TestOutage: without its server nothing is written and nothing is lost; a turn
// that had the session before goes on with it afterwards.
func TestOutage(t *testing.T) {
	o := storetest.NewOutage(t)
	s := session.New(storetest.Open(t, o.Address), session.Config{LockFor: time.Minute})
	h := begin(t, s, ann)
	turn := lock(t, s, ann, h.ID)
	add(t, turn, said("before"))
	o.Down()
	if err := turn.Append(ctx, said("meanwhile")); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, session.ErrLost) {
		t.Errorf("Append without a server = %v", err)
	}
	if _, err := s.Head(ctx, ann, h.ID); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, session.ErrNone) {
		t.Errorf("Head without a server = %v", err)
	}
	o.Up()
	add(t, turn, said("after"))
	release(t, turn)
	if _, got, err := s.Read(ctx, ann, h.ID); err != nil || len(got) != 2 {
		t.Errorf("Read = %d entries, %v", len(got), err)
	}
}
