package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/store"
)

// Stored is a [Queue] in a store. Its keys are
//
//	job/ID                     a job
//	jobs/next/ready/PRIO/TIME  a job that is Queued, in the order in which they run
//	jobs/next/due/TIME/ID      a job that is Scheduled, in the order of their times
//	jobs/running/ID            what limits need to know of a job that is Running
//	jobs/waiting/ID            a job that is Waiting
//	jobs/turn                  written with every claim, so that one claim counts
//	                           what runs after the one before it
//	jobs/cancel/ID             who cancels a job that is Running
//	jobs/progress/ID           how far it has come
//	jobs/result/ID             what it gave back
//	jobs/worker/ID             a worker that is alive
//
// All keys that say the same thing are written in one batch, on the condition
// that the job is as it was read.
type Stored struct {
	store *store.Store
	keep  func() time.Duration
	most  func() int
	now   func() time.Time

	mu    sync.Mutex
	rooms map[string]room // what principals had waiting a moment ago
	look  time.Time       // when a claim looks at many waiting jobs again
}

// A room is how many jobs of a principal have not ended and how large their
// arguments are: counted at a time, with what was added here since.
type room struct {
	count, bytes int
	at           time.Time
}

// countAgain is how long such a count is used. It is used only while a principal
// has less than half of what it may have: nearer to the limit every job is counted.
const countAgain = time.Second

var _ Queue = (*Stored)(nil)

// StoredConfig says how long jobs are kept, and how many. Both are asked for each
// time; nil is the default.
type StoredConfig struct {
	Keep func() time.Duration // how long a job can be looked up after it ended [a week]
	Most func() int           // how many jobs of one principal have not ended at most [1000]
}

// NewStored returns the queue of a store, which stays the caller's.
func NewStored(s *store.Store, cfg StoredConfig) *Stored {
	if cfg.Keep == nil {
		cfg.Keep = func() time.Duration { return 7 * 24 * time.Hour }
	}
	if cfg.Most == nil {
		cfg.Most = func() int { return 1000 }
	}
	return &Stored{store: s, keep: cfg.Keep, most: cfg.Most, now: time.Now, rooms: map[string]room{}}
}

// mostBytes is how large the arguments of the jobs of one principal that have not
// ended are at most, all together.
const mostBytes = 64 << 20

const (
	jobPrefix     = "job/"
	nextPrefix    = "jobs/next/"
	readyPrefix   = nextPrefix + "ready/"
	duePrefix     = nextPrefix + "due/"
	runningPrefix = "jobs/running/"
	waitingPrefix = "jobs/waiting/"
	cancelPrefix  = "jobs/cancel/"
	workerPrefix  = "jobs/worker/"
	turnKey       = "jobs/turn"

	jobVersion = 1 // of the form in which a job is stored
)

type storedJob struct {
	V   int `json:"v"`
	Job Job `json:"job"`
}

// A mark is what limits need to know of a job without reading it.
type mark struct {
	ID      string   `json:"id"`
	Group   string   `json:"group,omitempty"`
	Who     string   `json:"who"`
	Session string   `json:"session,omitempty"`
	Needs   []string `json:"needs,omitempty"`
	Worker  string   `json:"worker,omitempty"`
	Bytes   int      `json:"bytes,omitempty"` // of the arguments
}

func jobKey(id string) string { return store.Key("job", id) }

// stamp orders times as texts.
func stamp(t time.Time) string { return fmt.Sprintf("%016x", t.UnixMicro()) }

func readyKey(j *Job) string {
	return store.Key("jobs", "next", "ready", fmt.Sprintf("%04d", MaxPriority-j.Priority), stamp(j.Added)+"-"+j.ID)
}

func dueKey(j *Job) string { return store.Key("jobs", "next", "due", stamp(j.At), j.ID) }

// newID returns an id that begins with the time, so that a list of ids is in
// order for a reader.
func newID(now time.Time) string {
	return now.UTC().Format("060102-150405") + "-" + strings.ToLower(rand.Text()[:5])
}

func (q *Stored) moment() time.Time { return q.now().UTC().Truncate(time.Microsecond) }

