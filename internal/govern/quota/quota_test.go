package quota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A user takes places of one name, one for each call that runs.
type user struct {
	slots *Slots
	limit int

	mu      sync.Mutex
	running int
	waiting []chan error
	stopped bool // stands for a process that was killed
}

func newUser(q *Quota, limit int) *user {
	u := &user{slots: q.Slots("extension"), limit: limit}
	u.slots.OnChange(func(_ string, err error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if err != nil {
			for _, w := range u.waiting {
				w <- err
			}
			u.waiting = nil
		}
		u.admit()
	})
	return u
}

// admit lets in as many as may run. The lock is held.
func (u *user) admit() {
	if u.stopped {
		return
	}
	for {
		may := u.slots.Use("x", u.limit, u.running, u.running+len(u.waiting))
		if len(u.waiting) == 0 || u.running >= may {
			return
		}
		u.running++
		u.waiting[0] <- nil
		u.waiting = u.waiting[1:]
	}
}

func (u *user) enter() error {
	turn := make(chan error, 1)
	u.mu.Lock()
	u.waiting = append(u.waiting, turn)
	u.admit()
	u.mu.Unlock()
	return <-turn
}

func (u *user) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running--
	u.admit()
}

// ends returns when the lease of the only share ends, as this process counts.
func (q *Quota) ends() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shares[name("extension", "x")].until
}

// process opens the store once more, as another process does.
func process(t *testing.T, address string, lease time.Duration) (*Quota, *store.Store) {
	t.Helper()
	db, err := store.Open(t.Context(), address, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	q := New(Config{Store: func() (*store.Store, error) { return db, nil }, Lease: lease})
	t.Cleanup(q.Close)
	return q, db
}

// TestTotal: four processes with more calls than may run never run more than the limit
// together, all of it is used, and every call comes to its turn.
func TestTotal(t *testing.T) {
	for _, limit := range []int{1, 3, 16} {
		synctest.Test(t, func(t *testing.T) {
			address := storetest.SQLite(t)
			var running, most, over atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				q, _ := process(t, address, 0)
				u := newUser(q, limit)
				for range 3 {
					all.Go(func() {
						for range 4 {
							if err := u.enter(); err != nil {
								t.Error(err)
								return
							}
							n := running.Add(1)
							for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
							}
							if n > int64(limit) {
								over.Add(1)
							}
							time.Sleep(2 * time.Millisecond) // the call
							running.Add(-1)
							u.leave()
						}
					})
				}
			}
			all.Wait()
			if over.Load() > 0 {
				t.Errorf("%d calls began over the limit of %d; at most %d ran at once", over.Load(), limit, most.Load())
			}
		})
	}
}

// TestQuickBesideSlow: a process that uses the whole limit and has 500 more calls waiting
// keeps a call of another process waiting only until one of its calls ends.
func TestQuickBesideSlow(t *testing.T) {
	address := storetest.Address(t)
	const limit = 4
	hog, quick := newHog(t, address, limit), func() *user { q, _ := process(t, address, 0); return newUser(q, limit) }()
	got := make(chan error, 1)
	go func() { got <- quick.enter() }()
	testkit.Wait(t, "room in the process with 500 calls", func() bool {
		hog.mu.Lock()
		defer hog.mu.Unlock()
		return hog.slots.Use("x", limit, hog.running, hog.running+len(hog.waiting)) < limit
	})
	hog.leave()
	if err := <-got; err != nil { // one slot was free
		t.Fatal(err)
	}
	hog.mu.Lock()
	defer hog.mu.Unlock()
	if hog.running != limit-1 {
		t.Errorf("the process with 500 calls runs %d, want %d while the quick call runs", hog.running, limit-1)
	}
}

// newHog has a process that runs limit calls and has 500 waiting.
func newHog(t *testing.T, address string, limit int) *user {
	q, _ := process(t, address, 0)
	u := newUser(q, limit)
	for range limit {
		if err := u.enter(); err != nil {
			t.Fatal(err)
		}
	}
	u.mu.Lock()
	for range 500 {
		u.waiting = append(u.waiting, make(chan error, 1))
	}
	u.admit()
	u.mu.Unlock()
	return u
}

