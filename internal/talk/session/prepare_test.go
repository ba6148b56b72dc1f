package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/talk/session"
	"ken/internal/testkit/storetest"
)

func prepare(t testing.TB, s *session.Store, who capability.Principal, id string) *session.Turn {
	t.Helper()
	turn, err := s.Prepare(ctx, who, id)
	if err != nil {
		t.Fatalf("Prepare(%s) = %v", id, err)
	}
	return turn
}

// end writes the last entries of a turn, which lets go of the session.
func end(t testing.TB, turn *session.Turn, list ...session.Entry) {
	t.Helper()
	turn.Closing()
	add(t, turn, list...)
}

// locked reports whether anybody has a session.
func locked(t testing.TB, db *store.Store) bool {
	t.Helper()
	return !lockEnds(t, db).IsZero()
}

// TestPrepare: one turn at a time. A turn that was prepared locks with its first
// entry, and unlocks with its last; others are told who has the session and since
// when.
func TestPrepare(t *testing.T) {
	s, db := fresh(t, session.Config{Holder: "the first"})
	other := session.New(db, session.Config{Holder: "the second"})
	h := begin(t, s, ann)
	turn := prepare(t, s, ann, h.ID)
	if locked(t, db) || len(turn.Entries()) != 0 || turn.Head() != h {
		t.Errorf("Prepare wrote a lock, or has %v of %+v", turn.Entries(), turn.Head())
	}
	for name, do := range map[string]func(context.Context, capability.Principal, string) (*session.Turn, error){"Lock": s.Lock, "Prepare": s.Prepare} {
		_, err := do(ctx, ann, h.ID)
		wantKind(t, name+" beside a prepared turn", err, capability.Unavailable, session.ErrBusy)
		if !strings.Contains(err.Error(), "the first") {
			t.Errorf("%s says %q, want who", name, err)
		}
	}
	add(t, turn, said("one"))
	for name, do := range map[string]func(context.Context, capability.Principal, string) (*session.Turn, error){
		"Lock": s.Lock, "Prepare": s.Prepare, "Lock elsewhere": other.Lock, "Prepare elsewhere": other.Prepare,
	} {
		_, err := do(ctx, ann, h.ID)
		wantKind(t, name+" beside a turn that runs", err, capability.Unavailable, session.ErrBusy)
		if text := err.Error(); !strings.Contains(text, "the first") || strings.Contains(name, "elsewhere") && !strings.Contains(text, "since 2") {
			t.Errorf("%s says %q, want who and since when", name, err)
		}
	}
	if _, _, err := other.Read(ctx, ann, h.ID); err != nil {
		t.Errorf("Read while a turn runs = %v", err)
	}
	add(t, turn, said("two"))
	end(t, turn, said("three"))
	if locked(t, db) || turn.Context().Err() != nil {
		t.Errorf("after the last entry: locked %v, its context %v", locked(t, db), turn.Context().Err())
	}
	wantKind(t, "Append after the last", turn.Append(ctx, said("late")), capability.Conflict, session.ErrLost)
	next := prepare(t, other, ann, h.ID)
	add(t, next, said("four"))
	release(t, turn) // lets go of nothing of the other's
	if turn.Context().Err() == nil || !locked(t, db) {
		t.Errorf("after Release: its context %v, the other's lock is there: %v", turn.Context().Err(), locked(t, db))
	}
	release(t, next)
	if head, got, err := s.Read(ctx, ann, h.ID); err != nil || len(got) != 4 || head.Last != 4 || locked(t, db) {
		t.Errorf("Read = %d entries of %d, %v; locked %v", len(got), head.Last, err, locked(t, db))
	}
}

// TestPreparedAndLeft: a turn that was prepared and wrote nothing leaves nothing
// behind; one that only changed the head writes that.
func TestPreparedAndLeft(t *testing.T) {
	s, db := fresh(t, session.Config{})
	h := begin(t, s, ann)
	release(t, prepare(t, s, ann, h.ID))
	if got, err := s.Head(ctx, ann, h.ID); err != nil || got != h || locked(t, db) {
		t.Errorf("Head = %+v, %v, want %+v", got, err, h)
	}
	turn := prepare(t, s, ann, h.ID)
	turn.SetHead(func(h *session.Head) { h.Title = "other" })
	release(t, turn)
	if got, err := s.Head(ctx, ann, h.ID); err != nil || got.Title != "other" || locked(t, db) {
		t.Errorf("Head = %+v, %v; locked %v", got, err, locked(t, db))
	}
	turn = prepare(t, s, ann, h.ID)
	end(t, turn, said("first and last"))
	if locked(t, db) {
		t.Error("a turn of one entry left a lock")
	}
	release(t, lock(t, s, ann, h.ID)) // before Release too
	release(t, turn)
	for _, who := range []capability.Principal{bob, eve, {}} {
		_, err := s.Prepare(ctx, who, h.ID)
		wantKind(t, "Prepare", err, capability.NotFound, session.ErrNone)
	}
	release(t, prepare(t, s, ann, h.ID)) // what failed is not in the way
}

