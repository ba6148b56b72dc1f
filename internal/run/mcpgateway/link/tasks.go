package link

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
)

// A server may answer a call with a task, which is asked about until it has
// ended (SEP-2663). To callers it is a call that takes long: it has its time,
// asks by an Inquiry, and is cancelled with the call.

// tasksExtension is the name of the extension of the protocol.
const tasksExtension = "io.modelcontextprotocol/tasks"

// taskMark begins a state by which a call goes on with a task that has asked.
const taskMark = "ken-task:"

// A heldTask is what such a state says.
type heldTask struct {
	ID       string   `json:"id"`
	Answered []string `json:"answered,omitempty"` // keys of questions
}

const (
	usualPoll = time.Second
	leastPoll = 50 * time.Millisecond
	mostPoll  = 30 * time.Second
)

type taskParams struct {
	mcp.ParamsBase
	ID        string               `json:"taskId"`
	Responses mcp.InputResponseMap `json:"inputResponses,omitempty"`
}

// A taskResult is a result as it came.
type taskResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON keeps the text.
func (r *taskResult) UnmarshalJSON(data []byte) error {
	r.raw = slices.Clone(data)
	return nil
}

// knowTasks lets the SDK send requests about tasks.
func knowTasks(c *mcp.Client) error {
	return errors.Join(
		mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, "tasks/get"),
		mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, "tasks/update"),
		mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, "tasks/cancel"),
	)
}

// wireTask is a task as a server shows it.
type wireTask struct {
	ResultType    string                     `json:"resultType"`
	ID            string                     `json:"taskId"`
	Status        string                     `json:"status"`
	Message       string                     `json:"statusMessage"`
	Poll          float64                    `json:"pollIntervalMs"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
	Result        json.RawMessage            `json:"result"`
	Error         *jsonrpc.Error             `json:"error"`
}

var taskMember = []byte(`"task"`)

// asTask returns the task that a result names, or nil if it names none.
func asTask(raw *json.RawMessage) *wireTask {
	if raw == nil || !bytes.Contains(*raw, taskMember) {
		return nil
	}
	var t wireTask
	if json.Unmarshal(*raw, &t) != nil || t.ResultType != "task" {
		return nil
	}
	return &t
}

// follow asks about the task that answered a call, until it has ended or asks
// something, and keeps what came of it. A task that goes on when the time of the
// call is over is cancelled.
func (l *Link) follow(p *pendingCall, t *wireTask, answered []string) error {
	if t.ID == "" {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server answered with a task that has no id"}
	}
	id := t.ID
	for {
		select {
		case <-p.ctx.Done():
			l.abandon(p.ctx, id)
			return p.ctx.Err()
		case <-time.After(t.pause()):
		}
		raw, err := l.aboutTask(p.ctx, "tasks/get", &taskParams{ID: id})
		if err != nil {
			if p.ctx.Err() != nil {
				l.abandon(p.ctx, id)
			}
			return err
		}
		t = &wireTask{}
		if err := json.Unmarshal(raw, t); err != nil {
			return fmt.Errorf("task of the server cannot be read: %w", err)
		}
		switch t.Status {
		case "working":
		case "completed":
			if len(t.Result) == 0 {
				t.Result = emptyResult
			}
			p.raw.Store(&t.Result)
			return nil
		case "input_required":
			for _, key := range answered {
				delete(t.InputRequests, key) // the server has not looked at the answer yet
			}
			if len(t.InputRequests) > 0 {
				return l.taskAsks(p, t, id, answered)
			}
		case "failed":
			if t.Error == nil {
				t.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the task of the server failed: " + t.Message}
			}
			return t.Error
		case "cancelled":
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server cancelled its task: " + t.Message}
		default:
			return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the task of the server has the status %q, which is none", t.Status)}
		}
	}
}

// pause returns how long to wait before the next question about a task.
func (t *wireTask) pause() time.Duration {
	if t.Poll <= 0 {
		return usualPoll
	}
	return min(max(time.Duration(t.Poll*float64(time.Millisecond)), leastPoll), mostPoll)
}

// taskAsks keeps what a task asks, as the result of a call that asks.
func (l *Link) taskAsks(p *pendingCall, t *wireTask, id string, answered []string) error {
	state, err := l.sealTask(p, heldTask{ID: id, Answered: answered})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(asking{ResultType: "input_required", InputRequests: t.InputRequests, RequestState: state})
	if err != nil {
		return err
	}
	text := json.RawMessage(raw)
	p.raw.Store(&text)
	return nil
}

// sealTask writes the state of a task that has asked. It passes through the caller,
// so it is bound to the call: the id of a task alone would let any call of the same
// server answer and read the task of any other.
func (l *Link) sealTask(p *pendingCall, held heldTask) (string, error) {
	text, err := json.Marshal(held)
	if err != nil {
		return "", err
	}
	sum, err := l.taskSum(p, text)
	return taskMark + hex.EncodeToString(sum) + "." + string(text), err
}

// openTask reads such a state.
func (l *Link) openTask(p *pendingCall, state string) (held heldTask, err error) {
	given, text, _ := strings.Cut(strings.TrimPrefix(state, taskMark), ".")
	sum, err := l.taskSum(p, []byte(text))
	if err != nil {
		return held, err
	}
	if !hmac.Equal([]byte(given), []byte(hex.EncodeToString(sum))) || json.Unmarshal([]byte(text), &held) != nil || held.ID == "" {
		return held, &capability.Error{
			Kind: capability.Conflict, Op: "call tool", Target: l.cfg.Name, Err: errors.New("the state is not one that was given for this call, or the connection to the server is a new one"),
			Fix: "make the call again without answers and state",
		}
	}
	return held, nil
}

func (l *Link) taskSum(p *pendingCall, text []byte) ([]byte, error) {
	about, err := p.bind()
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(l.key))
	fmt.Fprintf(mac, "%s\n%s", about, text)
	return mac.Sum(nil), nil
}

// resumeTask answers what a task has asked, and goes on with it. It reports false
// if the state is not that of a task.
func (l *Link) resumeTask(p *pendingCall, answers mcp.InputResponseMap, state string) (bool, error) {
	if !strings.HasPrefix(state, taskMark) {
		return false, nil
	}
	held, err := l.openTask(p, state)
	if err != nil {
		return true, err
	}
	if _, err := l.aboutTask(p.ctx, "tasks/update", &taskParams{ID: held.ID, Responses: answers}); err != nil {
		return true, err
	}
	for key := range answers {
		held.Answered = append(held.Answered, key)
	}
	return true, l.follow(p, &wireTask{ID: held.ID, Poll: 1}, held.Answered)
}

// abandon cancels a task that nobody waits for any more.
func (l *Link) abandon(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_, _ = l.aboutTask(ctx, "tasks/cancel", &taskParams{ID: id}) // it ends by itself, or with its server
}

// aboutTask makes a request about a task.
func (l *Link) aboutTask(ctx context.Context, method string, params *taskParams) (json.RawMessage, error) {
	res, err := mcp.CallCustomMethod[*taskParams, *taskResult](ctx, l.session, method, params)
	if err != nil {
		return nil, err
	}
	return res.raw, nil
}

// named sets the header that names the task of a request, by which servers with
// several instances find it.
func named(req *http.Request) *http.Request {
	if !strings.HasPrefix(req.Header.Get("Mcp-Method"), "tasks/") {
		return req
	}
	_, after, ok := strings.Cut(string(head(req)), `"taskId":`)
	var id string
	if !ok || json.NewDecoder(strings.NewReader(after)).Decode(&id) != nil {
		return req
	}
	req = req.Clone(req.Context())
	req.Header.Set("Mcp-Name", id)
	return req
}
