package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"ken/internal/testkit/wiretest"
	"ken/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = wiretest.Key

// serve returns a model that speaks to a handler.
func serve(t *testing.T, header http.Header, h func(w http.ResponseWriter, r *http.Request, body string)) *Model {
	t.Helper()
	cfg := wiretest.Serve(t, h)
	cfg.BaseURL, cfg.Header, cfg.Retry.Tries = cfg.BaseURL+"/", header, 2
	return New(cfg)
}

func hello(blocks ...llm.Block) llm.Request {
	return llm.Request{Messages: []llm.Message{user(append(blocks, text("hi"))...)}}
}

// say answers with one text.
func say(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	io.WriteString(w, wireText(begin, start(0, `{"type":"text","text":""}`), delta(0, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s)), stop(0), stopped("end_turn"), end))
}

// TestHeaders: what a request says of itself besides its body.
func TestHeaders(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request, _ string) {
		say(w, fmt.Sprint(r.URL.Path, " ", r.Header.Get("Anthropic-Version"), " ", r.Header.Get("X-Api-Key") == key, " ", r.Header.Get("Anthropic-Beta")))
	}
	own := http.Header{"Anthropic-Beta": {"context-1m-2025-08-07"}}
	found := llm.Request{Tools: []llm.Tool{toolA}, Messages: []llm.Message{user(text("x")), assistant(call("1", "a", "{}")), user(result("1", give(toolB)))}}
	tests := []struct {
		name string
		own  http.Header
		req  llm.Request
		beta string
	}{
		{"plain", nil, hello(), ""},
		{"tools in a message", nil, hello(give(toolA)), inlineBeta},
		{"tools in a result", nil, found, ""},
		{"a beta of one's own", own, hello(), "context-1m-2025-08-07"},
		{"both", own, hello(give(toolA)), "context-1m-2025-08-07," + inlineBeta},
	}
	for _, tt := range tests {
		got, err := wiretest.Ask(t.Context(), serve(t, tt.own, echo), tt.req)
		if want := "/v1/messages 2023-06-01 true " + tt.beta; got != want || err != nil {
			t.Errorf("%s: the server saw %q, %v; want %q", tt.name, got, err, want)
		}
	}
	if got := own.Get("Anthropic-Beta"); got != "context-1m-2025-08-07" {
		t.Errorf("the caller's header became %q", got)
	}
}

// TestErrors: each says which model, holds no key, and is made of one kind.
func TestErrors(t *testing.T) {
	echo := `{"type":"error","error":{"type":"%s","message":"you sent ` + key + `"}}`
	stream := http.Header{"Content-Type": {"text/event-stream"}}
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   llm.Kind
		says   string
	}{
		{"auth", 401, nil, fmt.Sprintf(echo, "authentication_error"), llm.Auth, "check the key"},
		{"in the stream", 200, stream, wireText(begin, fmt.Sprintf(echo, "invalid_request_error")), llm.Invalid, "you sent [key]"},
		{"an error as an answer", 200, http.Header{"Content-Type": {"application/json"}}, fmt.Sprintf(echo, "invalid_request_error"), llm.Invalid, "[key]"},
		{"a page", 200, http.Header{"Content-Type": {"text/html"}}, "<html>Log in to the network</html>", llm.Malformed, "text/html"},
		{"a page of an error", 502, http.Header{"Content-Type": {"text/html"}}, "<html>bad gateway</html>", llm.Overloaded, "bad gateway"},
		{"not JSON", 200, stream, "data: hello\n\n", llm.Malformed, "speaks this wire"},
		{"nothing", 200, stream, "", llm.Unreachable, "after 2 tries"},
	}
	for _, tt := range tests {
		m := serve(t, nil, func(w http.ResponseWriter, r *http.Request, _ string) {
			for k, v := range tt.header {
				w.Header()[k] = v
			}
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		req := hello()
		req.Model = "claude-next"
		_, err := wiretest.Ask(t.Context(), m, req)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != tt.want || !strings.Contains(err.Error(), tt.says) || e.Model != "claude-next" || e.Provider != "anthropic" {
			t.Errorf("%s: %v, want %v of anthropic claude-next that says %q", tt.name, err, tt.want, tt.says)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, e), key) {
			t.Errorf("%s: %v holds the key", tt.name, err)
		}
	}
}

func TestNoKeyNoRequest(t *testing.T) {
	asked := false
	cfg := wiretest.Serve(t, func(http.ResponseWriter, *http.Request, string) { asked = true })
	cfg.Key = func(context.Context) (string, error) { return "", errors.New("the vault is locked") }
	if _, err := wiretest.Ask(t.Context(), New(cfg), hello()); llm.KindOf(err) != llm.Auth || asked {
		t.Errorf("Generate = %v, asked: %v; want auth without a request", err, asked)
	}
}
