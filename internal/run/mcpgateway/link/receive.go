package link

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A changeFlag is set while a change of a list is on its way through the SDK:
// a thousand changes at once are one.
type changeFlag struct{ pending atomic.Bool }

// changeOf returns the number and name of the list that a notification is about.
func changeOf(method string) (int, string) {
	switch method {
	case "notifications/tools/list_changed":
		return 0, "tools"
	case "notifications/prompts/list_changed":
		return 1, "prompts"
	case "notifications/resources/list_changed":
		return 2, "resources"
	}
	return -1, ""
}

// notified handles a notification before the SDK sees it. It gives back one
// that the SDK must hear of too, at most three at a time: it forgets the lists
// it keeps.
func (l *Link) notified(m *jsonrpc.Request) *jsonrpc.Request {
	if i, _ := changeOf(m.Method); i >= 0 {
		if l.changed[i].pending.Swap(true) {
			return nil
		}
		return &jsonrpc.Request{Method: m.Method}
	}
	l.notice(m.Method, m.Params)
	return nil
}

// notice handles all other notifications; unknown ones are dropped.
func (l *Link) notice(method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		var p struct {
			Token    any     `json:"progressToken"`
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(params, &p) == nil {
			token, _ := p.Token.(string)
			l.pending.progress(token, report{done: p.Progress, total: p.Total, message: p.Message})
		}
	case "notifications/message":
		var p struct {
			Level  string          `json:"level"`
			Logger string          `json:"logger"`
			Data   json.RawMessage `json:"data"`
		}
		if json.Unmarshal(params, &p) == nil && p.Level != "" {
			if !l.pending.logged(report{level: p.Level, logger: p.Logger, data: p.Data}) {
				l.cfg.Log(p.Level, p.Logger, p.Data)
			}
		}
	case "notifications/resources/updated":
		var p struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(params, &p) == nil && p.URI != "" {
			l.cfg.Updated(p.URI)
		}
	}
}

// receive handles what comes to the SDK: changes of lists, and the questions of
// streamable HTTP.
func (l *Link) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if i, what := changeOf(method); i >= 0 {
			res, err := next(ctx, method, req)
			l.changed[i].pending.Store(false)
			l.cfg.Changed(what)
			return res, err
		}
		switch method {
		case "elicitation/create", "sampling/createMessage", "roots/list":
			params, err := json.Marshal(req.GetParams())
			if err != nil {
				return nil, err
			}
			raw, err := l.ask(ctx, method, params)
			if err != nil {
				return nil, err
			}
			return &rawResult{raw: raw}, nil
		}
		return next(ctx, method, req)
	}
}

// rawResult passes an answer on as it is.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON returns the answer as it is.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }
