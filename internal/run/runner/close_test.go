package runner

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/store"
)

// hanging makes calls that hang where their text says: in their facts until
// release, deaf in their executor until release, or there as long as they may.
func hanging(release <-chan struct{}, invoked *atomic.Int64) tool {
	return tool{
		facts: func(c capability.Call) (Facts, error) {
			if strings.Contains(string(c.Arguments), "facts") {
				<-release
			}
			return Facts{}, nil
		},
		invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			invoked.Add(1)
			if strings.Contains(string(c.Arguments), "deaf") {
				<-release
				return capability.Result{Parts: []capability.Part{{Text: "late"}}}, nil
			}
			<-ctx.Done()
			return capability.Result{}, ctx.Err()
		},
	}
}

// leftBehind returns what an error of Close names.
func leftBehind(t *testing.T, err error) (names []string) {
	t.Helper()
	if u, ok := errors.AsType[*Unended](err); ok {
		for _, c := range u.Calls {
			names = append(names, string(c.Target))
			if !strings.Contains(err.Error(), string(c.Target)) {
				t.Errorf("Close() = %v, want %s in it", err, c.Target)
			}
		}
	}
	return names
}

// TestCloseIsBounded: whatever calls do, Close ends, names what runs on, and
// every call has one result and one closing record.
func TestCloseIsBounded(t *testing.T) {
	tests := map[string]struct {
		calls []string
		took  time.Duration
		names []string // of what runs on
	}{
		"nothing runs":            {},
		"a call that listens":     {calls: []string{"look listens"}, took: 30 * time.Second},
		"a deaf executor":         {calls: []string{"look deaf"}, took: 35 * time.Second, names: []string{"tool:look"}},
		"facts that do not end":   {calls: []string{"write facts"}, took: 50 * time.Second, names: []string{"tool:write"}},
		"all of them, and others": {calls: []string{"look deaf", "write facts", "repeat listens"}, took: 50 * time.Second, names: []string{"tool:look", "tool:write"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var invoked atomic.Int64
				r := newRig(t, hanging(release, &invoked), nil)
				errs := make(chan error, len(tt.calls))
				for _, c := range tt.calls {
					target, how, _ := strings.Cut(c, " ")
					go func() { _, err := r.Invoke(t.Context(), callOf(target, `{"text":"`+how+`"}`)); errs <- err }()
					synctest.Wait() // so that the order is theirs
				}
				began := invoked.Load()
				begin := time.Now()
				err := r.Close(t.Context())
				if took := time.Since(begin); took != tt.took {
					t.Errorf("Close() took %v, want %v", took, tt.took)
				}
				names := leftBehind(t, err)
				if !slices.Equal(names, tt.names) || (err == nil) != (len(tt.names) == 0) {
					t.Errorf("Close() = %v, want %v named", err, tt.names)
				}
				close(release)
				for range tt.calls {
					if err := <-errs; !errors.Is(err, errClosing) || !errors.Is(err, context.Canceled) {
						t.Errorf("Invoke() = %v, want that it was stopped because Ken closes", err)
					}
				}
				synctest.Wait()
				if n := invoked.Load(); n != began {
					t.Errorf("%d calls began after they were stopped", n-began)
				}
				closing := 0
				for _, rec := range r.log.all() {
					if rec.Event == audit.Started || rec.Event == audit.Slow {
						continue
					}
					if closing++; rec.Status != audit.Cancelled {
						t.Errorf("recorded %s, want CANCELLED", rec.Status)
					}
				}
				if closing != len(tt.calls) || len(r.Running()) != 0 {
					t.Errorf("%d closing records of %d calls, %d running, want one each and none", closing, len(tt.calls), len(r.Running()))
				}
				if err := r.Close(t.Context()); err != nil {
					t.Errorf("Close() again = %v, want nothing left", err)
				}
				refused(t, r, callOf("look", `{"text":"a"}`), capability.Unavailable)
			})
		})
	}
}

// TestStoppedCallBeginsNothing: a call that is stopped while what it is about to
// do is recorded does not do it, even if the log answers late.
func TestStoppedCallBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		log := &memoryLog{fail: func(r audit.Record) error {
			if r.Event == audit.Started {
				<-release // whatever its context
			}
			return nil
		}}
		r := newRig(t, tool{invoke: never(t)}, func(c *Config) { c.Log = log })
		errs := make(chan error, 1)
		go func() { _, err := r.Invoke(t.Context(), callOf("write", `{"text":"a"}`)); errs <- err }()
		synctest.Wait()
		if names := leftBehind(t, r.Close(t.Context())); len(names) != 1 {
			t.Errorf("Close() names %q, want the call", names)
		}
		close(release)
		if err := <-errs; !errors.Is(err, errClosing) {
			t.Errorf("Invoke() = %v, want that Ken closes", err)
		}
		if rec := log.last(t); rec.Status != audit.Cancelled {
			t.Errorf("recorded %s, want CANCELLED", rec.Status)
		}
	})
}

