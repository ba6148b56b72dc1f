package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"ken/capability"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// questionRoom is how many questions of one call may be open.
	questionRoom = 16

	// visited is the State of an inquiry that sends a person to a page and
	// leaves nothing waiting.
	visited = "visited"
)

// A question is a request of the server that waits for its answer.
type question struct {
	text  json.RawMessage // {"method": …, "params": …}
	reply chan json.RawMessage
}

// ask answers a request of the server: by asking the caller of the call it
// belongs to, and outside of calls from what is configured.
func (l *Link) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	text, err := questionText(method, params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the parameters are not JSON"}
	}
	if d, no := l.denied(method, params); no {
		return nil, d.wire()
	}
	answer, asked := l.pending.ask(ctx, text)
	if !asked && method == "roots/list" {
		return rootsResult(l.cfg.Roots), nil // it decides nothing for anybody
	}
	if !json.Valid(answer) {
		return unanswered(method)
	}
	return answer, nil
}

func questionText(method string, params json.RawMessage) (json.RawMessage, error) {
	if !present(params) {
		params = emptyResult // some clients cannot read a request without any
	}
	return json.Marshal(struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}{method, params})
}

// unanswered is what a server hears when no one can be asked.
func unanswered(method string) (json.RawMessage, error) {
	if method == "elicitation/create" {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return nil, &jsonrpc.Error{Code: -1, Message: "no client can answer " + method}
}

// rootsResult is the answer to roots/list.
func rootsResult(dirs []string) json.RawMessage {
	type root struct {
		URI  string `json:"uri"`
		Name string `json:"name,omitempty"`
	}
	roots := make([]root, 0, len(dirs))
	for _, dir := range dirs {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		roots = append(roots, root{URI: u.String(), Name: filepath.Base(dir)})
	}
	raw, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		return json.RawMessage(`{"roots":[]}`) // unreachable: strings only
	}
	return raw
}

// binding identifies what a call is about, so that an answer resumes no other.
func binding(call *capability.Call, r request) (string, error) {
	digest, err := capability.Call{Target: call.Target, Action: r.op + " " + r.name, Arguments: call.Arguments,
		Principal: call.Principal, Session: call.Session}.Digest()
	if err != nil {
		return "", fmt.Errorf("arguments: %w", err)
	}
	return digest, nil
}

// declined is the error of a call that is made again after its person was sent
// to a page and did not agree.
func declined(call *capability.Call, r request) error {
	for _, raw := range call.Answers {
		var answer struct{ Action string }
		if json.Unmarshal(raw, &answer) != nil || answer.Action != "accept" {
			return &capability.Error{Kind: capability.Denied, Op: r.op, Target: r.name,
				Err: errors.New("the user did not agree to open the server's page")}
		}
	}
	return nil
}
