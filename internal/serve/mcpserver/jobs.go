package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/serve/refusal"
)

// laterKey is the key in _meta of tools/call that queues the call: true, or an
// object with the fields of [Later]. A client sets it; no model does.
const laterKey = "ken/later"

// jobPrefix begins the id of a task that is a job. Such a task lasts: it is found by
// any process with the same store.
const jobPrefix = "job-"

// Jobs queues calls and says what came of them.
type Jobs interface {
	// Add queues a call. What the rules say of it is asked when it starts.
	Add(ctx context.Context, call capability.Call, l Later) (Job, error)
	// Get returns a job that the principal added over MCP.
	Get(ctx context.Context, who capability.Principal, id string) (Job, error)
	// Cancel ends one.
	Cancel(ctx context.Context, who capability.Principal, id string) error
}

// Later says when a queued call runs.
type Later struct {
	At       string `json:"at,omitempty"`       // not before: 22:30, 2h or a date; empty: as soon as there is room
	Priority int    `json:"priority,omitempty"` // -100 to 100; the higher first
	Retries  int    `json:"retries,omitempty"`  // further attempts, if repeating is safe
}

// A Job is a queued call as a client sees it. One of the last three says what came
// of it once it is over.
type Job struct {
	ID      string
	Message string // where it stands
	Added   time.Time
	Changed time.Time
	Life    time.Duration // since it was added; 0: until it is over

	Result    *capability.Result
	Failure   string // why there is no result
	Cancelled bool
}

// laterOf returns when a call is to run, and whether it is to run later at all.
func laterOf(p *mcp.CallToolParamsRaw) (l Later, ok bool, err error) {
	v, given := p.GetMeta()[laterKey]
	if !given || v == false || v == nil {
		return l, false, nil
	}
	if v == true {
		return l, true, nil
	}
	raw, err := json.Marshal(v)
	if err == nil {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.DisallowUnknownFields()
		err = dec.Decode(&l)
	}
	if err != nil {
		return l, false, fault(jsonrpc.CodeInvalidParams, laterKey+" in _meta is true, or an object with at, priority and retries", nil)
	}
	return l, true, nil
}

// queue adds a call that runs later. A client that knows tasks gets one, any other
// a text with the id of the job.
func (ep *endpoint) queue(ctx context.Context, x *exchange, p *mcp.CallToolParamsRaw, l Later) (*answer, error) {
	if ep.s.cfg.Jobs == nil {
		return nil, fault(jsonrpc.CodeInvalidParams, "calls cannot run later here: this server has no queue", nil)
	}
	call, err := envelope.Unwrap(x.call)
	if err != nil {
		return ep.refused(ctx, x, p, err)
	}
	call.Principal = ep.who
	call.Key, call.State, call.Answers, call.Live, call.Meta, call.Structured = "", "", nil, nil, nil, false
	j, err := ep.s.cfg.Jobs.Add(ctx, call, l)
	if err != nil {
		return ep.refused(ctx, x, p, err)
	}
	if declaresTasks(p) {
		return j.shown("task")
	}
	return said(x.modern, fmt.Sprintf("Job %s is queued: %s. ken jobs show %s says what came of it.", j.ID, j.Message, j.ID), false), nil
}

// shown writes the job as a task of the protocol; kind is the type of the result.
func (j *Job) shown(kind string) (*answer, error) {
	m := map[string]any{
		"resultType": kind, "taskId": jobPrefix + j.ID, "status": taskWorking, "pollIntervalMs": pollMillis, "ttlMs": nil,
		"createdAt": j.Added.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": j.Changed.UTC().Format(time.RFC3339Nano),
	}
	if j.Life > 0 {
		m["ttlMs"] = j.Life.Milliseconds()
	}
	if j.Message != "" {
		m["statusMessage"] = j.Message
	}
	switch {
	case j.Cancelled:
		m["status"] = taskCancelled
	case j.Failure != "":
		m["status"], m["statusMessage"] = taskFailed, j.Failure
		if kind != "task" {
			m["error"] = json.RawMessage(refusal.Object(fault(jsonrpc.CodeInternalError, j.Failure, nil)))
		}
	case j.Result != nil:
		m["status"] = taskCompleted
		if kind != "task" {
			body, err := toolResult(true, *j.Result).MarshalJSON()
			if err != nil {
				return nil, err
			}
			m["result"] = json.RawMessage(body)
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &answer{body: body}, nil
}

// answerJob answers a request about a task that is a job.
func (ep *endpoint) answerJob(ctx context.Context, method, id string) (*answer, error) {
	none := fault(jsonrpc.CodeInvalidParams, "there is no task of this id; ended jobs are removed after jobs.keep", nil)
	if ep.s.cfg.Jobs == nil {
		return nil, none
	}
	j, err := ep.s.cfg.Jobs.Get(ctx, ep.who, id)
	switch {
	case capability.KindOf(err) == capability.NotFound:
		return nil, none
	case err != nil:
		return nil, err
	case method == "tasks/get":
		return j.shown("complete")
	case method == "tasks/cancel":
		err = ep.s.cfg.Jobs.Cancel(ctx, ep.who, id)
	}
	if capability.KindOf(err) == capability.Conflict { // it ended already, and stays as it is
		err = nil
	}
	return &answer{body: []byte(`{"resultType":"complete"}`)}, err
}
