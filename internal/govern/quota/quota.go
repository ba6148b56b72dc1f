// Package quota divides limits among the processes that share a store. Each process
// leases a share of a limit and uses it without asking again; all shares together
// are never more than the limit.
//
//	quota/head/LIMIT      changes with every share of a limit
//	quota/share/LIMIT/ID  the share of one process; expires soon after it stopped
//	quota/want/LIMIT/ID   a process that has less than it needs
//
// A share is written only if the head is as it was when all shares were read. So two
// processes never take the same part. A process counts the end of its lease from
// before it asked, and the store counts it from later: the process stops first,
// whatever its clock says.
package quota

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/internal/store"
)

const (
	// retry is when a process that has less than it needs looks again, and tell how
	// often it tells the others meanwhile.
	retry   = 25 * time.Millisecond // and then twice as long each time, up to
	longest = 400 * time.Millisecond
	tell    = time.Second

	// idle is how long a share is kept that is not used. It is given up at once if
	// another process needs it.
	idle = 10 * time.Second

	// patience is how long the store may fail before those who wait are told.
	patience = time.Second

	headFor   = 20 * time.Second // longer than any lease
	storeTime = 5 * time.Second  // for one question
	together  = 50               // limits in one question
	mostHeld  = 128              // processes that can have a share of one limit
)

// Config is what a [Quota] is made of. Store is required.
type Config struct {
	Store func() (*store.Store, error)
	Lease time.Duration // how long a share lasts without the store; zero: 6 s
}

// A Quota is what one process has of all limits. Its methods are safe for concurrent
// use. It must be closed.
type Quota struct {
	cfg  Config
	id   string
	wake chan struct{}

	mu     sync.Mutex
	shares map[string]*share
	stop   context.CancelFunc // nil: not begun
	done   chan struct{}
	closed bool
}

// A share is what one process has of one limit, by the lock of the Quota.
type share struct {
	key     string
	changed func(err error) // told, without the lock, when more may be used, or why nothing can be

	limit, using, want int // as the user says; want is at most limit
	seen               time.Time

	may    int // what may be used until then
	until  time.Time
	stored row // as others see it
	known  bool
	first  bool // no process had a share of this limit for long, when this one began
	short  bool // another process has less than it needs

	fleeting bool  // want ends by itself: see [Rate]
	rate     *Rate // that uses it, if any

	dirty   bool
	again   time.Time // not before, if want is not met
	wait    time.Duration
	told    time.Time // when others were told that it is not
	renew   time.Time
	failing time.Time // since when the store fails
}

// A row is a share in the store.
type row struct {
	N    int   `json:"n"`
	Want int   `json:"want"`
	Got  int64 `json:"got"` // the version of the head when it last grew
}

// New makes a Quota. It asks the store only once a limit is used.
func New(cfg Config) *Quota {
	if cfg.Lease == 0 {
		cfg.Lease = 6 * time.Second
	}
	return &Quota{cfg: cfg, id: strings.ToLower(rand.Text()), wake: make(chan struct{}, 1), shares: map[string]*share{}, done: make(chan struct{})}
}

// Close returns all shares, so that other processes can use them at once.
func (q *Quota) Close() {
	q.mu.Lock()
	stop := q.stop
	closed := q.closed
	q.closed = true
	q.mu.Unlock()
	if stop == nil || closed {
		return
	}
	stop()
	<-q.done
	q.giveUp()
}

func (q *Quota) giveUp() {
	db, err := q.cfg.Store()
	if err != nil {
		return // they expire
	}
	var b store.Batch
	n := 0
	q.mu.Lock()
	for key, s := range q.shares {
		if s.stored.N > 0 || s.known {
			b.Remove(shareKey(key, q.id))
			n++
		}
		if n == store.MaxWrites {
			break
		}
	}
	q.mu.Unlock()
	if n > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = db.Apply(ctx, &b) // they expire
	}
}

// name returns the name of a limit in keys: a digest, because principals and hosts have
// names of any length.
func name(kind, of string) string {
	sum := sha256.Sum256([]byte(of))
	return kind + "-" + hex.EncodeToString(sum[:12])
}

func headKey(key string) string      { return store.Key("quota", "head", key) }
func shareKey(key, id string) string { return store.Key("quota", "share", key, id) }
func sharesOf(key string) string     { return store.Key("quota", "share", key) + "/" }
func wantKey(key, id string) string  { return store.Key("quota", "want", key, id) }

const wants = "quota/want/"

