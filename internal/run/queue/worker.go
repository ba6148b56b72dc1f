package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/run/runner"
	"ken/internal/store"
)

// The names of the answers that a call is made again with.
const (
	answerConsent = runner.AnswerConsent
	answerAgain   = runner.AnswerAgain
)

// A Maker makes the calls of jobs.
type Maker interface {
	// Invoke makes the call of a job, as its principal and with [Job.Key].
	Invoke(ctx context.Context, j Job, live io.Writer) (capability.Result, error)

	// CallStatus returns what the runner kept of that call: see [runner.Runner.CallStatus].
	CallStatus(ctx context.Context, j Job) (runner.CallStatus, bool, error)

	// Repeatable reports whether a second effect of the call does no harm.
	Repeatable(j Job) bool

	// Pending reports whether an approval request still waits for an answer.
	Pending(ctx context.Context, j Job) (bool, error)
}

// WorkerConfig says how a worker works. Queue and Maker are required.
type WorkerConfig struct {
	Queue Queue
	Maker Maker

	// Concurrent is how many jobs run at once [8]. Limits hold over all workers.
	// Both are asked for before each claim.
	Concurrent func() int
	Limits     func() Limits

	// Remember is for how long the runner knows how a call ended: a job whose
	// worker died longer ago is unknown [24 h].
	Remember func() time.Duration

	// About returns what the worker says of itself, without what it runs. Has reports
	// whether it has what a job needs; nil: everything.
	About func() Member
	Has   func(need string) bool

	Process string                    // this one, among all that ever were
	Dead    func(process string) bool // reports that a process is gone for certain

	Lease time.Duration // silence after which other workers take over [6 s]
	Drain time.Duration // that running jobs have to end once the worker is stopped [30 s]

	Once bool // Run ends when no job is left to run now

	// Record, when not nil, is told of the end of each attempt, by several goroutines.
	Record func(Job)
	Log    *slog.Logger
}

// A Worker runs jobs until it is stopped.
type Worker struct {
	cfg WorkerConfig
	id  string

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
	done    sync.WaitGroup
	ended   chan struct{} // holds one: a job has ended

	needs   needs
	said    atomic.Int64 // when it last said that it is alive, in nanoseconds since 1970
	refused string       // why the last job could not be taken, which is said once; of loop alone
}

// NewWorker makes a worker.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Queue == nil || cfg.Maker == nil {
		return nil, errors.New("make worker: Queue and Maker are required")
	}
	if cfg.About == nil {
		cfg.About = func() Member { return Member{} }
	}
	if cfg.Concurrent == nil {
		cfg.Concurrent = func() int { return 8 }
	}
	if cfg.Limits == nil {
		cfg.Limits = func() Limits { return Limits{} }
	}
	if cfg.Remember == nil {
		cfg.Remember = func() time.Duration { return 24 * time.Hour }
	}
	if cfg.Lease <= 0 {
		cfg.Lease = 6 * time.Second
	}
	if cfg.Drain <= 0 {
		cfg.Drain = 30 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Worker{cfg: cfg, needs: needs{has: cfg.Has}, id: strings.ToLower(rand.Text()[:10]), running: map[string]context.CancelCauseFunc{}, ended: make(chan struct{}, 1)}, nil
}

// ID names the worker.
func (w *Worker) ID() string { return w.id }

var errStopping = errors.New("the worker is stopping")

// lookEvery is how often a worker looks for jobs whose workers died, and
// answerEvery for answers to approval requests that jobs wait for. claimAgain is
// how long it waits after no job could be taken.
const (
	lookEvery   = 2 * time.Second
	answerEvery = 500 * time.Millisecond
	claimAgain  = time.Second
)

// Run takes jobs until ctx ends. Then it takes no more, and waits for those that
// run; after Drain it stops them. ready is called once the worker takes jobs; nil
// is nobody.
func (w *Worker) Run(ctx context.Context, ready func()) error {
	if err := w.join(ctx); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	signals, err := w.cfg.Queue.Watch(watching)
	if err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { w.keepLease(watching) })
	wake := make(chan struct{}, 1)
	beside.Go(func() { w.listen(signals, wake) })
	calls, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	if ready != nil {
		ready()
	}
	err = w.loop(ctx, calls, wake)
	if ended := w.await(w.cfg.Drain); !ended {
		abort(errStopping)
		w.await(time.Minute) // the runner ends what it was told to stop
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, w.cfg.Queue.Leave(late, w.id))
}