// encode returns plain data as JSON, and nil for what has no such form.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// value returns a job as it is stored. A job that has no such form must not be
// written: nobody could read it again.
func value(j *Job) ([]byte, error) {
	b, err := json.Marshal(storedJob{jobVersion, *j})
	if err != nil {
		return nil, fmt.Errorf("store job %s: %w", j.ID, err)
	}
	return b, nil
}

func (q *Stored) put(b *store.Batch, j *Job, value []byte) {
	if j.State.Final() {
		b.PutFor(jobKey(j.ID), value, max(q.keep(), time.Minute))
		return
	}
	b.Put(jobKey(j.ID), value)
}

// enter adds the key under which a job is found in its state.
func (q *Stored) enter(b *store.Batch, j *Job) {
	about := mark{ID: j.ID, Group: j.Group, Who: j.Who(), Session: j.Call.Session, Needs: j.Needs, Worker: j.Worker, Bytes: len(j.Call.Arguments)}
	switch j.State {
	case Queued:
		b.Put(readyKey(j), encode(about))
	case Scheduled:
		b.Put(dueKey(j), encode(about))
	case Running:
		b.Put(store.Key("jobs", "running", j.ID), encode(about))
	case Waiting:
		b.Put(store.Key("jobs", "waiting", j.ID), encode(about))
	}
}

// leave removes the key under which a job is found in its state.
func (q *Stored) leave(b *store.Batch, j *Job) {
	switch j.State {
	case Queued:
		b.Remove(readyKey(j))
	case Scheduled:
		b.Remove(dueKey(j))
	case Running:
		b.Remove(store.Key("jobs", "running", j.ID))
		b.Remove(store.Key("jobs", "cancel", j.ID))
		b.Remove(store.Key("jobs", "progress", j.ID))
	case Waiting:
		b.Remove(store.Key("jobs", "waiting", j.ID))
	}
}

// change writes a job that was read as old. It fails with a [store.Conflict] if
// the job has changed since.
func (q *Stored) change(ctx context.Context, old, j *Job, more ...func(*store.Batch)) error {
	var b store.Batch
	if err := q.write(&b, old, j); err != nil {
		return err
	}
	for _, f := range more {
		f(&b)
	}
	version, err := q.store.Apply(ctx, &b)
	if err != nil {
		return err
	}
	j.Version = version
	return nil
}

// write adds to a batch that a job which was read as old is now j.
func (q *Stored) write(b *store.Batch, old, j *Job) error {
	text, err := value(j)
	if err != nil {
		return err
	}
	b.At(jobKey(j.ID), old.Version)
	q.put(b, j, text)
	if old.State != j.State || old.State == Scheduled && !old.At.Equal(j.At) {
		q.leave(b, old)
		q.enter(b, j)
	}
	return nil
}

// Add keeps a new job.
func (q *Stored) Add(ctx context.Context, j Job) (Job, error) {
	if err := j.check(); err != nil {
		return Job{}, err
	}
	if err := q.checkRoom(ctx, &j); err != nil {
		return Job{}, err
	}
	now := q.moment()
	for range 3 {
		j.ID, j.Added, j.State = newID(now), now, Queued
		j.At = j.At.UTC().Truncate(time.Microsecond)
		if j.Schedule != "" {
			plan, err := ParseSchedule(j.Schedule)
			if err != nil {
				return Job{}, err
			}
			if j.At.IsZero() {
				j.At = plan.Next(now, now).UTC()
			}
		}
		if j.At.After(now) || j.Schedule != "" {
			j.State = Scheduled
		}
		text, err := value(&j)
		if err != nil {
			return Job{}, err
		}
		var b store.Batch
		b.Absent(jobKey(j.ID))
		q.put(&b, &j, text)
		q.enter(&b, &j)
		version, err := q.store.Apply(ctx, &b)
		if errors.Is(err, store.ErrConflict) {
			continue // another job has the id
		}
		j.Version = version
		return j, err
	}
	return Job{}, &capability.Error{Kind: capability.Conflict, Op: "add job", Err: errors.New("no free job id found"), Fix: "try again"}
}

