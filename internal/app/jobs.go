package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/procid"
	"ken/internal/run/executor"
	"ken/internal/run/executors"
	"ken/internal/run/queue"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
)

// Jobs returns the queue of calls that run later.
func (a *App) Jobs() (queue.Queue, error) {
	q, err := a.jobs.Get()
	if err != nil {
		return nil, err
	}
	return q, nil
}

func newJobs(a *App) (*queue.Stored, error) {
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
	j.Needs = jobNeeds(target.Capability, a.effective().Sandbox.Require)
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

// jobNeeds returns what the worker must have that runs a capability: its programs, its
// platform, and for a program the sandbox profile that sandbox.require wants.
func jobNeeds(c *capability.Capability, require config.Requirement) []string {
	var needs []string
	program := executors.ProgramOf(c)
	for _, name := range append(slices.Clone(c.RequiredBins), program) {
		if need := queue.NeedProgram(name); name != "" && !strings.ContainsAny(name, `/\`) && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
	}
	if len(c.RequiredPlatforms) > 0 {
		needs = append(needs, queue.NeedPlatform(c.RequiredPlatforms))
	}
	switch {
	case program == "" || runtime.GOOS != "linux":
	case require == config.RequireFull:
		needs = append(needs, queue.NeedSandbox(string(sandbox.Full)))
	case require == config.RequireLandlock:
		needs = append(needs, queue.NeedSandbox(string(sandbox.Landlock)))
	}
	return needs
}

// hasNeed reports whether this machine has what a job needs. What it does not know it
// leaves to the call, which says what is missing.
func hasNeed(a *App) func(need string) bool {
	onPath := catalog.ThisMachine().HasBin
	programs := executor.NewPrograms(a.path, a.Places.Workspace, filepath.Join(a.Places.Home, "extensions")).Within(sandbox.Requirement(a.Settings.Sandbox.Require))
	return func(need string) bool {
		if name, ok := strings.CutPrefix(need, queue.NeedProgram("")); ok {
			return onPath(name) || programs.Has(name)
		}
		if profile, ok := strings.CutPrefix(need, queue.NeedSandbox("")); ok {
			here := sandbox.Probe(context.Background()).Isolation.Profile
			return here == sandbox.Full || string(here) == profile
		}
		if names, ok := strings.CutPrefix(need, queue.NeedPlatform(nil)); ok {
			return slices.Contains(strings.Split(names, " or "), runtime.GOOS)
		}
		return true
	}
}

// aboutWorker returns what a worker says of this machine: the sandbox profile as soon
// as it is found.
func aboutWorker() func() queue.Member {
	host, err := os.Hostname()
	if err != nil {
		host = "" // not known: it only helps people
	}
	var profile atomic.Pointer[sandbox.Profile]
	go func() {
		p := sandbox.Probe(context.Background()).Isolation.Profile
		profile.Store(&p)
	}()
	return func() queue.Member {
		m := queue.Member{Host: host, Platform: runtime.GOOS}
		if p := profile.Load(); p != nil {
			m.Sandbox = string(*p)
		}
		return m
	}
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
		About:    aboutWorker(), Has: hasNeed(a),
		Drain: a.Settings.Serve.Drain, Log: cfg.Log,
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
	if e, err := a.OperatorView().Lookup(string(j.Call.Target)); len(j.Needs) > 0 && err == nil && !e.Available {
		a.Catalog.LookAgain() // the worker has what the job needs, perhaps since a moment ago
	}
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