// await waits for the jobs that run.
func (w *Worker) await(most time.Duration) bool {
	all := make(chan struct{})
	go func() { w.done.Wait(); close(all) }()
	select {
	case <-all:
		return true
	case <-time.After(most):
		return false
	}
}

// join says that the worker is alive.
func (w *Worker) join(ctx context.Context) error {
	me := w.cfg.About()
	me.ID, me.Process, me.Most = w.id, w.cfg.Process, w.cfg.Concurrent()
	w.mu.Lock()
	me.Running = len(w.running)
	w.mu.Unlock()
	me.Has, me.Lacks = w.needs.known()
	err := w.cfg.Queue.Join(ctx, me, w.cfg.Lease)
	if err == nil {
		w.said.Store(time.Now().UnixNano())
	}
	return err
}

func (w *Worker) keepLease(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := w.join(ctx); err != nil && ctx.Err() == nil {
				w.cfg.Log.Warn("the worker could not say that it is alive; others may take over its jobs", "error", err)
			}
		}
	}
}

// listen passes signals on.
func (w *Worker) listen(signals <-chan Signal, wake chan<- struct{}) {
	for s := range signals {
		if s.Cancel != "" {
			w.mu.Lock()
			stop := w.running[s.Cancel]
			w.mu.Unlock()
			if stop != nil {
				stop(&cancelledError{s.By})
			}
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// A cancelledError is the cause of a call that was cancelled by a person.
type cancelledError struct{ by string }

func (e *cancelledError) Error() string { return "cancelled by " + e.by }

// loop claims jobs as long as there is room.
func (w *Worker) loop(ctx, calls context.Context, wake <-chan struct{}) error {
	look, answers := time.NewTicker(lookEvery), time.NewTicker(answerEvery)
	defer look.Stop()
	defer answers.Stop()
	w.recover(ctx)
	w.resume(ctx)
	w.realign(ctx)
	seen := time.Now()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		next, idle, err := w.fill(ctx, calls)
		if idle && w.cfg.Once {
			return err
		}
		if !next.IsZero() {
			timer.Reset(max(time.Until(next), time.Millisecond))
			due = timer.C
		}
		for again := false; !again; {
			again = true
			select {
			case <-ctx.Done():
				return nil
			case <-wake:
			case <-w.ended:
			case <-due:
			case <-look.C:
				w.recover(ctx)
				now := time.Now()
				if setBack(seen, now) {
					w.realign(ctx)
				}
				seen = now
			case <-answers.C:
				again = w.resume(ctx)
			}
		}
	}
}

// fill starts jobs until there is no room or nothing to start, and returns when
// the next one is due, whether nothing runs, and why no job can be taken.
func (w *Worker) fill(ctx, calls context.Context) (next time.Time, idle bool, err error) {
	for ctx.Err() == nil {
		w.mu.Lock()
		room := w.cfg.Concurrent() - len(w.running)
		w.mu.Unlock()
		if room <= 0 {
			return time.Time{}, false, nil // one that ends asks again
		}
		jobs, err := w.cfg.Queue.Claim(ctx, Ask{Worker: w.id, Limits: w.cfg.Limits(), Most: room, Lacks: w.needs.lacks})
		if err != nil {
			if text := err.Error(); ctx.Err() == nil && text != w.refused {
				w.refused = text
				w.cfg.Log.Warn("no job can be taken", "error", err)
			}
			return time.Now().Add(claimAgain), w.idle(), err
		}
		w.refused = ""
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			w.start(calls, j)
		}
	}
	idle = w.idle()
	next, ok, err := w.cfg.Queue.NextDue(ctx)
	if err != nil || !ok {
		return time.Time{}, idle, nil
	}
	return next, idle, nil
}

// idle reports whether nothing runs.
func (w *Worker) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.running) == 0
}

// recover takes over the jobs of workers that died. A worker that could not say for
// a while that it is alive says so first: else it would take its own.
func (w *Worker) recover(ctx context.Context) {
	if time.Since(time.Unix(0, w.said.Load())) > w.cfg.Lease/2 {
		if err := w.join(ctx); err != nil {
			return // keepLease tells
		}
	}
	jobs, err := w.cfg.Queue.Recover(ctx, w.cfg.Dead)
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("jobs of workers that died cannot be taken over", "error", err)
	}
	for _, j := range jobs {
		w.cfg.Log.Info("a job's worker died; it is looked at again", "job", j.ID, "target", string(j.Call.Target))
	}
}

