package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/procid"
	"ken/internal/run/queue"
	"ken/internal/run/runner"
)

// Jobs returns the queue of calls that run later.
func (a *App) Jobs() (queue.Queue, error) {
	s, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	return queue.NewStored(s, queue.StoredConfig{
		Keep: func() time.Duration { return a.effective().Limits.Jobs.Keep },
		Most: func() int { return a.effective().Limits.Jobs.Pending },
	}), nil
}

// AddJob adds a job for a call that may be made here now, with arguments that fit.
// The rules, grants and approvals are checked when it starts.
func (a *App) AddJob(ctx context.Context, j queue.Job) (queue.Job, error) {
	call := j.Call
	call.Surface = j.Surface
	target, err := a.Door.Resolve(ctx, call)
	switch {
	case err != nil:
		return queue.Job{}, err
	case target.Disabled != "":
		return queue.Job{}, &capability.Error{Kind: capability.Unavailable, Op: "add job for", Target: string(call.Target), Err: errors.New(target.Disabled), Fix: target.Fix}
	}
	r, err := a.runner.Get()
	if err != nil {
		return queue.Job{}, err
	}
	if err := r.CheckStored(ctx, call); err != nil {
		return queue.Job{}, err
	}
	j.Call.Target, j.Folder = target.Capability.ID, a.Places.Workspace
	j.Group = cmp.Or(target.Extension, target.Capability.Origin.Source)
	q, err := a.Jobs()
	if err != nil {
		return queue.Job{}, err
	}
	j, err = q.Add(ctx, j)
	if err != nil {
		return queue.Job{}, err
	}
	if err := a.RecordJob(ctx, audit.JobAdded, j, j.Call.Principal); err != nil { // what cannot be recorded does not run
		_, undone := q.Cancel(context.WithoutCancel(ctx), j.ID, "Ken, because it could not be recorded")
		return queue.Job{}, errors.Join(err, undone)
	}
	return j, nil
}

// CancelJobsOf cancels the jobs that an agent added and that have not ended, and
// returns how many. Their authority was that of its token.
func (a *App) CancelJobsOf(ctx context.Context, agent string, by capability.Principal) (int, error) {
	q, err := a.Jobs()
	if err != nil {
		return 0, err
	}
	list, err := q.List(ctx, queue.Filter{States: []queue.State{queue.Scheduled, queue.Queued, queue.Waiting, queue.Running}})
	errs := []error{err}
	count := 0
	for _, j := range list {
		if j.Call.Principal.Agent != agent {
			continue
		}
		j, err := q.Cancel(ctx, j.ID, by.ID)
		switch {
		case err == nil:
			count++
			errs = append(errs, a.RecordJob(ctx, audit.JobCancelled, j, by))
		case capability.KindOf(err) != capability.Conflict: // it ended meanwhile
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}

// RecordJob records in the audit log what somebody did with a job.
func (a *App) RecordJob(ctx context.Context, event audit.Event, j queue.Job, by capability.Principal) error {
	rec := audit.ForCall(j.Call)
	rec.Event, rec.UserID, rec.Tenant, rec.Agent = event, by.ID, by.Tenant, by.Agent
	rec.Metadata.Notes = map[string]string{"job": j.ID, "state": string(j.State)}
	return a.record(ctx, rec)
}

// folderIdle is how long Ken stays open for a folder after the last job in it.
const folderIdle = 10 * time.Minute

// Work opens Ken as a worker does, and calls run with how one works. Each job is
// run in the folder that it was added in, with the flags of cfg.
func Work(ctx context.Context, cfg Config, run func(queue.WorkerConfig) error) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot find the working directory: %w; change to a folder that exists", err)
	}
	cfg.Dir, cfg.Getenv = cmp.Or(cfg.Dir, dir), os.Getenv
	for i, path := range cfg.Catalogs {
		if !filepath.IsAbs(path) {
			cfg.Catalogs[i] = filepath.Join(cfg.Dir, path)
		}
	}
	pool := NewPool(context.WithoutCancel(ctx), folderIdle)
	a, done, err := pool.Enter(ctx, cfg)
	if err == nil {
		var how queue.WorkerConfig
		if how, err = a.Worker(pool, cfg); err == nil {
			err = run(how)
		}
		done()
	}
	return errors.Join(err, pool.Close())
}