// checkRoom refuses a job if its principal has too many that have not ended. A
// model adds as many as it likes, and each is stored until it ends. Jobs that are
// added at the same moment may all pass.
func (q *Stored) checkRoom(ctx context.Context, j *Job) error {
	most, who, size := q.most(), j.Who(), len(j.Call.Arguments)
	if q.hasRoom(who, size, most) {
		return nil
	}
	count, bytes := 0, size
	for _, prefix := range []string{nextPrefix, runningPrefix, waitingPrefix} {
		for item, err := range q.store.Scan(ctx, prefix, store.Range{}) {
			if err != nil {
				return err
			}
			m, err := readMark(item)
			if err != nil {
				return err
			}
			if m.Who == who {
				count++
				bytes += m.Bytes
			}
		}
	}
	if count < most && bytes <= mostBytes {
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.rooms) >= 1000 {
			clear(q.rooms)
		}
		q.rooms[who] = room{count: count + 1, bytes: bytes, at: time.Now()}
		return nil
	}
	why := fmt.Errorf("%d jobs of %s are unfinished", count, j.Call.Principal.ID)
	if count < most {
		why = fmt.Errorf("%w, and with this job their arguments are larger than %d MiB", why, mostBytes>>20)
	}
	return &capability.Error{
		Kind: capability.Denied, Op: "add job for", Target: string(j.Call.Target), Rule: "jobs.pending", Err: why,
		Fix: "start ken worker, or cancel some with ken jobs cancel",
	}
}

// hasRoom reports that a principal has far less than it may have, by a count of a
// moment ago.
func (q *Stored) hasRoom(who string, size, most int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, ok := q.rooms[who]
	r.count++
	r.bytes += size
	if !ok || time.Since(r.at) > countAgain || r.count > most/2 || r.bytes > mostBytes/2 {
		return false
	}
	q.rooms[who] = r
	return true
}

func readMark(item store.Item) (m mark, err error) {
	if err = json.Unmarshal(item.Value, &m); err != nil {
		err = fmt.Errorf("read %s: %w", item.Key, err)
	}
	return m, err
}

// Get reads a job.
func (q *Stored) Get(ctx context.Context, id string) (Job, error) {
	if id == "" || len(id) > 100 {
		return Job{}, notFound(id)
	}
	item, ok, err := q.store.Get(ctx, jobKey(id))
	if err != nil {
		return Job{}, err
	}
	if !ok {
		return Job{}, notFound(id)
	}
	return decode(item)
}

func decode(item store.Item) (Job, error) {
	var s storedJob
	if err := item.Decode(jobVersion, &s); err != nil {
		return Job{}, &unreadableError{strings.TrimPrefix(item.Key, jobPrefix), err}
	}
	s.Job.Version = item.Version
	return s.Job, nil
}

// An unreadableError says that what is stored is no job, or one of a newer
// version of Ken. It is about that job alone.
type unreadableError struct {
	id  string
	err error
}

func (e *unreadableError) Error() string { return "read job " + e.id + ": " + e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// List returns jobs, the oldest first. What cannot be read is in the error and
// hides only itself.
func (q *Stored) List(ctx context.Context, f Filter) ([]Job, error) {
	var list []Job
	var errs []error
	prefix, read := jobPrefix, decode
	if len(f.States) == 1 && f.States[0] == Waiting { // which workers ask for often
		prefix, read = waitingPrefix, func(item store.Item) (Job, error) {
			return q.Get(ctx, strings.TrimPrefix(item.Key, waitingPrefix))
		}
	}
	for item, err := range q.store.Scan(ctx, prefix, store.Range{}) {
		if err != nil {
			return list, err
		}
		j, err := read(item)
		if err != nil {
			errs = append(errs, err)
		} else if f.Keeps(&j) {
			list = append(list, j)
		}
	}
	coldsort.By(list, func(a, b Job) int { return cmp.Or(a.Added.Compare(b.Added), cmp.Compare(a.ID, b.ID)) })
	return list, errors.Join(errs...)
}

// Result reads what a job gave back.
func (q *Stored) Result(ctx context.Context, id string) (res capability.Result, ok bool, err error) {
	item, ok, err := q.store.Get(ctx, store.Key("jobs", "result", id))
	if ok && err == nil {
		err = json.Unmarshal(item.Value, &res)
	}
	return res, ok, err
}

// Progress reads how far a job has come.
func (q *Stored) Progress(ctx context.Context, id string) (p Progress, ok bool, err error) {
	item, ok, err := q.store.Get(ctx, store.Key("jobs", "progress", id))
	if ok && err == nil {
		err = json.Unmarshal(item.Value, &p)
	}
	return p, ok, err
}

// Report keeps how far a job has come, for as long as it may run.
func (q *Stored) Report(ctx context.Context, id string, p Progress) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("store the progress of job %s: %w", id, err)
	}
	var b store.Batch
	b.PutFor(store.Key("jobs", "progress", id), text, 24*time.Hour)
	_, err = q.store.Apply(ctx, &b)
	return err
}

