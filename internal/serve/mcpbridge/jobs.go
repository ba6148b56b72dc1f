package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/run/queue"
	"ken/internal/serve/mcpserver"
)

// surfaceMCP is where the jobs of MCP clients were added.
const surfaceMCP = "mcp"

// Jobs lets MCP clients queue calls. It implements [mcpserver.Jobs].
type Jobs struct {
	Queue  func() (queue.Queue, error)
	Enter  func(context.Context, queue.Job) (queue.Job, error) // checks a job and adds it
	Record func(context.Context, audit.Event, queue.Job, capability.Principal) error
	Redact func(string) string
	Keep   func() time.Duration // how long jobs are kept after their end
}

var _ mcpserver.Jobs = Jobs{}

// Add implements [mcpserver.Jobs].
func (b Jobs) Add(ctx context.Context, call capability.Call, l mcpserver.Later) (mcpserver.Job, error) {
	j := queue.Job{Call: call, Surface: surfaceMCP, Priority: l.Priority, Retries: l.Retries}
	if err := j.When(l.At, "", "", time.Now()); err != nil {
		return mcpserver.Job{}, err
	}
	j, err := b.Enter(ctx, j)
	if err != nil {
		return mcpserver.Job{}, err
	}
	q, err := b.Queue()
	if err != nil {
		return mcpserver.Job{}, err
	}
	return b.told(ctx, q, j)
}

// own returns a job that a principal added over MCP. That of another is told as one
// that is not there.
func (b Jobs) own(ctx context.Context, who capability.Principal, id string) (queue.Queue, queue.Job, error) {
	q, err := b.Queue()
	if err != nil {
		return nil, queue.Job{}, err
	}
	j, err := q.Get(ctx, id)
	if p := j.Call.Principal; err == nil && (p.ID != who.ID || p.Tenant != who.Tenant || p.Agent != who.Agent || j.Surface != surfaceMCP) {
		err = &capability.Error{Kind: capability.NotFound, Op: "find job", Target: fmt.Sprintf("%.64q", id), Err: errors.New("job not found")}
	}
	return q, j, err
}

// Get implements [mcpserver.Jobs].
func (b Jobs) Get(ctx context.Context, who capability.Principal, id string) (mcpserver.Job, error) {
	q, j, err := b.own(ctx, who, id)
	if err != nil {
		return mcpserver.Job{}, err
	}
	return b.told(ctx, q, j)
}

// Cancel implements [mcpserver.Jobs].
func (b Jobs) Cancel(ctx context.Context, who capability.Principal, id string) error {
	q, j, err := b.own(ctx, who, id)
	if err != nil {
		return err
	}
	if j, err = q.Cancel(ctx, j.ID, who.ID); err != nil {
		return err
	}
	return b.Record(ctx, audit.JobCancelled, j, who)
}

// told returns a job as a client sees it.
func (b Jobs) told(ctx context.Context, q queue.Queue, j queue.Job) (mcpserver.Job, error) {
	out := mcpserver.Job{ID: j.ID, Added: j.Added, Changed: latest(j.Added, j.Started, j.Ended), Message: "it is " + string(j.State)}
	if j.State.Final() && !j.Ended.IsZero() {
		out.Life = j.Ended.Sub(j.Added) + b.Keep()
	}
	switch j.State {
	case queue.Scheduled:
		out.Message = "it runs at " + j.At.UTC().Format(time.RFC3339)
	case queue.Queued:
		out.Message = "it waits for a worker"
		if members, err := q.Members(ctx); err == nil && len(members) == 0 {
			out.Message = "no worker is running, so it waits; ken serve or ken worker runs it"
		}
	case queue.Waiting:
		out.Message = "It waits for approval. Ask the user to run: ken approve grant " + j.Ticket + ". Do not run it yourself."
	case queue.Running:
		if p, ok, err := q.Progress(ctx, j.ID); err == nil && ok && p.Message != "" {
			out.Message = b.Redact(p.Message)
		}
	case queue.Cancelled:
		out.Cancelled, out.Message = true, j.Why
	case queue.Unknown:
		out.Failure = "it may have had its effect: " + j.Why
	case queue.Done, queue.Failed:
		res, ok, err := q.Result(ctx, j.ID)
		if err != nil {
			return out, err
		}
		if out.Message = ""; ok {
			out.Result = &res
			break
		}
		if out.Failure = j.Why; j.State == queue.Done {
			out.Failure = "its result is not kept any more"
		}
	}
	return out, nil
}

func latest(times ...time.Time) (out time.Time) {
	for _, t := range times {
		if t.After(out) {
			out = t
		}
	}
	return out
}
