package session_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/store"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// two opens two stores of one place, in a bubble of synctest: as two processes
// would have them. That is SQLite: a server's clock cannot be moved.
func two(t *testing.T, file string) (a, b *store.Store) {
	t.Helper()
	var list []*store.Store
	for range 2 {
		s, err := store.Open(ctx, file, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		list = append(list, s)
	}
	return list[0], list[1]
}

// betweenRenewals is no multiple of the time after which a lock is renewed, nor
// becomes one: two stores that write at the same moment wait for each other, one
// of them for a mutex, and there the clock of a test stands still.
const betweenRenewals = 29*time.Second + 7*time.Millisecond

// TestLockIsKept: a turn that takes long keeps its lock, and its entries go on;
// one whose process died leaves it after its time, to the moment.
func TestLockIsKept(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, file)
		cfg := session.Config{LockFor: 30 * time.Second}
		first, second := session.New(a, cfg), session.New(b, cfg)
		h := begin(t, first, ann)
		turn := lock(t, first, ann, h.ID)
		for range 20 {
			time.Sleep(betweenRenewals)
			if _, err := second.Lock(ctx, ann, h.ID); !errors.Is(err, session.ErrBusy) {
				t.Fatalf("Lock of a held session = %v", err)
			}
			add(t, turn, said("still here"))
		}
		// The process dies: its store is gone, and nothing is released.
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		ends := lockEnds(t, b)
		if left := time.Until(ends); left < 15*time.Second || left > 30*time.Second {
			t.Errorf("the lock lasts %v more", left)
		}
		time.Sleep(time.Until(ends) - time.Millisecond)
		if _, err := second.Lock(ctx, ann, h.ID); !errors.Is(err, session.ErrBusy) {
			t.Errorf("Lock before the time is over = %v", err)
		}
		time.Sleep(time.Millisecond)
		next := lock(t, second, ann, h.ID)
		if len(next.Entries()) != 20 {
			t.Errorf("%d entries, want 20", len(next.Entries()))
		}
		// The old turn notices by itself, and can do no harm.
		<-turn.Context().Done()
		if cause := context.Cause(turn.Context()); !errors.Is(cause, session.ErrLost) {
			t.Errorf("its context ended with %v", cause)
		}
		if err := turn.Append(ctx, said("late")); !errors.Is(err, session.ErrLost) {
			t.Errorf("Append of the old turn = %v", err)
		}
		release(t, turn)
		release(t, next)
	})
}

// TestLost: a turn whose lock another has writes nothing more, its context ends,
// and the other's lock stays, however the two began.
func TestLost(t *testing.T) {
	for name, begins := range map[string]func(testing.TB, *session.Store, capability.Principal, string) *session.Turn{"locked": lock, "prepared": prepare} {
		t.Run(name, func(t *testing.T) {
			file := storetest.SQLite(t)
			synctest.Test(t, func(t *testing.T) {
				a, b := two(t, file)
				first, second := session.New(a, session.Config{}), session.New(b, session.Config{})
				h := begin(t, first, ann)
				turn := begins(t, first, ann, h.ID)
				add(t, turn, said("one"))
				takeLock(t, b, h.ID)
				other := begins(t, second, ann, h.ID)
				add(t, other, said("two"))
				if name == "prepared" {
					turn.Closing()
				}
				wantKind(t, "Append without the lock", turn.Append(ctx, said("three")), capability.Conflict, session.ErrLost)
				if cause := context.Cause(turn.Context()); !errors.Is(cause, session.ErrLost) {
					t.Errorf("its context ended with %v", cause)
				}
				release(t, turn)
				if !locked(t, b) {
					t.Error("the other's lock is gone")
				}
				end(t, other, said("three"))
				release(t, other)
				if _, got, err := first.Read(ctx, ann, h.ID); err != nil || len(got) != 3 || got[1].Blocks[0].Text != "two" {
					t.Errorf("Read = %v, %v", got, err)
				}
			})
		})
	}
}

// TestLostIsNoticed: a turn that only waits learns that its lock is gone.
func TestLostIsNoticed(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := two(t, file)
		s := session.New(a, session.Config{})
		turn := lock(t, s, ann, begin(t, s, ann).ID)
		takeLock(t, b, "")
		began := time.Now()
		<-turn.Context().Done()
		if took := time.Since(began); took > 10*time.Second || !errors.Is(context.Cause(turn.Context()), session.ErrLost) {
			t.Errorf("after %v: %v", took, context.Cause(turn.Context()))
		}
		release(t, turn)
	})
}