// use says how much of a limit is used here, and how much would be if nothing had to
// wait. It returns how much may be used now, and never asks the store itself.
func (q *Quota) use(key string, limit, using, want int, changed func(error)) int {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key]
	if s == nil {
		if using == 0 && want == 0 {
			return 0
		}
		s = &share{key: key}
		q.shares[key] = s
	}
	want = min(want, limit)
	met := s.want <= s.now(now)
	if s.known && limit != s.limit {
		s.hurry()
		q.look()
	}
	s.changed, s.limit, s.using, s.want = changed, limit, using, want
	if want > 0 {
		s.seen = now
	}
	may := s.now(now)
	switch {
	case want > may && met:
		s.dirty = true
		q.look()
	case want <= may && s.stored.Want > s.stored.N, // others believe that it is not met
		s.stored.N > max(using, may),             // they wait for the rest
		s.short && s.stored.N > max(using, want): // they need what is left
		s.hurry()
		q.look()
	}
	return min(may, limit)
}

// now returns what may be used. The clock of the wall counts too, since the other one
// stands still while a machine sleeps.
func (s *share) now(now time.Time) int {
	if now.Before(s.until) && now.Round(0).Before(s.until.Round(0)) {
		return s.may
	}
	return 0
}

// hurry makes the share due now, or as soon as a store that fails is asked again.
func (s *share) hurry() {
	s.dirty = true
	if s.failing.IsZero() {
		s.again = time.Time{}
	}
}

// calm ends a need for a rate that was not repeated.
func (s *share) calm(now time.Time) {
	if s.fleeting && now.Sub(s.seen) > fleeting {
		s.want = 0
	}
}