// Worker returns how a worker works that runs jobs in the Apps of pool. cfg has
// the flags of every folder.
func (a *App) Worker(pool *Pool, cfg Config) (queue.WorkerConfig, error) {
	q, err := a.Jobs()
	if err != nil {
		return queue.WorkerConfig{}, err
	}
	if _, err := a.runner.Get(); err != nil { // the first job need not wait for it
		return queue.WorkerConfig{}, err
	}
	return queue.WorkerConfig{
		Queue: q, Maker: &jobMaker{app: a, pool: pool, cfg: cfg}, Process: procid.Self(), Dead: procid.Dead,
		Concurrent: func() int { return a.effective().Limits.Jobs.Concurrent },
		Limits: func() queue.Limits {
			set := a.effective().Limits.Jobs
			return queue.Limits{PerGroup: set.PerExtension, PerPrincipal: set.PerPrincipal}
		},
		Remember: func() time.Duration { return a.effective().Limits.Remember },
		Drain:    a.Settings.Serve.Drain, Log: cfg.Log,
	}, nil
}

// A jobMaker makes the calls of jobs through the door, like all others.
type jobMaker struct {
	app  *App // of the worker
	pool *Pool
	cfg  Config // of every folder
}

var _ queue.Maker = (*jobMaker)(nil)

// enter returns the App of a job's folder.
func (m *jobMaker) enter(ctx context.Context, j queue.Job) (*App, func(), error) {
	if _, err := os.Stat(j.Folder); err != nil {
		return nil, nil, &capability.Error{
			Kind: capability.Unavailable, Op: "run job in", Target: j.Folder, Err: err, Fix: "put the folder back, or add the job again in another",
		}
	}
	cfg := m.cfg
	cfg.Dir = j.Folder
	return m.pool.Enter(ctx, cfg)
}

func jobCall(j queue.Job) capability.Call {
	call := j.Call
	call.Key, call.Surface = j.Key(), j.Surface
	return call
}

func (m *jobMaker) Invoke(ctx context.Context, j queue.Job, live io.Writer) (capability.Result, error) {
	a, done, err := m.enter(ctx, j)
	if err != nil {
		return capability.Result{}, err
	}
	defer done()
	call := jobCall(j)
	call.Live = live
	view := a.Door.ViewFor(door.Viewer{Principal: call.Principal, Mode: call.Mode, Origin: call.Origin, Surface: policy.Surface(call.Surface)})
	return a.Door.Invoke(ctx, view, call)
}

func (m *jobMaker) CallStatus(ctx context.Context, j queue.Job) (runner.CallStatus, bool, error) {
	a, done, err := m.enter(ctx, j)
	if err != nil {
		// What is kept of a call is the same for every folder.
		a, done = m.app, func() {}
	}
	defer done()
	r, err := a.runner.Get()
	if err != nil {
		return runner.CallStatus{}, false, err
	}
	return r.CallStatus(ctx, jobCall(j))
}

func (m *jobMaker) Repeatable(j queue.Job) bool {
	a, done, err := m.enter(context.Background(), j)
	if err != nil {
		return false
	}
	defer done()
	c, ok := a.capability(j.Call.Target)
	return ok && c.Trust >= capability.TrustUser && c.Effects.Idempotent == capability.Yes
}

func (m *jobMaker) Pending(ctx context.Context, j queue.Job) (bool, error) {
	desk, err := m.app.Desk()
	if err != nil {
		return false, err
	}
	t, err := desk.Get(ctx, j.Ticket)
	if errors.Is(err, approval.ErrNoTicket) {
		return false, nil // removed since: asked again
	}
	return err == nil && t.State == approval.Pending, err
}