// TestPreparedTooLate: whatever another process does to the session after it was
// prepared, the first entry is refused, nothing is written, and what the other
// has stays as it is.
func TestPreparedTooLate(t *testing.T) {
	for name, tt := range map[string]struct {
		kind   capability.ErrorKind
		is     error
		left   int
		locked bool
	}{
		"it runs a turn":  {capability.Unavailable, session.ErrBusy, 1, true},
		"it is in a turn": {capability.Unavailable, session.ErrBusy, 2, true},
		"it had a turn":   {capability.Unavailable, session.ErrBusy, 2, false},
		"it deletes":      {capability.NotFound, session.ErrNone, 0, false},
	} {
		for _, closing := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", closing), func(t *testing.T) {
				s, db := fresh(t, session.Config{})
				other := session.New(db, session.Config{})
				h := begin(t, s, ann)
				turn := lock(t, s, ann, h.ID)
				end(t, turn, said("before"))
				release(t, turn)
				turn = prepare(t, s, ann, h.ID)
				var theirs *session.Turn
				switch name {
				case "it runs a turn":
					theirs = lock(t, other, ann, h.ID)
				case "it deletes":
					if err := other.Delete(ctx, ann, h.ID); err != nil {
						t.Fatal(err)
					}
				default:
					if theirs = prepare(t, other, ann, h.ID); name == "it had a turn" {
						theirs.Closing()
					}
					add(t, theirs, said("theirs"))
				}
				if closing {
					turn.Closing()
				}
				turn.SetHead(func(h *session.Head) { h.Title = "mine" })
				for range 2 {
					wantKind(t, "Append", turn.Append(ctx, said("mine")), tt.kind, tt.is)
				}
				if len(turn.Entries()) != 1 || turn.Context().Err() != nil {
					t.Errorf("the turn has %d entries, its context %v", len(turn.Entries()), turn.Context().Err())
				}
				release(t, turn)
				if locked(t, db) != tt.locked {
					t.Errorf("locked = %v, want %v", locked(t, db), tt.locked)
				}
				head, got, err := s.Read(ctx, ann, h.ID)
				if len(got) != tt.left || (err != nil) != (tt.left == 0) || head.Title == "mine" {
					t.Errorf("Read = %+v, %v, %v", head, got, err)
				}
				if theirs != nil {
					release(t, theirs)
				}
				if tt.left > 0 {
					release(t, prepare(t, s, ann, h.ID)) // it is not in its own way
				}
			})
		}
	}
}

// TestPreparedIsKept: the lock that the first entry took is kept alive, and no
// longer than until the last.
func TestPreparedIsKept(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, file)
		first, second := session.New(a, session.Config{}), session.New(b, session.Config{})
		h := begin(t, first, ann)
		turn := prepare(t, first, ann, h.ID)
		time.Sleep(time.Hour) // nothing is held, and nothing is lost
		add(t, turn, said("one"))
		for range 5 {
			time.Sleep(betweenRenewals)
			if _, err := second.Prepare(ctx, ann, h.ID); !errors.Is(err, session.ErrBusy) {
				t.Fatalf("Prepare of a held session = %v", err)
			}
		}
		end(t, turn, said("two"))
		time.Sleep(time.Hour)
		if locked(t, b) || turn.Context().Err() != nil {
			t.Errorf("an hour after the last entry: locked %v, its context %v", locked(t, b), turn.Context().Err())
		}
		release(t, turn)
	})
}

// TestNotTheLast: an entry that could not be written does not let go.
func TestNotTheLast(t *testing.T) {
	s, db := fresh(t, session.Config{})
	turn := prepare(t, s, ann, begin(t, s, ann).ID)
	add(t, turn, said("one"))
	turn.Closing()
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := turn.Append(done, said("two")); !errors.Is(err, context.Canceled) || !locked(t, db) {
		t.Errorf("Append with an ended context = %v; locked %v", err, locked(t, db))
	}
	add(t, turn, said("two"))
	if locked(t, db) {
		t.Error("the last entry did not let go")
	}
	release(t, turn)
}

// TestRecent: the cache of a process agrees with the store, whichever process
// wrote the session, and no caller changes what another has.
func TestRecent(t *testing.T) {
	address := storetest.Address(t)
	here, there := session.New(storetest.Open(t, address), session.Config{}), session.New(storetest.Open(t, address), session.Config{})
	h := begin(t, here, ann)
	var before []session.Entry
	for i := range 6 {
		s := []*session.Store{here, here, there}[i%3]
		turn := prepare(t, s, ann, h.ID)
		if got := turn.Entries(); !reflect.DeepEqual(got, before) && i > 0 {
			t.Fatalf("turn %d begins with %v, want %v", i, got, before)
		}
		add(t, turn, exchangeOf(i)...)
		end(t, turn, said(fmt.Sprint("end ", i)))
		after := turn.Entries()
		release(t, turn)
		for name, s := range map[string]*session.Store{"here": here, "there": there, "anew": session.New(storetest.Open(t, address), session.Config{})} {
			head, got, err := s.Read(ctx, ann, h.ID)
			if err != nil || !reflect.DeepEqual(got, after) || head.Last != len(got) {
				t.Fatalf("Read %s = %v, %v, want %v", name, got, err, after)
			}
			_ = append(got, said("not mine"))
			_ = append(got[0].Blocks, said("nor this").Blocks...)
		}
		before = after
	}
	if err := there.Delete(ctx, ann, h.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Store{here, there} {
		_, _, err := s.Read(ctx, ann, h.ID)
		wantKind(t, "Read of a deleted session", err, capability.NotFound, session.ErrNone)
	}
	// One of the same name is another one.
	if _, err := there.Begin(ctx, session.Head{ID: h.ID, Tenant: ann.Tenant, Principal: ann.ID}); err != nil {
		t.Fatal(err)
	}
	turn := prepare(t, there, ann, h.ID)
	end(t, turn, said("new"))
	release(t, turn)
	if _, got, err := here.Read(ctx, ann, h.ID); err != nil || len(got) != 1 || got[0].Blocks[0].Text != "new" {
		t.Errorf("Read of the new one = %v, %v", got, err)
	}
}

func exchangeOf(i int) []session.Entry {
	return []session.Entry{said(fmt.Sprint("a", i)), {Turn: i, Kind: session.Note, Name: "n", Text: fmt.Sprint(i)}, said(fmt.Sprint("b", i))}
}
