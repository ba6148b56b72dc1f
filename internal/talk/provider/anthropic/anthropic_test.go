package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/internal/talk/provider"
	"ken/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-secret-0123456789"

// serve returns a model that speaks to a handler.
func serve(t *testing.T, cfg provider.Config, h http.HandlerFunc) *Model {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cfg.BaseURL, cfg.Model, cfg.Client = s.URL+"/", "claude", s.Client()
	cfg.Retry.First = time.Millisecond
	if cfg.Key == nil {
		cfg.Key = func(context.Context) (string, error) { return key, nil }
	}
	return New(cfg)
}

// ask returns the text of an answer and its error.
func ask(ctx context.Context, m llm.Model, req llm.Request) (string, error) {
	var b strings.Builder
	for c, err := range m.Generate(ctx, req) {
		if err != nil {
			return b.String(), err
		}
		b.WriteString(c.Text)
	}
	return b.String(), nil
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
	echo := func(w http.ResponseWriter, r *http.Request) {
		say(w, fmt.Sprint(r.URL.Path, " ", r.Header.Get("Anthropic-Version"), " ", r.Header.Get("X-Api-Key") == key, " ", r.Header.Get("Anthropic-Beta")))
	}
	own := provider.Config{Header: http.Header{"Anthropic-Beta": {"context-1m-2025-08-07"}}}
	found := llm.Request{Tools: []llm.Tool{toolA}, Messages: []llm.Message{user(text("x")), assistant(call("1", "a", "{}")), user(result("1", give(toolB)))}}
	tests := []struct {
		name string
		cfg  provider.Config
		req  llm.Request
		beta string
	}{
		{"plain", provider.Config{}, hello(), ""},
		{"tools in a message", provider.Config{}, hello(give(toolA)), inlineBeta},
		{"tools in a result", provider.Config{}, found, ""},
		{"a beta of one's own", own, hello(), "context-1m-2025-08-07"},
		{"both", own, hello(give(toolA)), "context-1m-2025-08-07," + inlineBeta},
	}
	for _, tt := range tests {
		got, err := ask(t.Context(), serve(t, tt.cfg, echo), tt.req)
		if want := "/v1/messages 2023-06-01 true " + tt.beta; got != want || err != nil {
			t.Errorf("%s: the server saw %q, %v; want %q", tt.name, got, err, want)
		}
	}
	if got := own.Header.Get("Anthropic-Beta"); got != "context-1m-2025-08-07" {
		t.Errorf("the caller's header became %q", got)
	}
}

// TestSameBytesAgain: a try after a failure sends the same request.
func TestSameBytesAgain(t *testing.T) {
	var bodies []string
	m := serve(t, provider.Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		switch len(bodies) {
		case 1:
			w.WriteHeader(529)
			io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		case 2: // in the stream, but before its first chunk
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, wireText(begin, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
		default:
			say(w, "at last")
		}
	})
	got, err := ask(t.Context(), m, hello())
	if got != "at last" || err != nil || len(bodies) != 3 || bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("answer %q, %v after %q; want the third of three equal requests answered", got, err, bodies)
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
		m := serve(t, provider.Config{Retry: provider.Retry{Tries: 2}}, func(w http.ResponseWriter, r *http.Request) {
			for k, v := range tt.header {
				w.Header()[k] = v
			}
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		req := hello()
		req.Model = "claude-next"
		_, err := ask(t.Context(), m, req)
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
	cfg := provider.Config{Key: func(context.Context) (string, error) { return "", errors.New("the vault is locked") }}
	m := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) { asked = true })
	if _, err := ask(t.Context(), m, hello()); llm.KindOf(err) != llm.Auth || asked {
		t.Errorf("Generate = %v, asked: %v; want auth without a request", err, asked)
	}
}
