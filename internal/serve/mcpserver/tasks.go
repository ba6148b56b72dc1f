package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/refusal"
)

// tasksExtension is the name of the extension of the protocol by which a call may
// be answered with a task (SEP-2663).
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	// taskLife is how long a task may go on, and taskKept how long it is kept
	// after its end.
	taskLife = 24 * time.Hour
	taskKept = time.Hour

	// maxTasks is how many tasks a principal has at once; a further call is
	// answered as if there were no tasks.
	maxTasks = 64

	pollMillis = 1000
)

// The states of a task.
const (
	taskWorking   = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// tasks are the calls that clients ask about by an id. They are of this process:
// the records of calls, approvals and jobs are what lasts.
type tasks struct {
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	by     map[string]*task
}

// A task is a call that goes on after its request was answered.
type task struct {
	id     string
	owner  string // the key of its audience
	cancel context.CancelFunc
	parked chan struct{} // closed when the call waits for a person
	once   sync.Once
	begun  time.Time

	mu       sync.Mutex
	open     bool // the client has its id
	over     bool // the call has ended, or was cancelled
	changed  time.Time
	status   string
	message  string
	requests map[string]json.RawMessage // what is asked now
	replies  map[string]json.RawMessage // that came
	replied  chan struct{}              // closed when all of requests have replies
	result   *answer
	err      error
}

// declaresTasks reports whether a request says that its client knows tasks. Only
// requests of the protocol without sessions do.
func declaresTasks(p mcp.Params) bool { return declares(p, tasksExtension) }

// begin makes a task, or returns nil if there are too many.
func (s *tasks) begin(owner string, cancel context.CancelFunc) *task {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for id, t := range s.by {
		if t.expired(now) {
			delete(s.by, id)
			t.cancel()
		} else if t.owner == owner {
			n++
		}
	}
	if n >= maxTasks || s.closed {
		return nil
	}
	t := &task{id: rand.Text(), owner: owner, cancel: cancel, parked: make(chan struct{}), begun: now, changed: now, status: taskWorking}
	if s.by == nil {
		s.by = map[string]*task{}
	}
	s.by[t.id] = t
	return t
}

func (s *tasks) forget(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, t.id)
}

// find returns the task of an id that a client may ask about.
func (s *tasks) find(owner, id string) (*task, error) {
	s.mu.Lock()
	t := s.by[id]
	s.mu.Unlock()
	if t == nil || t.owner != owner || !t.isOpen() || t.expired(time.Now()) {
		return nil, fault(jsonrpc.CodeInvalidParams, "there is no task of this id; tasks end with Ken, and an hour after their call", nil)
	}
	return t, nil
}

// close ends all tasks, and waits for their calls.
func (s *tasks) close() {
	s.mu.Lock()
	s.closed = true
	for _, t := range s.by {
		t.cancel()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// Close ends the calls that go on as tasks. No others begin.
func (s *Server) Close() error {
	s.tasks.close()
	return nil
}

func (t *task) isOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

func (t *task) life() time.Duration {
	if t.over {
		return t.changed.Sub(t.begun) + taskKept
	}
	return taskLife
}

func (t *task) expired(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Sub(t.begun) > t.life()
}

// promote gives the client the id of the task, unless the call has ended.
func (t *task) promote() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = !t.over
	return t.open
}

// end keeps what came of the call. It reports whether that is for the client that
// still waits.
func (t *task) end(a *answer, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.over, t.changed, t.requests, t.message = true, time.Now(), nil, ""
	t.result, t.err, t.status = a, err, taskCompleted
	if err != nil {
		t.status, t.message = taskFailed, err.Error()
	}
	return !t.open
}

// wait says what the call waits for, and lets the client have a task at once.
func (t *task) wait(message string) {
	t.mu.Lock()
	t.message, t.changed = message, time.Now()
	t.mu.Unlock()
	t.once.Do(func() { close(t.parked) })
}

// ask shows requests to the client until it has answered all of them. It reports
// false if the client has no task yet: then the requests are its answer.
func (t *task) ask(ctx context.Context, round int, requests map[string]json.RawMessage) (map[string]json.RawMessage, bool, error) {
	// A key is not used for a second question of the same task.
	key := func(name string) string { return fmt.Sprintf("%s.%d", name, round) }
	t.mu.Lock()
	if !t.open {
		t.over = true
		t.mu.Unlock()
		return nil, false, nil
	}
	t.status, t.message, t.changed = taskAsks, "", time.Now()
	t.requests, t.replies, t.replied = map[string]json.RawMessage{}, map[string]json.RawMessage{}, make(chan struct{})
	for name, r := range requests {
		t.requests[key(name)] = r
	}
	replied := t.replied
	t.mu.Unlock()
	select {
	case <-replied:
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]json.RawMessage{}
	for name := range requests {
		out[name] = t.replies[key(name)]
	}
	return out, true, nil
}

// update takes answers of the client. Those that nobody waits for are ignored.
func (t *task) update(replies map[string]json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status != taskAsks {
		return
	}
	for key, reply := range replies {
		if t.requests[key] != nil {
			t.replies[key] = reply
			delete(t.requests, key)
		}
	}
	if t.changed = time.Now(); len(t.requests) == 0 {
		t.status, t.requests = taskWorking, nil
		close(t.replied)
	}
}

// stop ends the call. One that has ended stays as it is.
func (t *task) stop() {
	t.mu.Lock()
	if !t.over {
		t.over, t.changed, t.status, t.message, t.requests = true, time.Now(), taskCancelled, "", nil
	}
	t.mu.Unlock()
	t.cancel()
}

// shown writes the task as the protocol has it; kind is the type of the result.
func (t *task) shown(kind string) (*answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := map[string]any{
		"resultType": kind, "taskId": t.id, "status": t.status, "pollIntervalMs": pollMillis, "ttlMs": t.life().Milliseconds(),
		"createdAt": t.begun.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": t.changed.UTC().Format(time.RFC3339Nano),
	}
	if t.message != "" {
		m["statusMessage"] = t.message
	}
	switch {
	case kind == "task":
	case t.status == taskAsks:
		m["inputRequests"] = t.requests
	case t.status == taskFailed:
		m["error"] = json.RawMessage(refusal.Object(t.err))
	case t.status == taskCompleted:
		body, err := t.result.MarshalJSON()
		if err != nil {
			return nil, err
		}
		m["result"] = json.RawMessage(body)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return &answer{body: body}, nil
}

// callLong makes a call for a client that knows tasks. It is answered as any other
// if it ends soon or asks the client something. If it waits for a person elsewhere,
// or goes on for long, the answer is a task.
func (ep *endpoint) callLong(ctx context.Context, x *exchange, p *mcp.CallToolParamsRaw) (*answer, error) {
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskLife)
	t := ep.s.tasks.begin(ep.key, cancel)
	if t == nil {
		cancel()
		return ep.finish(ctx, x, p)
	}
	type outcome struct {
		answer *answer
		err    error
	}
	done := make(chan outcome, 1)
	if to, ok := x.call.Live.(*reporter); ok {
		x.call.Live = &requestNews{t, to}
	}
	ep.s.tasks.work.Go(func() {
		defer cancel()
		a, err := t.run(work, x, p)
		t.end(a, err)
		done <- outcome{a, err}
	})
	timer := time.NewTimer(ep.s.cfg.TaskAfter)
	defer timer.Stop()
	select {
	case o := <-done:
		ep.s.tasks.forget(t)
		return o.answer, o.err
	case <-ctx.Done():
		t.stop()
		ep.s.tasks.forget(t)
		return nil, ctx.Err()
	case <-t.parked:
	case <-timer.C:
	}
	if !t.promote() {
		o := <-done
		ep.s.tasks.forget(t)
		return o.answer, o.err
	}
	return t.shown("task")
}

// requestNews passes on how far a call is while its client waits. News belong to
// the request, and there are none of tasks.
type requestNews struct {
	task *task
	to   *reporter
}

func (n *requestNews) Write(p []byte) (int, error) { return len(p), nil }

// Progress implements [capability.Reporter].
func (n *requestNews) Progress(done, total float64, message string) {
	if !n.task.isOpen() {
		n.to.Progress(done, total, message)
	}
}

// Note implements [capability.Reporter].
func (n *requestNews) Note(level, logger string, data json.RawMessage) {
	if !n.task.isOpen() {
		n.to.Note(level, logger, data)
	}
}

// run makes the call, with all that is asked on the way.
func (t *task) run(ctx context.Context, x *exchange, p *mcp.CallToolParamsRaw) (*answer, error) {
	responses, state := p.InputResponses, p.RequestState
	for round := 1; round <= maxRounds; round++ {
		res, pause, err := x.run(ctx, responses, state)
		switch {
		case err != nil && x.open != nil && x.ep.s.cfg.Wait != nil:
			q := x.open
			x.open = nil
			t.wait(fmt.Sprintf("It waits for approval. Ask the user to run: %s. Do not run it yourself.", x.ep.s.cfg.ApproveHint(q.Ticket)))
			if x.ep.s.cfg.Wait(ctx, q.Ticket) != nil {
				return x.ep.refused(ctx, x, p, err)
			}
			t.wait("")
			x.give(q) // the call that names its ticket is answered by it, also with a no
			responses, state = nil, ""
			continue
		case err != nil:
			return x.ep.refused(ctx, x, p, err)
		case pause == nil:
			return x.answered(res), nil
		}
		var asked struct {
			Requests map[string]json.RawMessage `json:"inputRequests"`
			State    string                     `json:"requestState"`
		}
		if err := json.Unmarshal(pause.body, &asked); err != nil {
			return nil, err
		}
		replies, open, err := t.ask(ctx, round, asked.Requests)
		if err != nil || !open {
			return pause, err
		}
		raw, err := json.Marshal(replies)
		if err != nil {
			return nil, err
		}
		responses, state = nil, asked.State
		if err := json.Unmarshal(raw, &responses); err != nil {
			return nil, fault(jsonrpc.CodeInvalidParams, "an answer of the client cannot be read: "+err.Error(), nil)
		}
	}
	return said(x.modern, fmt.Sprintf("it was asked %d times, the limit; make the call again", maxRounds), true), nil
}

// taskParams are those of the requests about a task.
type taskParams struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// answerTasks answers the requests about tasks.
func (ep *endpoint) answerTasks() error {
	done := &answer{body: []byte(`{"resultType":"complete"}`)}
	methods := map[string]func(*task, *taskParams) (*answer, error){
		"tasks/get":    func(t *task, _ *taskParams) (*answer, error) { return t.shown("complete") },
		"tasks/update": func(t *task, p *taskParams) (*answer, error) { t.update(p.Responses); return done, nil },
		"tasks/cancel": func(t *task, _ *taskParams) (*answer, error) { t.stop(); return done, nil },
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		errs = append(errs, mcp.AddReceivingCustomMethod(ep.sdk, name, func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*answer, error) {
			if p == nil || !declaresTasks(p) {
				return nil, fault(mcp.CodeMissingRequiredClientCapabilities, "the request does not declare the extension "+tasksExtension,
					map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: struct{}{}}}})
			}
			if id, ok := strings.CutPrefix(p.ID, jobPrefix); ok {
				return ep.answerJob(ctx, name, id)
			}
			t, err := ep.s.tasks.find(ep.key, p.ID)
			if err != nil {
				return nil, err
			}
			a, err := methods[name](t, p)
			if err != nil {
				return nil, err
			}
			return &answer{body: a.body}, nil // the SDK adds to its _meta
		}))
	}
	return errors.Join(errs...)
}