// TestCloseLeavesTheUnknownUnknown: a keyed call that was stopped has its one
// result, and made again, here or elsewhere, it is unknown and does not run.
func TestCloseLeavesTheUnknownUnknown(t *testing.T) {
	s := openStore(t)
	release := make(chan struct{})
	var invoked atomic.Int64
	brief := func(c *Config) {
		c.Limits = Limits{Drain: time.Millisecond, Grace: time.Millisecond, Lease: time.Minute}.Always
	}
	x := hanging(release, &invoked)
	begun := make(chan struct{}, 1)
	invoke := x.invoke
	x.invoke = func(ctx context.Context, c capability.Call) (capability.Result, error) {
		begun <- struct{}{}
		return invoke(ctx, c)
	}
	r := keyed(t, s, "k", x, brief)
	call := callOf("write", `{"text":"deaf"}`)
	errs := make(chan error, 1)
	go func() { _, err := r.Invoke(t.Context(), call); errs <- err }()
	<-begun
	if names := leftBehind(t, r.Close(t.Context())); !slices.Equal(names, []string{"tool:write"}) {
		t.Errorf("Close() names %q, want tool:write", names)
	}
	if err := <-errs; !errors.Is(err, errClosing) {
		t.Errorf("Invoke() = %v, want that Ken closes", err)
	}
	other := keyed(t, s, "k", x, brief)
	if e := refused(t, other, call, capability.InputNeeded); e.Rule != "effect.unknown" {
		t.Errorf("Invoke() again = %v, want that nobody knows", e)
	}
	if f, ok, err := other.CallStatus(t.Context(), call); !ok || err != nil || f.Ended || f.Runs {
		t.Errorf("CallStatus() = %+v, %v, %v, want one that is unknown", f, ok, err)
	}
	if n := invoked.Load(); n != 1 {
		t.Errorf("it ran %d times, want once", n)
	}
	close(release)
	for len(r.calls.unended()) > 0 { // or the end of the test finds it running
		runtime.Gosched()
	}
}

// deafEffects stop answering, whatever their context, until release.
type deafEffects struct {
	hung    atomic.Bool
	release chan struct{}
	asked   atomic.Int64
}

func (*deafEffects) Get(context.Context, string) (store.Item, bool, error) {
	return store.Item{}, false, nil
}

func (d *deafEffects) Apply(context.Context, *store.Batch) (int64, error) {
	d.asked.Add(1)
	if d.hung.Load() {
		<-d.release
	}
	return 1, nil
}

// TestCloseWithADeafStore: a store that heeds no context, wherever it hangs,
// keeps Close no longer than its limits. What runs on is named, and the lease is
// renewed no more.
func TestCloseWithADeafStore(t *testing.T) {
	tests := map[string]struct {
		prepare func(d *deafEffects, call func())
		deaf    bool // the executor too
		took    time.Duration
		cause   error
		names   []string
	}{
		"in a renewal": {
			prepare: func(d *deafEffects, call func()) { call(); d.hung.Store(true); time.Sleep(time.Minute) },
			took:    10 * time.Second, cause: context.DeadlineExceeded,
		},
		"in the deletion": {
			prepare: func(d *deafEffects, call func()) { call(); d.hung.Store(true) },
			took:    10 * time.Second, cause: context.DeadlineExceeded,
		},
		"in keeping what a call came to": { // 30 s and 5 s for the call, 2×10 s to keep it, 10 s for a renewal
			prepare: func(d *deafEffects, call func()) { call(); d.hung.Store(true) },
			deaf:    true, took: 65 * time.Second, cause: errIgnored, names: []string{"tool:write"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deafEffects{release: make(chan struct{})}
				x := tool{}
				if tt.deaf {
					x.invoke = hanging(d.release, new(atomic.Int64)).invoke
				}
				r := keyed(t, d, "k", x, func(c *Config) { c.Limits = Limits{}.Always })
				ended := make(chan struct{})
				tt.prepare(d, func() {
					go func() { _, _ = r.Invoke(t.Context(), callOf("write", `{"text":"deaf"}`)); close(ended) }()
					synctest.Wait()
				})
				begin := time.Now()
				err := r.Close(t.Context())
				if took := time.Since(begin); took != tt.took || !errors.Is(err, tt.cause) {
					t.Errorf("Close() = %v after %v, want %v after %v", err, took, tt.cause, tt.took)
				}
				names := leftBehind(t, err)
				if !slices.Equal(names, tt.names) {
					t.Errorf("Close() = %v, want %v named", err, tt.names)
				}
				d.hung.Store(false)
				close(d.release)
				<-ended
				synctest.Wait()
				asked := d.asked.Load()
				time.Sleep(time.Hour)
				if n := d.asked.Load() - asked; n != 0 {
					t.Errorf("the store was asked %d times after Close, want that the lease is renewed no more", n)
				}
			})
		})
	}
}

// TestUnendedNamesEachOnce: a call that leaves its executor behind is named as
// the one or as the other at every moment.
func TestUnendedNamesEachOnce(t *testing.T) {
	r := newRig(t, tool{}, nil)
	for id := range uint64(30) {
		gone := make(chan struct{})
		one := &liveCall{asked: Running{Call: id}}
		if err := r.calls.enter(one); err != nil {
			t.Fatal(err)
		}
		left := make(chan struct{})
		go func() { r.calls.leave(one, gone); close(left) }()
		for over := false; !over; {
			select {
			case <-left:
				over = true
			default:
			}
			if list := r.calls.unended(); len(list) != 1 {
				t.Fatalf("%d are named, want one: %+v", len(list), list)
			}
		}
		close(gone)
		for len(r.calls.unended()) > 0 {
			runtime.Gosched()
		}
	}
}
