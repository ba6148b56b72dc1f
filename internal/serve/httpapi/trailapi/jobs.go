package trailapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/run/queue"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// A jobRequest is a call that is to run later: an invocation, and when.
type jobRequest struct {
	invocation
	At       time.Time `json:"at,omitzero"`        // not before
	Schedule string    `json:"schedule,omitempty"` // "every 90m" or "cron 0 3 * * 1-5"
	Priority int       `json:"priority,omitempty"` // -100 to 100; the higher first
	Retries  int       `json:"retries,omitempty"`  // further attempts after a failure, if repeating is safe
}

// A job is a call that runs later, as it is told.
type job struct {
	ID        string          `json:"id"`
	URL       string          `json:"url"`
	Events    string          `json:"events"` // the stream of its changes
	State     string          `json:"state"`
	Why       string          `json:"why,omitempty"`
	Kind      string          `json:"kind,omitempty"` // of the error that it failed with
	Target    capability.ID   `json:"target"`
	Action    string          `json:"action,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Session   string          `json:"session"`
	Mode      string          `json:"mode,omitempty"`
	Priority  int             `json:"priority"`
	At        time.Time       `json:"at,omitzero"`
	Schedule  string          `json:"schedule,omitempty"`
	Parent    string          `json:"parent,omitempty"` // the schedule that added it
	Attempt   int             `json:"attempt"`
	Retries   int             `json:"retries,omitempty"`
	Added     time.Time       `json:"added"`
	Started   time.Time       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
	Ticket    string          `json:"ticket,omitempty"` // of the approval that it waits for
	Effect    string          `json:"effect,omitempty"` // id in the audit log, where the outcome is unknown
	Runs      int             `json:"runs,omitempty"`
	Skipped   int             `json:"skipped,omitempty"`
	Last      string          `json:"last,omitempty"`

	Progress *jobProgress       `json:"progress,omitempty"`
	Result   *capability.Result `json:"result,omitempty"`
	Cut      int                `json:"cut,omitempty"` // bytes of the result that were left out here
}

type jobProgress struct {
	Done    float64   `json:"done"`
	Total   float64   `json:"total,omitempty"`
	Message string    `json:"message,omitempty"`
	Output  string    `json:"output,omitempty"` // the end of it
	At      time.Time `json:"at"`
}

type jobs struct {
	Jobs     []job    `json:"jobs"` // the newest first
	Cut      int      `json:"cut"`  // how many more there are
	Problems []string `json:"problems,omitempty"`
}

type retried struct {
	// Again runs a job whose outcome is unknown although it may have had its
	// effect. A person decides that.
	Again bool `json:"again,omitempty"`
}

func (a *api) jobRoutes() []wire.Route {
	const group = "jobs"
	var states []string
	for _, s := range queue.States() {
		states = append(states, string(s))
	}
	return []wire.Route{
		{
			Method: http.MethodPost, Path: "/api/v1/jobs", Name: "addJob", Group: group, Summary: "Add a call that ken serve or a ken worker runs, now, at a time or on a schedule; answers 202",
			Body: jobRequest{}, Answer: job{}, Serve: a.addJob,
		}, {
			Method: http.MethodGet, Path: "/api/v1/jobs", Name: "listJobs", Group: group, Summary: "Your jobs, newest first",
			Query: []wire.Param{
				{Name: "state", About: "only this state", Words: states}, {Name: "parent", About: "only the runs of this schedule"},
				{Name: "limit", About: "maximum number, up to 500; default: 100", Type: wire.Whole},
			},
			Answer: jobs{}, Serve: a.listJobs,
		}, {
			Method: http.MethodGet, Path: "/api/v1/jobs/{id}", Name: "showJob", Group: group, Summary: "One job with its progress and result",
			Answer: job{}, Serve: a.showJob,
		}, {
			Method: http.MethodGet, Path: "/api/v1/jobs/{id}/events", Name: "followJob", Group: group, Summary: "Stream a job with its progress each time it changes, until it has ended; Last-Event-ID resumes",
			Query:  []wire.Param{{Name: "after", About: "the id of the last event that the client has"}},
			Stream: a.followJob,
		}, {
			Method: http.MethodPost, Path: "/api/v1/jobs/{id}/cancel", Name: "cancelJob", Group: group, Summary: "Cancel a job or a schedule; a running call is stopped",
			Answer: job{}, Serve: a.cancelJob,
		}, {
			Method: http.MethodPost, Path: "/api/v1/jobs/{id}/retry", Name: "retryJob", Group: group, Summary: "Run a job again that failed, was cancelled or is unknown",
			Body: retried{}, Answer: job{}, Serve: a.retryJob,
		},
	}
}

func told(j queue.Job) job {
	return job{
		ID: j.ID, URL: "/api/v1/jobs/" + j.ID, Events: "/api/v1/jobs/" + j.ID + "/events", State: string(j.State), Why: j.Why, Kind: j.Kind,
		Target: j.Call.Target, Action: j.Call.Action, Arguments: j.Call.Arguments, Session: j.Call.Session, Mode: j.Call.Mode,
		Priority: j.Priority, At: j.At, Schedule: j.Schedule, Parent: j.Parent, Attempt: j.Attempt, Retries: j.Retries,
		Added: j.Added, Started: j.Started, Ended: j.Ended, Ticket: j.Ticket, Effect: j.Effect, Runs: j.Runs, Skipped: j.Skipped, Last: j.Last,
	}
}

func (a *api) addJob(r *wire.Request) (any, error) {
	var in jobRequest
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Key != "" || len(in.Answers) > 0 || in.State != "" {
		return nil, wire.Bad("key, answers and state are for calls that are made at once; a job has its own key, and waits for approval by itself")
	}
	call, err := a.callOf(r, &in.invocation)
	if err != nil {
		return nil, err
	}
	call.Key = ""
	j, err := a.AddJob(r.Context(), queue.Job{
		Call: call, Surface: string(policy.SurfaceAPI), At: in.At, Schedule: in.Schedule, Priority: in.Priority, Retries: in.Retries,
	})
	if err != nil {
		return nil, err
	}
	out := told(j)
	return wire.Answered{Status: http.StatusAccepted, Header: http.Header{"Location": {out.URL}}, Value: out}, nil
}

// owns reports whether a job is the caller's: the same principal's, and for an
// agent one of its sessions.
func owns(who auth.Identity, j *queue.Job) bool {
	p := j.Call.Principal
	return p.ID == who.Principal.ID && p.Tenant == who.Principal.Tenant && (who.Decides || strings.HasPrefix(j.Call.Session, sessionsOf(who)))
}

// ownJob returns a job of the caller. That of another is told as one that is not
// there.
func (a *api) ownJob(r *wire.Request) (queue.Queue, queue.Job, error) {
	q, err := a.Jobs()
	if err != nil {
		return nil, queue.Job{}, err
	}
	id := r.PathValue("id")
	j, err := q.Get(r.Context(), id)
	if err == nil && !owns(r.Who, &j) {
		err = &capability.Error{Kind: capability.NotFound, Op: "find job", Target: fmt.Sprintf("%.64q", id), Err: errors.New("no such job"), Fix: "GET /api/v1/jobs lists yours"}
	}
	return q, j, err
}

func (a *api) listJobs(r *wire.Request) (any, error) {
	q, err := a.Jobs()
	if err != nil {
		return nil, err
	}
	who := r.Who.Principal
	f := queue.Filter{Principal: who.ID, Tenant: who.Tenant, Parent: r.Text("parent")}
	if state := r.Text("state"); state != "" {
		f.States = append(f.States, queue.State(state))
	}
	list, err := q.List(r.Context(), f)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out := jobs{Jobs: []job{}, Problems: r.Partly(err)}
	for _, j := range slices.Backward(list) {
		switch {
		case !owns(r.Who, &j):
		case len(out.Jobs) == listed(r):
			out.Cut++
		default:
			out.Jobs = append(out.Jobs, told(j))
		}
	}
	return out, nil
}

func (a *api) showJob(r *wire.Request) (any, error) {
	q, j, err := a.ownJob(r)
	if err != nil {
		return nil, err
	}
	return a.whole(r, q, j)
}

// whole returns a job with its progress and result.
func (a *api) whole(r *wire.Request, q queue.Queue, j queue.Job) (job, error) {
	out := told(j)
	if p, ok, err := q.Progress(r.Context(), j.ID); err == nil && ok {
		out.Progress = &jobProgress{p.Done, p.Total, p.Message, p.Output, p.At}
		if a.Redact != nil {
			out.Progress.Output = a.Redact(p.Output)
		}
	}
	res, ok, err := q.Result(r.Context(), j.ID)
	if err != nil {
		return out, err
	}
	if ok {
		res, out.Cut = fit(res)
		out.Result = &res
	}
	return out, nil
}

func (a *api) cancelJob(r *wire.Request) (any, error) {
	q, j, err := a.ownJob(r)
	if err != nil {
		return nil, err
	}
	if j, err = q.Cancel(r.Context(), j.ID, r.Who.Principal.ID); err != nil {
		return nil, err
	}
	return told(j), a.RecordJob(r.Context(), audit.JobCancelled, j, r.Who.Principal)
}

func (a *api) retryJob(r *wire.Request) (any, error) {
	var in retried
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Again && !r.Who.Decides {
		return nil, wire.ForPerson("whether a call runs again that may have had its effect is for a person to decide", "run ken jobs retry --again")
	}
	q, j, err := a.ownJob(r)
	if err != nil {
		return nil, err
	}
	if j, err = q.Retry(r.Context(), j.ID, in.Again); err != nil {
		return nil, err
	}
	return told(j), a.RecordJob(r.Context(), audit.JobRetried, j, r.Who.Principal)
}