// look wakes the one that asks the store, and begins it. The lock is held.
func (q *Quota) look() {
	if q.stop == nil && !q.closed {
		ctx, stop := context.WithCancel(context.Background())
		q.stop = stop
		go q.run(ctx)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Quota) run(ctx context.Context) {
	defer close(q.done)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { q.hear(ctx) })
	for ctx.Err() == nil {
		due, wait := q.due(time.Now())
		if len(due) > 0 {
			q.round(ctx, due)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hear looks at a limit at once when another process needs more of it.
func (q *Quota) hear(ctx context.Context) {
	for ctx.Err() == nil {
		if db, err := q.cfg.Store(); err == nil {
			for c, err := range db.Watch(ctx, wants, store.FromNow) {
				if err != nil {
					break
				}
				if key, id, ok := strings.Cut(strings.TrimPrefix(c.Key, wants), "/"); ok && id != q.id && !c.Gone {
					q.mu.Lock()
					if s := q.shares[key]; s != nil && s.stored.N > 0 {
						s.hurry()
						q.look()
					}
					q.mu.Unlock()
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// due returns the shares that need the store now, or how long there is nothing to do.
func (q *Quota) due(now time.Time) (due []*share, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait = time.Hour
	for _, s := range q.shares {
		at := now.Add(wait)
		if s.known {
			at = s.renew
		}
		if s.want > s.now(now) || s.dirty {
			at = s.again
		}
		if left := at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		if due = append(due, s); len(due) == together {
			break
		}
	}
	return due, wait
}

// round asks the store for all that is known of some limits, and writes what changes.
func (q *Quota) round(ctx context.Context, due []*share) {
	ask, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var query store.Query
	for _, s := range due {
		query.Keys = append(query.Keys, headKey(s.key))
		query.Groups = append(query.Groups, store.Group{Prefix: sharesOf(s.key), Limit: mostHeld})
	}
	var items map[string]store.Item
	db, err := q.cfg.Store()
	if err == nil {
		items, err = db.Read(ask, query)
	}
	if err != nil {
		for _, s := range due {
			q.failed(s, err)
		}
		return
	}
	var beside sync.WaitGroup
	for _, s := range due {
		p := q.plan(s, items)
		if p == nil {
			continue
		}
		beside.Go(func() { // batches that are applied at once share a commit
			began := time.Now()
			_, err := db.Apply(ask, &p.batch)
			if err != nil {
				q.failed(s, err)
				return
			}
			q.wrote(s, p, began)
		})
	}
	beside.Wait()
}

// A plan is what a share becomes.
type plan struct {
	batch store.Batch
	next  row
	may   int
	first bool
	gone  bool
	told  time.Time // zero: others are not told that it needs more
}

// plan decides what a share becomes, given all shares. It returns nil if nothing is to
// be written. What may be used less is lowered at once, before others can read it.
func (q *Quota) plan(s *share, items map[string]store.Item) *plan {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s.dirty = false
	s.calm(now)
	s.wait = min(max(2*s.wait, retry), longest)
	s.again = now.Add(s.wait)
	all := map[string]row{}
	for key, item := range items {
		id, ok := strings.CutPrefix(key, sharesOf(s.key))
		var r row
		if ok && json.Unmarshal(item.Value, &r) == nil {
			all[id] = r
		}
	}
	head := items[headKey(s.key)].Version
	mine, have := all[q.id]
	if !have { // it expired, or was never there
		s.may, s.stored = 0, row{}
	}
	crowded := len(all) >= mostHeld // some were not read
	all[q.id] = row{N: mine.N, Want: s.want, Got: mine.Got}
	n, short := next(q.id, all, s.limit)
	if crowded {
		n = min(n, mine.N)
	}
	s.short = short
	gone := s.want == 0 && s.using == 0 && now.Sub(s.seen) > idle
	if gone {
		n = 0
	}
	next := row{N: max(n, s.using), Want: s.want, Got: mine.Got}
	if next.N > mine.N {
		next.Got = head
	}
	s.may = min(s.may, n)
	unmet := next.Want > next.N
	switch {
	case gone && !have:
		delete(q.shares, s.key)
		return nil
	case crowded && !have:
		s.failing = time.Time{}
		return nil
	case gone, !have, next.N != mine.N, unmet != (mine.Want > mine.N), !now.Before(s.renew), unmet && now.Sub(s.told) >= tell:
	default:
		s.failing = time.Time{}
		return nil
	}
	p := &plan{next: next, may: n, first: head == 0, gone: gone}
	p.batch.At(headKey(s.key), head)
	p.batch.PutFor(headKey(s.key), []byte{}, headFor)
	if gone {
		p.batch.Remove(shareKey(s.key, q.id))
		return p
	}
	value, _ := json.Marshal(next) // numbers
	p.batch.PutFor(shareKey(s.key, q.id), value, q.cfg.Lease)
	if unmet && now.Sub(s.told) >= tell/2 {
		p.told = now
		p.batch.PutFor(wantKey(s.key, q.id), []byte{}, 2*tell)
	}
	return p
}

// next returns how much of a limit a process should have, given what all have and want.
// It reports whether another has less than it wants.
func next(me string, all map[string]row, limit int) (n int, short bool) {
	mine, others := all[me], 0
	for id, r := range all {
		if id != me {
			others += r.N
			short = short || r.Want > r.N
		}
	}
	free := max(0, limit-others)
	n = mine.N
	switch fair := divide(all, limit)[me]; {
	case short && mine.Want > mine.N:
		n = fair
	case short:
		n = min(n, fair)
	case mine.Want > mine.N:
		// Half of the rest is left for a process that comes next.
		n = mine.Want + (max(0, free-mine.Want)+1)/2
	}
	return min(n, free), short
}

// divide returns the fair part of a limit for each process that wants something: none has
// more than it wants while another has less than it wants and less than the first.
// What is left is divided evenly. If a limit cannot be divided evenly, those that
// waited longest for more come first.
func divide(all map[string]row, limit int) map[string]int {
	var ids []string
	for id, r := range all {
		if r.Want > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(all[a].Got, all[b].Got), cmp.Compare(a, b))
	})
	out := map[string]int{}
	left := limit
	for open := slices.Clone(ids); len(open) > 0 && left > 0; {
		each := left / len(open)
		if each == 0 {
			open, each = open[:left], 1
		}
		for _, id := range open {
			n := min(each, all[id].Want-out[id])
			out[id] += n
			left -= n
		}
		open = slices.DeleteFunc(open, func(id string) bool { return out[id] >= all[id].Want })
	}
	for i, id := range ids {
		part := left / (len(ids) - i)
		out[id] += part
		left -= part
	}
	return out
}

// wrote takes in a share that is in the store now.
func (q *Quota) wrote(s *share, p *plan, began time.Time) {
	q.mu.Lock()
	s.failing = time.Time{}
	if !p.told.IsZero() {
		s.told = p.told
	}
	if p.gone {
		s.known, s.stored, s.may = false, row{}, 0
		if s.want == 0 && s.using == 0 {
			delete(q.shares, s.key)
		}
		q.mu.Unlock()
		return
	}
	more := p.may > s.now(time.Now())
	if s.known {
		p.first = s.first
	}
	s.known, s.stored, s.may, s.first = true, p.next, p.may, p.first
	s.until = began.Add(q.cfg.Lease - q.cfg.Lease/20)
	s.renew = began.Add(q.cfg.Lease / 3)
	if more {
		s.wait = 0
	}
	if s.want <= s.may {
		s.again = time.Time{}
	}
	changed := s.changed
	q.mu.Unlock()
	if more && changed != nil {
		changed(nil)
	}
}

// failed takes in that the store did not do it.
func (q *Quota) failed(s *share, err error) {
	now := time.Now()
	q.mu.Lock()
	s.dirty = true
	if errors.Is(err, store.ErrConflict) { // another process wrote its share
		s.again, s.failing = now.Add(time.Duration(mathrand.Int64N(int64(retry/2)))), time.Time{}
		q.mu.Unlock()
		return
	}
	s.again = now.Add(longest)
	if s.calm(now); !s.known && s.want == 0 && s.using == 0 { // nothing needs it any more
		delete(q.shares, s.key)
	}
	if s.failing.IsZero() {
		s.failing = now
	}
	over := now.Sub(s.failing) >= patience && s.now(now) == 0 && s.want > 0
	changed := s.changed
	q.mu.Unlock()
	if over && changed != nil {
		changed(err)
	}
}
