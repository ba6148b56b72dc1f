//lint:file-ignore SA1019 clients of before 2026-07-28 have what that version gave up

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/untrusted"
)

// A request is what a back end asks, in the words of the protocol.
type request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// inquire passes on what a back end asks: to a client of 2026-07-28 in the
// result, to an older one at once.
func (x *exchange) inquire(ctx context.Context, q *capability.Inquiry, err error) (again bool, pause *answer, failed error) {
	caps := x.caps()
	c := x.claim()
	c.State, c.Given = q.State, x.given
	requests, settled := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(q.Requests)) {
		var r request
		if uerr := json.Unmarshal(q.Requests[name], &r); uerr != nil {
			return false, nil, err
		}
		switch {
		case canAnswer(caps, r):
			requests[name] = x.labelled(r, q.Requests[name])
		case r.Method == "roots/list":
			settled[name] = json.RawMessage(`{"roots":[]}`) // a client without roots has none
		case r.Method == "elicitation/create":
			c.Declined = append(c.Declined, name)
			missing = append(missing, r.Method)
		default:
			missing = append(missing, r.Method)
		}
	}
	if len(requests) == 0 && (len(missing) > 0 || len(settled) == 0) {
		return x.cannotAnswer(missing, err)
	}
	if x.modern && len(requests) > 0 {
		c.Kept = settled
		pause, failed = x.pause(c, requests)
		return false, pause, failed
	}
	answers := settled
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		raw, aerr := x.put(ctx, requests[name])
		if aerr != nil {
			if ctx.Err() != nil {
				return false, nil, ctx.Err()
			}
			x.waiting = "\nThe client did not answer it: " + untrusted.Line(aerr.Error(), 200)
			return false, nil, err
		}
		answers[name] = raw
	}
	for _, name := range c.Declined {
		answers[name] = json.RawMessage(`{"action":"cancel"}`)
	}
	maps.Copy(answers, x.given)
	x.call.Answers, x.call.State = answers, q.State
	return true, nil, nil
}

// labelled returns a question to a person with the name of the server that asks:
// to the client every question comes from Ken, whose own are about consent.
func (x *exchange) labelled(r request, raw json.RawMessage) json.RawMessage {
	rest, ok := strings.CutPrefix(string(realTarget(x.call)), "mcp:")
	if !ok || r.Method != "elicitation/create" {
		return raw
	}
	server, _, _ := strings.Cut(rest, "/")
	var p map[string]json.RawMessage
	var message string
	if json.Unmarshal(r.Params, &p) != nil || json.Unmarshal(p["message"], &message) != nil {
		return raw
	}
	text, err := json.Marshal("The MCP server " + untrusted.Line(server, 80) + " asks: " + message)
	if err != nil {
		return raw
	}
	p["message"] = text
	params, err := json.Marshal(p)
	if err != nil {
		return raw
	}
	whole, err := json.Marshal(request{r.Method, params})
	if err != nil {
		return raw
	}
	return whole
}

// cannotAnswer tells that the client lacks what a back end needs of it.
func (x *exchange) cannotAnswer(missing []string, err error) (bool, *answer, error) {
	if !x.modern {
		x.waiting = fmt.Sprintf("\nThis client cannot answer %v.", missing)
		return false, nil, err
	}
	need := map[string]any{}
	for _, m := range missing {
		switch m {
		case "elicitation/create":
			need["elicitation"] = struct{}{}
		case "sampling/createMessage":
			need["sampling"] = struct{}{}
		}
	}
	return false, nil, fault(mcp.CodeMissingRequiredClientCapabilities,
		fmt.Sprintf("it asks %v, which this client does not offer", missing), map[string]any{"requiredCapabilities": need})
}

// canAnswer reports whether a client takes a request.
func canAnswer(caps *mcp.ClientCapabilities, r request) bool {
	if caps == nil {
		return false
	}
	switch r.Method {
	case "elicitation/create":
		if caps.Elicitation == nil {
			return false
		}
		var p struct {
			Mode string `json:"mode"`
		}
		_ = json.Unmarshal(r.Params, &p) // no mode is a form
		if p.Mode == "url" {
			return caps.Elicitation.URL != nil
		}
		return caps.Elicitation.Form != nil || caps.Elicitation.URL == nil
	case "sampling/createMessage":
		return caps.Sampling != nil
	case "roots/list":
		return caps.RootsV2 != nil
	}
	return false
}

// put makes a request to a client that answers at once.
func (x *exchange) put(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	var r request
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	var reply any
	var err error
	switch r.Method {
	case "elicitation/create":
		reply, err = put(ctx, r.Params, x.ss.Elicit)
	case "sampling/createMessage":
		reply, err = put(ctx, r.Params, x.ss.CreateMessageWithTools)
	case "roots/list":
		reply, err = put(ctx, r.Params, x.ss.ListRoots)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

func put[P, R any](ctx context.Context, raw json.RawMessage, f func(context.Context, *P) (R, error)) (any, error) {
	p := new(P)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, p); err != nil {
			return nil, err
		}
	}
	return f(ctx, p)
}
