// Package results carries out the tool read_result: it reads what an earlier
// call of the same session returned, in pieces.
package results

import (
	"context"
	"encoding/json"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/result"
)

// Tools returns the tool that this executor carries out.
func Tools() []executor.Tool {
	return []executor.Tool{{
		Capability: capability.Capability{
			ID: "tool:read_result", Kind: capability.KindTool, Name: "read_result", Category: "results",
			Description: "Read an earlier result of this session by its handle: its head or tail, some lines or characters, or what matches a search.",
			Tags:        []string{"result", "output", "handle", "search"},
			Run:         &capability.Recipe{Runner: "result.read"},
			Effects:     capability.Effects{ReadOnly: capability.Yes, Idempotent: capability.Yes, OpenWorld: capability.No, Destructive: capability.No},
		},
		Detail: capability.Detail{Schema: json.RawMessage(result.QuerySchema)},
	}}
}

// An Executor reads results. Whose they are is in the call: no caller reads those
// of another principal or session.
type Executor struct{ store *result.Store }

// New makes an Executor over a store, which stays the caller's.
func New(s *result.Store) *Executor { return &Executor{s} }

// Facts checks the query. Reading one's own results needs no permission.
func (e *Executor) Facts(_ context.Context, call capability.Call, _ *capability.Capability) (executor.Facts, error) {
	_, err := query(call)
	return executor.Facts{}, err
}

// Invoke answers a query with the text, and all that is known of it as JSON.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	q, err := query(call)
	if err != nil {
		return capability.Result{}, err
	}
	found, err := e.store.Read(ctx, result.ScopeOf(call), q)
	if err != nil {
		return capability.Result{}, err
	}
	text := found.Text
	found.Text = ""
	about, err := json.Marshal(found)
	if err != nil {
		return capability.Result{}, &capability.Error{Kind: capability.Internal, Op: "read", Target: string(call.Target), Err: err}
	}
	var parts []capability.Part
	if text != "" {
		parts = append(parts, capability.Part{Text: text})
	}
	return capability.Result{Parts: append(parts, capability.Part{JSON: about})}, nil
}

func query(call capability.Call) (result.Query, error) {
	raw := call.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	q, err := result.ParseQuery(raw)
	if err != nil {
		return q, executor.BadArguments(call, err, "")
	}
	return q, nil
}
