package trailapi

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/serve/auth"
)

const (
	pollEvery  = 2 * time.Second        // how often the desk is looked at
	pollApart  = 200 * time.Millisecond // the least between two looks that something asked for
	feedBuffer = 256                    // records that wait for one follower
)

// A hub follows the trail, the desk and the catalog once for all feeds. It runs
// while anybody follows it.
type hub struct {
	cfg Config

	mu        sync.Mutex
	followers map[*follower]struct{}
	run       *running // nil: no follower
}

// A running is one time that the hub runs.
type running struct {
	stop context.CancelFunc
	kick chan struct{}  // the desk may have changed
	work sync.WaitGroup // its goroutines
}

// A follower is one feed.
type follower struct {
	who     auth.Identity
	records chan json.RawMessage
	wake    chan struct{} // has one when something below has changed

	// Under the hub's lock.
	pending int // open questions that who may answer; below 0: not known
	version uint64
	lost    bool // records came faster than they were sent
	jobs    []jobsNews
}

func newHub(cfg Config) *hub { return &hub{cfg: cfg, followers: map[*follower]struct{}{}} }

// join makes a follower, who must leave. What is recorded from then on reaches
// him.
func (h *hub) join(who auth.Identity) (*follower, error) {
	f := &follower{who: who, records: make(chan json.RawMessage, feedBuffer), wake: make(chan struct{}, 1), pending: -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run == nil {
		if err := h.start(who.Principal); err != nil {
			return nil, err
		}
	}
	h.followers[f] = struct{}{}
	h.run.look()
	return f, nil
}

// leave ends a feed. The last one waits until nothing follows any more: what follows
// may open the store, which must not happen after Ken has closed it.
func (h *hub) leave(f *follower) {
	h.mu.Lock()
	delete(h.followers, f)
	var last *running
	if len(h.followers) == 0 && h.run != nil {
		last, h.run = h.run, nil
		last.stop()
	}
	h.mu.Unlock()
	if last != nil {
		last.work.Wait()
	}
}

// start begins to follow. The lock is held.
func (h *hub) start(first capability.Principal) error {
	ctx, stop := context.WithCancel(h.cfg.Waiting)
	trail, err := audit.Follow(ctx, h.cfg.AuditDir, audit.Filter{})
	if err != nil {
		stop()
		return err
	}
	run := &running{stop: stop, kick: make(chan struct{}, 1)}
	h.run = run
	run.work.Go(func() { h.tail(run, trail) })
	if h.cfg.Follow != nil {
		run.work.Go(func() { h.tail(run, h.cfg.Follow(ctx, audit.Filter{})) })
	}
	run.work.Go(func() { h.poll(ctx, run) })
	run.work.Go(func() { h.watch(ctx, run, first) })
	run.work.Go(func() { h.work(ctx, run) })
	return nil
}

// look asks for a look at the desk.
func (r *running) look() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// each calls f for every follower, unless the run is over.
func (h *hub) each(run *running, f func(*follower)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != run {
		return
	}
	for one := range h.followers {
		f(one)
	}
}

func (f *follower) changed() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// tail passes new records on. What cannot be read is for verify to tell.
func (h *hub) tail(run *running, trail iter.Seq2[audit.Entry, error]) {
	for e, err := range trail {
		if err != nil || e.Record.Event == audit.Opened || e.Record.Event == audit.Retired {
			continue
		}
		if e.Record.Event == audit.Asked || e.Record.Event == audit.Approval {
			run.look()
		}
		line := recordOf(&e)
		h.each(run, func(f *follower) {
			if !sees(f.who, &e.Record) {
				return
			}
			select {
			case f.records <- line:
			default:
				f.lost = true
				f.changed()
			}
		})
	}
}

// poll counts the open questions, once for each tenant that is followed.
func (h *hub) poll(ctx context.Context, run *running) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-run.kick:
		}
		h.count(ctx, run)
		select { // frequent askers are slowed down
		case <-ctx.Done():
			return
		case <-time.After(pollApart):
		}
	}
}

func (h *hub) count(ctx context.Context, run *running) {
	desk, err := h.cfg.Desk()
	if err != nil {
		return // the next look may be luckier
	}
	open := map[string][]approval.Ticket{}
	h.each(run, func(f *follower) { open[f.who.Principal.Tenant] = nil })
	for tenant := range open {
		// What cannot be read hides only itself.
		open[tenant], err = desk.List(ctx, approval.Filter{Tenant: tenant, States: []approval.State{approval.Pending}})
		if err != nil && len(open[tenant]) == 0 {
			delete(open, tenant)
		}
	}
	h.each(run, func(f *follower) {
		list, known := open[f.who.Principal.Tenant]
		if !known {
			return
		}
		n := 0
		for i := range list {
			if desk.MaySettle(f.who.Principal, &list[i]) {
				n++
			}
		}
		if n != f.pending {
			f.pending = n
			f.changed()
		}
	})
}

// watch tells of new versions of the catalog. That there is one concerns
// everybody; what is in it each sees for himself.
func (h *hub) watch(ctx context.Context, run *running, as capability.Principal) {
	for version := uint64(0); ; {
		next, err := h.cfg.Door.Next(ctx, as, version)
		if err != nil {
			return // the context has ended, or no one asks
		}
		version = next.View.Stats().Version
		h.each(run, func(f *follower) {
			f.version = version
			f.changed()
		})
	}
}

// work tells of jobs that change. A queue that cannot be followed is told by those
// who ask for jobs.
func (h *hub) work(ctx context.Context, run *running) {
	q, err := h.cfg.Jobs()
	if err != nil {
		return
	}
	news, err := q.Follow(ctx, "")
	if err != nil {
		return
	}
	for j := range news {
		told := jobsNews{"jobs", j.ID, string(j.State)}
		h.each(run, func(f *follower) {
			if !owns(f.who, &j) {
				return
			}
			if len(f.jobs) == feedBuffer { // reset has the follower read all again
				f.jobs, f.lost = nil, true
			}
			f.jobs = append(f.jobs, told)
			f.changed()
		})
	}
}

// state returns a follower's state, the jobs that changed, and whether records
// were lost since the last time.
func (h *hub) state(f *follower) (pending int, version uint64, jobs []jobsNews, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost, f.lost = f.lost, false
	jobs, f.jobs = f.jobs, nil
	return f.pending, f.version, jobs, lost
}