// tries is how often a change is made again that met another.
const tries = 16

// edit changes a job as it is when the change is written.
func (q *Stored) edit(ctx context.Context, id string, f func(*Job) (func(*store.Batch), error)) (Job, error) {
	for range tries {
		old, err := q.Get(ctx, id)
		if err != nil {
			return Job{}, err
		}
		j := old
		more, err := f(&j)
		if err != nil {
			return old, err
		}
		if more == nil {
			more = func(*store.Batch) {}
		}
		if err = q.change(ctx, &old, &j, more); !errors.Is(err, store.ErrConflict) {
			return j, err
		}
	}
	return Job{}, &capability.Error{Kind: capability.Conflict, Op: "change job", Target: id, Err: errors.New("the job changes too fast"), Fix: "try again"}
}

// Cancel ends a job, or has its worker end it.
func (q *Stored) Cancel(ctx context.Context, id, by string) (Job, error) {
	return q.edit(ctx, id, func(j *Job) (func(*store.Batch), error) {
		switch {
		case j.State.Final():
			return nil, &capability.Error{
				Kind: capability.Conflict, Op: "cancel job", Target: id, Err: fmt.Errorf("the job is %s", j.State), Fix: "only a job that has not ended can be cancelled",
			}
		case j.State == Running:
			j.CancelBy = by
			return func(b *store.Batch) { b.PutFor(store.Key("jobs", "cancel", id), []byte(by), 24*time.Hour) }, nil
		}
		j.State, j.Ended, j.Why, j.Ticket = Cancelled, q.moment(), "cancelled by "+by, ""
		return nil, nil
	})
}

// Retry queues a job again.
func (q *Stored) Retry(ctx context.Context, id string, again bool) (Job, error) {
	return q.edit(ctx, id, func(j *Job) (func(*store.Batch), error) {
		refuse := func(why, fix string) (func(*store.Batch), error) {
			return nil, &capability.Error{Kind: capability.Conflict, Op: "retry job", Target: id, Err: errors.New(why), Fix: fix}
		}
		switch {
		case j.Schedule != "":
			return refuse("the job is a schedule", "add it again, or retry one of its runs")
		case j.State == Done || !j.State.Final():
			return refuse(fmt.Sprintf("the job is %s", j.State), "only a job that failed, was cancelled or is unknown can be retried")
		case j.State == Unknown && !again:
			return refuse("the job may already have taken effect", "check whether it did; then ken jobs retry --again "+id+" runs it again")
		case j.State == Unknown && j.Effect != "":
			// The same key, and the answer that the runner wants.
			j.Call.Answers = map[string]json.RawMessage{answerAgain: encode(j.Effect)}
		default:
			j.Attempt++
			j.Call.Answers = nil
		}
		j.State, j.Why, j.Kind, j.Ticket, j.Effect, j.CancelBy = Queued, "", "", "", "", ""
		j.Ended, j.Orphaned = time.Time{}, time.Time{}
		return func(b *store.Batch) { b.Delete(store.Key("jobs", "result", id)) }, nil
	})
}