// lockEnds says when the only lock there is will be over.
func lockEnds(t testing.TB, db *store.Store) (ends time.Time) {
	t.Helper()
	for item, err := range db.Scan(ctx, "session/", store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(item.Key, "/lock") {
			ends = item.Expires
		}
	}
	return ends
}

// takeLock deletes a lock behind its holder's back.
func takeLock(t testing.TB, db *store.Store, id string) {
	t.Helper()
	var b store.Batch
	for item, err := range db.Scan(ctx, "session/", store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(item.Key, "/lock") && strings.Contains(item.Key, id) {
			b.Delete(item.Key)
		}
	}
	if _, err := db.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
}

// TestAborted: the context of Lock ends the turn's, but a turn that was aborted
// still writes down how it ended.
func TestAborted(t *testing.T) {
	s, _ := fresh(t, session.Config{})
	h := begin(t, s, ann)
	wide, cancel := context.WithCancel(ctx)
	turn, err := s.Lock(wide, ann, h.ID)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if turn.Context().Err() == nil {
		t.Error("its context has not ended")
	}
	if err := turn.Append(wide, said("no")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with the ended context = %v", err)
	}
	add(t, turn, said("aborted"))
	release(t, turn)
	if _, got, err := s.Read(ctx, ann, h.ID); err != nil || len(got) != 1 {
		t.Errorf("Read = %v, %v", got, err)
	}
}

// TestKeep: what is not kept is not there, and goes; a session that is used
// stays whole.
func TestKeep(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		a, _ := two(t, file)
		s := session.New(a, session.Config{Keep: 24 * time.Hour})
		old, used := begin(t, s, ann), begin(t, s, ann)
		foreign := begin(t, s, bob)
		for range 3 {
			time.Sleep(20 * time.Hour)
			turn := lock(t, s, ann, used.ID)
			add(t, turn, said("x"))
			release(t, turn)
		}
		if _, err := s.Head(ctx, ann, old.ID); !errors.Is(err, session.ErrNone) {
			t.Errorf("Head of the old one = %v", err)
		}
		if list, err := s.List(ctx, ann, 0); err != nil || len(list) != 1 || list[0].Last != 3 {
			t.Errorf("List = %+v, %v", list, err)
		}
		begin(t, s, ann) // takes what is over of ann's with it
		left := func(id string) (n int) {
			for item := range a.Scan(ctx, "", store.Range{}) {
				if strings.Contains(item.Key, id) {
					n++
				}
			}
			return n
		}
		if left(old.ID) != 0 || left(foreign.ID) == 0 {
			t.Errorf("%d keys of the old one are left, %d of bob's", left(old.ID), left(foreign.ID))
		}
		if n, err := s.Sweep(ctx); err != nil || n != 1 || left(foreign.ID) != 0 || left(used.ID) == 0 {
			t.Errorf("Sweep = %d, %v; %d of bob's are left", n, err, left(foreign.ID))
		}
	})
}

// TestInterruptedDelete: a deletion that broke off is finished, and meanwhile
// the session is not there.
func TestInterruptedDelete(t *testing.T) {
	s, db := fresh(t, session.Config{})
	h := begin(t, s, ann)
	turn := lock(t, s, ann, h.ID)
	for range 2 {
		add(t, turn, slices.Repeat([]session.Entry{said("x")}, 600)...)
	}
	release(t, turn)
	// The context ends after the first commit of several.
	n := 0
	cut, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for c, err := range db.Watch(cut, "session-list/", 0) {
			if err != nil {
				return
			}
			if string(c.Value) == "gone" {
				cancel()
			}
		}
	}()
	err := s.Delete(cut, ann, h.ID)
	if _, err := s.Head(ctx, ann, h.ID); !errors.Is(err, session.ErrNone) {
		t.Errorf("Head = %v", err)
	}
	swept, e := s.Sweep(ctx)
	if e != nil || (err != nil) != (swept == 1) {
		t.Errorf("Delete = %v, then Sweep = %d, %v", err, swept, e)
	}
	for range db.Scan(ctx, "session", store.Range{}) {
		n++
	}
	if n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// What makes the test binary a child, and what it works on.
const (
	childJob   = "KEN_SESSION_JOB"
	childStore = "KEN_SESSION_STORE"
	childID    = "KEN_SESSION_ID"
)

func serve(job string) error {
	db, err := store.Open(ctx, os.Getenv(childStore), "")
	if err != nil {
		return err
	}
	defer db.Close()
	s := session.New(db, session.Config{LockFor: time.Second})
	id := os.Getenv(childID)
	if job != "work" {
		err := stay(s, id, job)
		fmt.Println("held", err)
		_, _ = io.ReadAll(os.Stdin) // until it is killed
		return err
	}
	return work(s, id, fmt.Sprint(os.Getpid()))
}