// TestDead: the share of a process that died comes back when its lease ends, and not
// before.
func TestDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		address := storetest.SQLite(t)
		const limit, lease = 2, 900 * time.Millisecond
		q, db := process(t, address, lease)
		dead := newUser(q, limit)
		for range limit {
			if err := dead.enter(); err != nil {
				t.Fatal(err)
			}
		}
		dead.mu.Lock()
		dead.stopped = true
		dead.mu.Unlock()
		_ = db.Close() // nothing it does is stored any more
		ends := q.ends()
		other, _ := process(t, address, lease)
		u := newUser(other, limit)
		if err := u.enter(); err != nil {
			t.Fatal(err)
		}
		if early := time.Until(ends); early > 0 {
			t.Errorf("the share of a dead process was taken %v before its lease ended", early)
		}
	})
}

// TestAway: a process that loses the store uses its share until the lease ends, and then
// says why it has none.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, lease = 4, 1200 * time.Millisecond
		q, db := process(t, storetest.SQLite(t), lease)
		u := newUser(q, limit)
		if err := u.enter(); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		ends := q.ends()
		u.leave()
		if err := u.enter(); err == nil {
			u.leave()
		} else if time.Now().Before(ends) {
			t.Errorf("a call within the lease: %v", err)
		}
		time.Sleep(time.Until(ends) + lease)
		if err := u.enter(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after the lease: %v, want the error of the store", err)
		}
	})
}

// TestReadOnly: a store that can be read but not written fails too.
func TestReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config{})
		readOnly := errors.New("read-only")
		var told error
		s := &share{key: "k", limit: 1, want: 1, seen: time.Now(), changed: func(err error) { told = err }}
		q.shares["k"] = s
		for range 10 {
			if p := q.plan(s, nil); p == nil {
				t.Fatal("nothing is to be written")
			}
			q.failed(s, readOnly)
			s.hurry()
			if !s.again.After(time.Now()) {
				t.Error("a store that fails is asked again at once")
			}
			time.Sleep(longest)
		}
		if !errors.Is(told, readOnly) {
			t.Errorf("those who wait were told %v", told)
		}
	})
}

// TestCrowded: a process that cannot read all shares takes none.
func TestCrowded(t *testing.T) {
	q := New(Config{})
	s := &share{key: "k", limit: 200, want: 1, seen: time.Now()}
	items := map[string]store.Item{}
	for i := range mostHeld {
		items[shareKey("k", fmt.Sprint(i))] = store.Item{Value: []byte(`{"n":1}`)}
	}
	if p := q.plan(s, items); p != nil {
		t.Errorf("it takes %d", p.next.N)
	}
	delete(items, shareKey("k", "0"))
	if p := q.plan(s, items); p == nil || p.next.N < 1 {
		t.Errorf("it takes nothing, though all shares were read: %+v", p)
	}
}

// TestClosed: a process that ends gives its share up.
func TestClosed(t *testing.T) {
	q, db := process(t, storetest.Address(t), 0)
	if err := newUser(q, 8).enter(); err != nil {
		t.Fatal(err)
	}
	held := func() bool {
		_, ok, err := db.Get(t.Context(), shareKey(name("extension", "x"), q.id))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	before := held()
	if q.Close(); !before || held() {
		t.Errorf("a share before %t, and when the process has ended %t; want it before", before, held())
	}
}

// TestDivide: no more than the limit is given away, all of it is if it is needed, and none
// has more than it wants while another has less and wants more.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		all := map[string]row{}
		for i := range rapid.IntRange(0, 6).Draw(t, "processes") {
			all[fmt.Sprint(i)] = row{Want: rapid.IntRange(0, 30).Draw(t, "want"), Got: rapid.Int64Range(0, 3).Draw(t, "got")}
		}
		got := divide(all, limit)
		sum, asked := 0, 0
		for id, r := range all {
			sum += got[id]
			asked += r.Want
		}
		if sum > limit || asked > 0 && sum != limit {
			t.Fatalf("%d of %d given away: %v of %v", sum, limit, got, all)
		}
		for a, x := range all {
			for b := range all {
				if got[a] < x.Want && got[b] > got[a]+1 {
					t.Fatalf("%s has %d of %d, and %s has %d", a, got[a], x.Want, b, got[b])
				}
			}
		}
		// What each takes by itself, one after the other, is never too much.
		have := map[string]row{}
		for range 3 {
			for _, id := range slices.Sorted(maps.Keys(all)) {
				have[id] = row{N: have[id].N, Want: all[id].Want, Got: all[id].Got}
				n, _ := next(id, have, limit)
				have[id] = row{N: n, Want: all[id].Want, Got: all[id].Got}
				total := 0
				for _, r := range have {
					total += r.N
				}
				if total > limit {
					t.Fatalf("%d of %d are taken: %v", total, limit, have)
				}
			}
		}
	})
}