// setBack reports whether the clock was set back between two readings, by more than
// clocks are corrected all the time.
func setBack(before, after time.Time) bool {
	return after.Round(0).Sub(before.Round(0)) < after.Sub(before)-10*time.Second
}

func (w *Worker) realign(ctx context.Context) {
	n, err := w.cfg.Queue.Realign(ctx)
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("the times of scheduled jobs cannot be looked at", "error", err)
	}
	if n > 0 {
		w.cfg.Log.Info("scheduled jobs are due earlier: their times were set while the clock was ahead", "jobs", n)
	}
}

// resume queues jobs whose approval requests were answered. It reports whether there
// were any.
func (w *Worker) resume(ctx context.Context) (some bool) {
	jobs, err := w.cfg.Queue.List(ctx, Filter{States: []State{Waiting}})
	for _, j := range jobs {
		waits, perr := w.cfg.Maker.Pending(ctx, j)
		if perr == nil && !waits {
			perr = w.cfg.Queue.Resume(ctx, j)
			some = true
		}
		err = errors.Join(err, perr)
	}
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.Warn("answers to approval requests of jobs cannot be read", "error", err)
	}
	return some
}

func (w *Worker) start(calls context.Context, j Job) {
	ctx, stop := context.WithCancelCause(calls)
	w.mu.Lock()
	w.running[j.ID] = stop
	w.mu.Unlock()
	w.done.Go(func() {
		defer func() {
			w.mu.Lock()
			delete(w.running, j.ID)
			w.mu.Unlock()
			stop(nil)
			select {
			case w.ended <- struct{}{}:
			default:
			}
		}()
		w.work(ctx, j)
	})
}

// work makes one attempt and keeps what came of it.
func (w *Worker) work(ctx context.Context, j Job) {
	live := newLive(func(p Progress) {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := w.cfg.Queue.Report(late, j.ID, p); err != nil {
			w.cfg.Log.Warn("the progress of a job cannot be kept", "job", j.ID, "error", err)
		}
	})
	out, decided := w.before(ctx, j)
	if !decided {
		res, err := w.cfg.Maker.Invoke(ctx, j, live)
		live.close()
		out = w.judge(ctx, j, res, err)
	}
	late := context.WithoutCancel(ctx)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		limited, cancel := context.WithTimeout(late, 10*time.Second)
		ended, err := w.cfg.Queue.Finish(limited, j, out)
		cancel()
		switch {
		case err == nil:
			if w.cfg.Record != nil {
				w.cfg.Record(ended)
			}
			return
		case errors.Is(err, ErrLost) || wait >= 5*time.Second && (!away(err) || ctx.Err() != nil):
			w.cfg.Log.Warn("what came of a job cannot be kept", "job", j.ID, "state", string(out.State), "error", err)
			return // another worker has it, or finds it when this one is gone
		}
		time.Sleep(wait)
	}
}

// before decides on a job whose worker died without making its call: where the
// runner may have forgotten how it ended, and where it was to be cancelled.
func (w *Worker) before(ctx context.Context, j Job) (Outcome, bool) {
	forgotten := !j.Orphaned.IsZero() && time.Since(j.Orphaned) >= w.cfg.Remember()
	if !forgotten && j.CancelBy == "" {
		return Outcome{}, false
	}
	fate, known, err := w.cfg.Maker.CallStatus(ctx, j)
	switch {
	case err != nil:
		return Outcome{State: Scheduled, At: time.Now().Add(time.Minute), Why: "what became of it cannot be read: " + err.Error()}, true
	case known && fate.Ended:
		return Outcome{}, false // made again, the call gives its result
	case known:
		return unknownOutcome(fate.Effect, "its worker died while it ran"), true
	case j.CancelBy != "":
		return Outcome{State: Cancelled, Why: (&cancelledError{j.CancelBy}).Error()}, true
	}
	return unknownOutcome("", "its worker died longer ago than limits.remember, so what became of it is forgotten"), true
}

func unknownOutcome(effect, why string) Outcome {
	if effect != "" {
		why += "; the audit log has it as effect " + effect
	}
	return Outcome{State: Unknown, Effect: effect, Why: why + "; look whether it happened, then ken jobs retry --again"}
}

// judge decides what a result means for a job.
func (w *Worker) judge(ctx context.Context, j Job, res capability.Result, err error) Outcome {
	overdue := res.Meta[runner.MetaState] == runner.TimedOut.String()
	if err == nil && !res.Failed && !overdue {
		return Outcome{State: Done, Result: &res}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if q, ok := errors.AsType[*runner.Question](err); ok {
		switch {
		case q.Name == answerAgain:
			return unknownOutcome(q.Effect, "its worker died while it ran")
		case q.Name == answerConsent && q.Ticket != "" && !answered(j, q.Ticket):
			return Outcome{State: Waiting, Ticket: q.Ticket, Why: "waits for approval: ken approve grant " + q.Ticket}
		}
	}
	fate, known, ferr := w.cfg.Maker.CallStatus(late, j)
	stopped, cause := ctx.Err() != nil, context.Cause(ctx)
	byPerson, isPerson := errors.AsType[*cancelledError](cause)
	if err == nil && stopped && res.Meta[runner.MetaEnd] == "cancelled" { // a program was stopped, and says so
		switch {
		case isPerson:
			return Outcome{State: Cancelled, Why: byPerson.Error() + " while it ran; what it did until then stays done", Result: &res}
		case ferr == nil && !known:
			return Outcome{State: Queued, Why: "its worker stopped; it changes nothing and is run again"}
		}
		return unknownOutcome("", "it was stopped while it ran ("+cause.Error()+")")
	}
	if err == nil { // it ended, whatever is kept of it
		o := Outcome{State: Failed, Why: "the call ran and reported failure: " + firstText(res), Result: &res}
		if overdue {
			o.Why, o.Kind = "the call took too long and was stopped (limits.timeout)", capability.Timeout.String()
		}
		return w.again(j, o, ferr == nil && !known || w.cfg.Maker.Repeatable(j))
	}
	if away(ferr) {
		return Outcome{State: Scheduled, At: time.Now().Add(lookEvery), Orphan: true, Why: "it ended with: " + err.Error() + "; what became of it cannot be read now; the attempt is made again with the same key"}
	}
	if ferr != nil {
		return unknownOutcome("", "it ended with: "+err.Error()+"; what became of it cannot be read: "+ferr.Error())
	}
	switch {
	case known && !fate.Ended && stopped:
		return unknownOutcome(fate.Effect, "it was stopped while it ran ("+cause.Error()+")")
	case !j.Orphaned.IsZero() && (known && fate.Runs || errors.Is(err, runner.ErrStillRunning)): // its worker may be alive after all, or was a moment ago
		return Outcome{State: Scheduled, At: time.Now().Add(lookEvery), Why: err.Error()}
	case known && !fate.Ended:
		return unknownOutcome(fate.Effect, "it ended with: "+err.Error())
	case !known && isPerson:
		return Outcome{State: Cancelled, Why: byPerson.Error(), Kind: capability.KindOf(err).String()}
	case !known && stopped:
		return Outcome{State: Queued, Why: "its worker stopped before it began"}
	case !known && away(err): // it did not begin, and that is not its fault
		return Outcome{State: Scheduled, At: time.Now().Add(lookEvery), Why: "it could not begin and is tried again: " + err.Error()}
	}
	o := Outcome{State: Failed, Why: err.Error(), Kind: capability.KindOf(err).String(), Result: &res}
	switch capability.KindOf(err) {
	case capability.Unavailable, capability.Timeout, capability.Upstream, capability.Internal, capability.Conflict:
		// What is not known changed nothing.
		return w.again(j, o, !known || w.cfg.Maker.Repeatable(j))
	}
	return o
}

// away reports whether an error says that the store could not be asked, which passes.
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) || errors.Is(err, store.ErrBusy)
}

// answered reports whether a job was made with the answer to a request already.
func answered(j Job, ticket string) bool {
	var had string
	return json.Unmarshal(j.Call.Answers[answerConsent], &had) == nil && had == ticket
}

// again has a failed attempt made again where that is safe and the job allows it.
func (w *Worker) again(j Job, o Outcome, safe bool) Outcome {
	if j.Attempt >= j.Retries {
		return o
	}
	if !safe {
		o.Why += " (not retried: a second call might have its effect twice)"
		return o
	}
	wait := min(time.Second<<min(j.Attempt, 10), longestRetry)
	return Outcome{State: Scheduled, At: time.Now().Add(wait), Next: true, Kind: o.Kind, Why: fmt.Sprintf("attempt %d failed: %s", j.Attempt+1, o.Why)}
}

func firstText(res capability.Result) string {
	for _, p := range res.Parts {
		if text := strings.TrimSpace(p.Text); text != "" {
			line, _, _ := strings.Cut(text, "\n")
			return short(line, 300)
		}
	}
	return "no reason given"
}