// stay takes a turn to where it will be killed.
func stay(s *session.Store, id, where string) error {
	begin := s.Prepare
	if where == "locked" {
		begin = s.Lock
	}
	turn, err := begin(ctx, ann, id)
	if err != nil || where == "prepared" {
		return err
	}
	if where == "ended" {
		turn.Closing()
	}
	return turn.Append(ctx, said("held"))
}

const turns = 15

// work makes turns of two appends each, waiting for its turn: every other one
// takes and leaves the lock by itself.
func work(s *session.Store, id, name string) error {
	for i := 0; i < turns; {
		begin := s.Lock
		if i%2 == 1 {
			begin = s.Prepare
		}
		turn, err := begin(ctx, ann, id)
		if errors.Is(err, session.ErrBusy) {
			continue
		}
		if err != nil {
			return err
		}
		err = twice(turn, fmt.Sprintf("%s %d", name, i), i%2 == 1)
		if e := turn.Release(ctx); err == nil {
			err = e
		}
		if errors.Is(err, session.ErrBusy) && i%2 == 1 {
			continue // another one was faster
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

func twice(turn *session.Turn, text string, closing bool) error {
	if err := turn.Append(ctx, said(text+" a")); err != nil {
		return err
	}
	if closing {
		turn.Closing()
	}
	err := turn.Append(ctx, said(text+" b"))
	if errors.Is(err, session.ErrBusy) {
		return fmt.Errorf("the second append: %v", err) // it had the lock
	}
	return err
}

func start(t *testing.T, address, job, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childStore+"="+address, childID+"="+id, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Stderr = os.Stderr
	return cmd
}

// TestProcesses: turns of several processes and goroutines at one session come
// one after the other, and none is lost or torn.
func TestProcesses(t *testing.T) {
	testkit.CI(t, "starts processes")
	address := storetest.Address(t)
	s := session.New(storetest.Open(t, address), session.Config{})
	h := begin(t, s, ann)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			if err := work(s, h.ID, fmt.Sprint("goroutine", i)); err != nil {
				t.Error(err)
			}
		})
		cmd := start(t, address, "work", h.ID)
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	head, got, err := s.Read(ctx, ann, h.ID)
	if err != nil || len(got) != 4*turns*2 || head.Last != len(got) {
		t.Fatalf("Read = %d entries of %d, %v; want %d", len(got), head.Last, err, 4*turns*2)
	}
	for i := 0; i < len(got); i += 2 {
		a, b := got[i].Blocks[0].Text, got[i+1].Blocks[0].Text
		if a[:len(a)-1] != b[:len(b)-1] || !strings.HasSuffix(a, "a") || !strings.HasSuffix(b, "b") {
			t.Errorf("entries %d and %d are of two turns: %q, %q", i+1, i+2, a, b)
		}
	}
}

// TestKilled: a process that is killed in a turn leaves its session to the next
// one, with all that it had written; at once, where it had no lock.
func TestKilled(t *testing.T) {
	testkit.CI(t, "starts processes")
	for _, tt := range []struct {
		where string
		busy  bool
		left  int
	}{{"locked", true, 1}, {"begun", true, 1}, {"prepared", false, 0}, {"ended", false, 1}} {
		t.Run(tt.where, func(t *testing.T) {
			address := storetest.Address(t)
			s := session.New(storetest.Open(t, address), session.Config{})
			h := begin(t, s, ann)
			kill := held(t, address, tt.where, h.ID)
			turn, err := s.Lock(ctx, ann, h.ID)
			if errors.Is(err, session.ErrBusy) != tt.busy {
				t.Errorf("Lock while a process is there = %v", err)
			}
			if err == nil {
				release(t, turn)
			}
			kill()
			testkit.Wait(t, "the lock of the dead expires", func() bool {
				turn, err = s.Prepare(ctx, ann, h.ID)
				return !errors.Is(err, session.ErrBusy)
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := turn.Entries(); len(got) != tt.left || tt.left > 0 && got[0].Blocks[0].Text != "held" {
				t.Errorf("entries = %v, want %d", got, tt.left)
			}
			end(t, turn, said("after"))
			release(t, turn)
		})
	}
}

// held starts a process that stays in a turn, and gives what kills it.
func held(t *testing.T, address, where, id string) (kill func()) {
	t.Helper()
	cmd := start(t, address, where, id)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held <nil>\n" {
		t.Errorf("the child says %q, %v", line, err)
	}
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
	}
}

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
