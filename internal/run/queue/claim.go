package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// Join says that a worker is alive.
func (q *Stored) Join(ctx context.Context, m Member, lease time.Duration) error {
	m.Until = q.moment().Add(lease)
	var b store.Batch
	b.PutFor(store.Key("jobs", "worker", m.ID), encode(m), lease)
	_, err := q.store.Apply(ctx, &b)
	return err
}

// Leave says that a worker takes no more.
func (q *Stored) Leave(ctx context.Context, worker string) error {
	var b store.Batch
	b.Delete(store.Key("jobs", "worker", worker))
	_, err := q.store.Apply(ctx, &b)
	return err
}

// Members returns the workers that are alive.
func (q *Stored) Members(ctx context.Context) ([]Member, error) {
	var list []Member
	for item, err := range q.store.Scan(ctx, workerPrefix, store.Range{}) {
		if err != nil {
			return nil, err
		}
		var m Member
		if err := json.Unmarshal(item.Value, &m); err != nil {
			return nil, fmt.Errorf("read worker %s: %w", item.Key, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// Claim returns the next jobs for a worker. A job that cannot be read does not
// keep others from running. It is in the error if there is no other job.
func (q *Stored) Claim(ctx context.Context, a Ask) ([]Job, error) {
	unread, err := q.promote(ctx)
	if err != nil {
		return nil, err
	}
	skip := map[string]bool{} // what cannot be read
	for try := 0; try < tries; {
		jobs, bad, err := q.claim(ctx, a, skip)
		unread = errors.Join(unread, bad)
		switch {
		case len(jobs) > 0:
			return jobs, nil
		case errors.Is(err, store.ErrConflict):
			try++
		case err != nil || bad == nil:
			return nil, errors.Join(err, unread)
		}
	}
	return nil, nil // others claim all the time; there is a next time
}

// claimBytes is how large the arguments of jobs are that are claimed together.
const claimBytes = 4 << 20

// claim takes what may run, all in one batch. A job that it cannot read is in bad
// and in skip.
func (q *Stored) claim(ctx context.Context, a Ask, skip map[string]bool) (jobs []Job, bad, err error) {
	turn, _, err := q.store.Get(ctx, turnKey)
	if err != nil {
		return nil, nil, err
	}
	picked, bad, err := q.pick(ctx, a, skip)
	if err != nil || len(picked) == 0 {
		return nil, bad, err
	}
	keys := make([]string, len(picked))
	for i, m := range picked {
		keys[i] = jobKey(m.ID)
	}
	found, err := q.store.GetAll(ctx, keys...)
	if err != nil {
		return nil, bad, err
	}
	var b store.Batch
	for i, m := range picked {
		old, err := Job{}, notFound(m.ID)
		if item, ok := found[keys[i]]; ok {
			old, err = decode(item)
		}
		if err != nil {
			skip[m.ID] = true
			bad = errors.Join(bad, err)
			continue
		}
		if old.State != Queued {
			return nil, bad, &store.Conflict{Key: keys[i]} // it was taken since the scan
		}
		j := old
		j.State, j.Worker, j.Started, j.Ended = Running, a.Worker, q.moment(), time.Time{}
		if err := q.write(&b, &old, &j); err != nil {
			return nil, bad, err
		}
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return nil, bad, nil
	}
	b.At(turnKey, turn.Version)
	b.Put(turnKey, []byte(jobs[0].ID))
	version, err := q.store.Apply(ctx, &b)
	if err != nil {
		return nil, bad, err
	}
	for i := range jobs {
		jobs[i].Version = version
	}
	return jobs, bad, nil
}

// pick chooses what may run of the jobs that wait.
func (q *Stored) pick(ctx context.Context, a Ask, skip map[string]bool) (picked []mark, bad, err error) {
	r := newRota(a)
	for item, err := range q.store.Scan(ctx, runningPrefix, store.Range{}) {
		if err != nil {
			return nil, nil, err
		}
		m, err := readMark(item)
		if err != nil {
			return nil, nil, err
		}
		r.count(&m)
	}
	most, looked := q.lookAhead()
	defer looked()
	priority := ""
	for item, err := range q.store.Scan(ctx, readyPrefix, store.Range{Limit: most}) {
		if err != nil {
			return nil, bad, err
		}
		if skip[item.Key] {
			continue
		}
		m, err := readMark(item)
		if err != nil {
			skip[item.Key] = true
			bad = errors.Join(bad, err)
			continue
		}
		if skip[m.ID] || a.Lacks != nil && len(m.Needs) > 0 && len(a.Lacks(m.Needs)) > 0 {
			continue
		}
		if p, _, _ := strings.Cut(strings.TrimPrefix(item.Key, readyPrefix), "/"); p != priority {
			if r.choose(); r.full() { // of a higher priority
				break
			}
			priority = p
		}
		r.waiting = append(r.waiting, m)
	}
	r.choose()
	return r.picked, bad, nil
}

// How many waiting jobs a claim looks at: usually some, and now and then many. So it
// finds a principal's only job behind thousands of another principal. Looking at many
// takes at most a tenth of the time.
const (
	lookAtSome  = 128
	lookAtMany  = 4096
	lookAtEvery = 100 * time.Millisecond
)

// lookAhead returns that number, and what is called after the look.
func (q *Stored) lookAhead() (most int, looked func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	begin := time.Now()
	if begin.Before(q.look) {
		return lookAtSome, func() {}
	}
	q.look = begin.Add(lookAtEvery)
	return lookAtMany, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		now := time.Now()
		q.look = now.Add(max(lookAtEvery, 9*now.Sub(begin)))
	}
}

// A rota chooses among jobs of the same priority. Those go first whose principal
// has the fewest running jobs, then whose session has, then the oldest. So one with
// many slow jobs keeps another waiting for one place at most.
type rota struct {
	ask                      Ask
	groups, people, sessions map[string]int // running, and picked
	waiting                  []mark         // of one priority, the oldest first
	picked                   []mark
	bytes                    int
	stop                     bool // the next job is too large to come with the others
}

func newRota(a Ask) *rota {
	return &rota{ask: a, groups: map[string]int{}, people: map[string]int{}, sessions: map[string]int{}}
}

func (r *rota) count(m *mark) {
	r.groups[m.Group]++
	r.people[m.Who]++
	r.sessions[m.Who+"\x00"+m.Session]++
}

func (r *rota) full() bool { return r.stop || len(r.picked) >= max(r.ask.Most, 1) }

// choose picks from what waits, and forgets the rest.
func (r *rota) choose() {
	over := func(count, most int) bool { return most > 0 && count >= most }
	for !r.full() {
		best := -1
		for i, m := range r.waiting {
			if m.ID == "" || over(r.groups[m.Group], r.ask.Limits.PerGroup) || over(r.people[m.Who], r.ask.Limits.PerPrincipal) {
				continue
			}
			if best < 0 || r.fewer(&m, &r.waiting[best]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		m := r.waiting[best]
		if r.bytes += m.Bytes; len(r.picked) > 0 && r.bytes > claimBytes {
			r.stop = true
			break
		}
		r.waiting[best].ID = "" // taken
		r.count(&m)
		r.picked = append(r.picked, m)
	}
	r.waiting = r.waiting[:0]
}

// fewer reports whether less runs of a's principal, or of its session.
func (r *rota) fewer(a, b *mark) bool {
	if x, y := r.people[a.Who], r.people[b.Who]; x != y {
		return x < y
	}
	return r.sessions[a.Who+"\x00"+a.Session] < r.sessions[b.Who+"\x00"+b.Session]
}

// unreadable reports whether an error of [Stored.Get] is about the one job.
func unreadable(err error) bool {
	_, bad := errors.AsType[*unreadableError](err)
	return bad || capability.KindOf(err) == capability.NotFound
}

// promote queues what is due. Another worker may do the same at the same time:
// what it was first with is left to it. unread says which jobs cannot be read or
// queued; they keep no other from running.
func (q *Stored) promote(ctx context.Context) (unread, err error) {
	now := q.moment()
	for item, err := range q.store.Scan(ctx, duePrefix, store.Range{}) {
		if err != nil {
			return unread, err
		}
		if at, ok := dueTime(item.Key); !ok || at.After(now) {
			return unread, nil
		}
		m, err := readMark(item)
		if err != nil {
			unread = errors.Join(unread, err)
			continue
		}
		j, err := q.Get(ctx, m.ID)
		if err == nil && j.State == Scheduled {
			err = q.due(ctx, j, now)
		}
		switch {
		case err == nil || errors.Is(err, store.ErrConflict):
		case unreadable(err) || capability.KindOf(err) == capability.Invalid:
			unread = errors.Join(unread, err)
		default:
			return unread, err
		}
	}
	return unread, nil
}

func dueTime(key string) (time.Time, bool) {
	text, _, _ := strings.Cut(strings.TrimPrefix(key, duePrefix), "/")
	micros, err := strconv.ParseInt(text, 16, 64)
	return time.UnixMicro(micros), err == nil
}

// due queues a job whose time has come, or, for a schedule, a run of it. A run
// whose predecessor has not ended is left out, and runs that nobody was there for
// are made up for by one.
func (q *Stored) due(ctx context.Context, old Job, now time.Time) error {
	j := old
	if j.Schedule == "" {
		j.State = Queued
		return q.change(ctx, &old, &j)
	}
	plan, err := ParseSchedule(j.Schedule)
	if err != nil {
		return err
	}
	j.At = plan.Next(old.At, now).UTC()
	if j.Last != "" {
		switch last, err := q.Get(ctx, j.Last); {
		case err == nil && !last.State.Final():
			j.Skipped++
			j.Why = fmt.Sprintf("run of %s left out, because %s has not ended", old.At.Local().Format(time.DateTime), last.ID)
			return q.change(ctx, &old, &j)
		case err != nil && capability.KindOf(err) != capability.NotFound:
			return err
		}
	}
	j.Runs++
	run := Job{
		ID: fmt.Sprintf("%s.%d", j.ID, j.Runs), Call: j.Call, Surface: j.Surface, Folder: j.Folder, Group: j.Group,
		Priority: j.Priority, Parent: j.ID, Retries: j.Retries, Needs: j.Needs, State: Queued, Added: now,
	}
	j.Last, j.Why = run.ID, ""
	text, err := value(&run)
	if err != nil {
		return err
	}
	// A run of long ago is forgotten before jobs.keep: the runs of a schedule do
	// not fill the store, however often they come.
	forget := fmt.Sprintf("%s.%d", j.ID, j.Runs-keptRuns)
	early, err := q.Get(ctx, forget)
	if err != nil && !unreadable(err) {
		return err
	}
	return q.change(ctx, &old, &j, func(b *store.Batch) {
		b.Absent(jobKey(run.ID))
		q.put(b, &run, text)
		q.enter(b, &run)
		if err == nil && early.State.Final() {
			b.At(jobKey(forget), early.Version)
			b.Delete(jobKey(forget))
			b.Delete(store.Key("jobs", "result", forget))
		}
	})
}

// keptRuns is how many runs of one schedule can be looked up.
const keptRuns = 100

// longestRetry is the longest wait before an attempt that a worker makes again.
const longestRetry = 5 * time.Minute

// Realign corrects times from a clock that was ahead.
func (q *Stored) Realign(ctx context.Context) (int, error) {
	now := q.moment()
	count := 0
	var errs []error
	for item, err := range q.store.Scan(ctx, duePrefix, store.Range{}) {
		if err != nil {
			return count, err
		}
		if at, ok := dueTime(item.Key); ok && !at.After(now) {
			continue
		}
		m, err := readMark(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		old, err := q.Get(ctx, m.ID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		latest, err := latestDue(&old, now)
		if err != nil || latest.IsZero() || old.State != Scheduled || !old.At.After(latest) {
			errs = append(errs, err)
			continue
		}
		j := old
		j.At = latest
		switch err := q.change(ctx, &old, &j); {
		case err == nil:
			count++
		case !errors.Is(err, store.ErrConflict): // somebody else did
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}

// latestDue returns how late a scheduled job can be due if the clock is right, or
// the zero time for one whose time a person chose.
func latestDue(j *Job, now time.Time) (time.Time, error) {
	switch {
	case j.Schedule != "" && j.Last != "":
		plan, err := ParseSchedule(j.Schedule)
		if err != nil {
			return time.Time{}, err
		}
		return plan.Next(now, now).UTC().Truncate(time.Microsecond), nil
	case j.Schedule == "" && !j.Started.IsZero():
		return now.Add(longestRetry), nil
	}
	return time.Time{}, nil
}

// NextDue returns the time of the first scheduled job.
func (q *Stored) NextDue(ctx context.Context) (time.Time, bool, error) {
	for item, err := range q.store.Scan(ctx, duePrefix, store.Range{Limit: 1}) {
		if err != nil {
			return time.Time{}, false, err
		}
		at, ok := dueTime(item.Key)
		return at, ok, nil
	}
	return time.Time{}, false, nil
}

// mostResult is how many bytes of a result are kept with its job.
const mostResult = store.MaxValue / 2

// Finish ends an attempt.
func (q *Stored) Finish(ctx context.Context, claimed Job, o Outcome) (Job, error) {
	old := claimed // as it most often still is
	for try := range tries {
		if try > 0 || old.Version == 0 {
			var err error
			if old, err = q.Get(ctx, claimed.ID); err != nil {
				return Job{}, err
			}
		}
		if old.State != Running || old.Worker != claimed.Worker || !old.Started.Equal(claimed.Started) {
			return old, fmt.Errorf("finish job %s: %w", claimed.ID, ErrLost)
		}
		j := old
		j.State, j.Why, j.Kind, j.Ticket, j.Effect = o.State, short(o.Why, 2000), o.Kind, o.Ticket, o.Effect
		switch {
		case j.State.Final():
			j.Ended, j.Orphaned = q.moment(), time.Time{}
		case j.State == Scheduled:
			j.At = o.At.UTC().Truncate(time.Microsecond)
		}
		if o.Orphan && j.Orphaned.IsZero() {
			j.Orphaned = old.Started
		}
		if o.Next {
			j.Attempt++
			j.Call.Answers, j.Orphaned = nil, time.Time{}
		}
		err := q.change(ctx, &old, &j, func(b *store.Batch) {
			if o.Result == nil {
				return
			}
			value, err := json.Marshal(o.Result)
			why := ""
			switch {
			case err != nil:
				why = "The result could not be kept: " + err.Error()
			case len(value) > mostResult:
				why = fmt.Sprintf("The result has %d bytes and was too large to keep.", len(value))
			}
			if why != "" {
				value = encode(capability.Result{Failed: o.Result.Failed, Handle: o.Result.Handle, Parts: []capability.Part{{Text: why}}})
			}
			b.PutFor(store.Key("jobs", "result", j.ID), value, max(q.keep(), time.Minute))
		})
		if !errors.Is(err, store.ErrConflict) {
			return j, err // a conflict: a cancel was asked for meanwhile
		}
	}
	return Job{}, fmt.Errorf("finish job %s: %w", claimed.ID, ErrLost)
}

// Resume queues a job that waits for an approval.
func (q *Stored) Resume(ctx context.Context, old Job) error {
	if old.State != Waiting {
		return nil
	}
	j := old
	j.State, j.Why = Queued, ""
	j.Call.Answers = map[string]json.RawMessage{answerConsent: encode(old.Ticket)}
	if err := q.change(ctx, &old, &j); err != nil && !errors.Is(err, store.ErrConflict) {
		return err // a conflict: somebody else did, or it was cancelled
	}
	return nil
}

// Recover queues what died with its worker.
func (q *Stored) Recover(ctx context.Context, dead func(process string) bool) ([]Job, error) {
	// What runs is read first: a worker says that it is alive before it claims.
	var running []mark
	for item, err := range q.store.Scan(ctx, runningPrefix, store.Range{}) {
		if err != nil {
			return nil, err
		}
		m, err := readMark(item)
		if err != nil {
			return nil, err
		}
		running = append(running, m)
	}
	if len(running) == 0 {
		return nil, nil
	}
	members, err := q.Members(ctx)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	for _, m := range members {
		alive[m.ID] = dead == nil || !dead(m.Process)
	}
	var out []Job
	var unread []error
	for _, m := range running {
		if alive[m.Worker] {
			continue
		}
		old, err := q.Get(ctx, m.ID)
		if unreadable(err) {
			unread = append(unread, err)
			continue
		}
		if err != nil {
			return out, err
		}
		if old.State != Running || old.Worker != m.Worker {
			continue
		}
		j := old
		j.State = Queued
		if j.Orphaned.IsZero() {
			j.Orphaned = old.Started
		}
		j.Why = "its worker died; the attempt is made again with the same key"
		err = q.change(ctx, &old, &j)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return out, err
		}
		out = append(out, j)
	}
	return out, errors.Join(unread...)
}
