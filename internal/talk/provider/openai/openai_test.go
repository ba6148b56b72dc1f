package openai

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"

	"ken/internal/talk/provider"
	"ken/internal/testkit"
	"ken/internal/testkit/wiretest"
	"ken/llm"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	chatEnd      = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	responsesEnd = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}]}}\n\n"
	wantHi       = "text \"Hi\"\nblock text \"Hi\"\nend end in=0 read=0 write=0 out=0 thought=0\n"
)

// A vendor answers with a function and keeps the bodies that came.
type vendor struct {
	mu     sync.Mutex
	bodies []string
}

func (v *vendor) seen() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.bodies...)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) (*vendor, provider.Config) {
	t.Helper()
	v := &vendor{}
	cfg := wiretest.Serve(t, func(w http.ResponseWriter, r *http.Request, body string) {
		v.mu.Lock()
		v.bodies = append(v.bodies, body)
		v.mu.Unlock()
		answer(w, r, body)
	})
	cfg.BaseURL += "/v1"
	return v, cfg
}

func hello() llm.Request {
	return llm.Request{Tools: []llm.Tool{tool("f")}, Cache: "s", Effort: "low", Allowed: []string{"f"}, Messages: []llm.Message{wiretest.User(wiretest.Text("Hi"))}}
}

// models makes both kinds of model for a configuration, with the end of an
// answer that each takes.
func models(cfg provider.Config) map[string]struct {
	model llm.Model
	end   string
} {
	return map[string]struct {
		model llm.Model
		end   string
	}{
		"/v1/chat/completions": {NewChat(cfg), chatEnd},
		"/v1/responses":        {NewResponses(cfg), responsesEnd},
	}
}

// TestRefusedParametersAreDropped checks that what a server will not take is
// left out, one after the other, and is not tried again.
func TestRefusedParametersAreDropped(t *testing.T) {
	for path, refused := range map[string][]string{
		"/v1/chat/completions": {"stream_options", "max_tokens", "max_completion_tokens", "reasoning_effort", "prompt_cache_key", "tool_choice"},
		"/v1/responses":        {"max_output_tokens", "include", "prompt_cache_key", "tool_choice", "reasoning"},
	} {
		t.Run(path, func(t *testing.T) {
			end := ""
			v, cfg := serve(t, func(w http.ResponseWriter, _ *http.Request, body string) {
				for _, name := range refused {
					if strings.Contains(body, `"`+name+`":`) {
						w.WriteHeader(http.StatusBadRequest)
						fmt.Fprintf(w, `{"error":{"message":"Unknown parameter: '%s'.","type":"invalid_request_error","param":"%s","code":"unknown_parameter"}}`, name, name)
						return
					}
				}
				io.WriteString(w, end)
			})
			m := models(cfg)[path]
			end = m.end
			if got := wiretest.Render(m.model.Generate(t.Context(), hello())); got != wantHi {
				t.Fatalf("Generate =\n%swant\n%s", got, wantHi)
			}
			if got, want := len(v.seen()), len(refused)+1; got != want {
				t.Errorf("Generate made %d requests, want %d", got, want)
			}
			if got := wiretest.Render(m.model.Generate(t.Context(), hello())); got != wantHi {
				t.Fatalf("second Generate =\n%s", got)
			}
			if got, want := len(v.seen()), len(refused)+2; got != want {
				t.Errorf("after the second Generate there were %d requests, want %d", got, want)
			}
			// What one model refuses another may take.
			other := hello()
			other.Model = "other"
			wiretest.Render(m.model.Generate(t.Context(), other))
			if got, want := len(v.seen()), 2*len(refused)+3; got != want {
				t.Errorf("after that of another model there were %d requests, want %d", got, want)
			}
		})
	}
}

// TestRefusalWithinTheAnswer checks that a refusal may come with the status of a
// success, as from gateways.
func TestRefusalWithinTheAnswer(t *testing.T) {
	v, cfg := serve(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		if strings.Contains(body, "stream_options") {
			io.WriteString(w, "data: {\"error\":{\"message\":\"stream_options is not supported\",\"code\":400}}\n\n")
			return
		}
		io.WriteString(w, chatEnd)
	})
	if got := wiretest.Render(NewChat(cfg).Generate(t.Context(), hello())); got != wantHi || len(v.seen()) != 2 {
		t.Errorf("Generate after %d requests =\n%swant after 2\n%s", len(v.seen()), got, wantHi)
	}
}

// TestForeignReasoningIsDroppedOnce checks that encrypted thoughts which the
// server cannot read are left out of that request only.
func TestForeignReasoningIsDroppedOnce(t *testing.T) {
	v, cfg := serve(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		if strings.Contains(body, "FOREIGN") {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"The encrypted content could not be verified.","code":"invalid_encrypted_content"}}`)
			return
		}
		io.WriteString(w, responsesEnd)
	})
	m := NewResponses(cfg)
	with := func(secret string) llm.Request {
		req := hello()
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
			{Reasoning: &llm.Reasoning{Wire: "openai-responses", Opaque: []byte(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + secret + `"}`)}},
			{Text: "So."},
		}}, req.Messages[0])
		return req
	}
	if got := wiretest.Render(m.Generate(t.Context(), with("FOREIGN"))); got != wantHi {
		t.Fatalf("Generate =\n%s", got)
	}
	if got := wiretest.Render(m.Generate(t.Context(), with("OURS"))); got != wantHi {
		t.Fatalf("Generate =\n%s", got)
	}
	if bodies := v.seen(); len(bodies) != 3 || !strings.Contains(bodies[2], "OURS") {
		t.Errorf("%d requests, the last %s, want 3 and the thoughts in it", len(bodies), bodies[len(bodies)-1])
	}
}

// TestNoKey checks that a server without a key is sent none.
func TestNoKey(t *testing.T) {
	_, cfg := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("without a key Authorization = %q, want none", got)
		}
		io.WriteString(w, chatEnd)
	})
	cfg.Key = nil
	if got := wiretest.Render(NewChat(cfg).Generate(t.Context(), hello())); got != wantHi {
		t.Errorf("Generate =\n%s", got)
	}
}

// TestLargeFlood checks that an answer without an end is ended.
func TestLargeFlood(t *testing.T) {
	testkit.CI(t, "reads megabytes")
	piece := strings.Repeat("x", 1<<20)
	_, cfg := serve(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece); err != nil {
				return
			}
		}
	})
	if _, err := wiretest.Ask(t.Context(), NewChat(cfg), hello()); llm.KindOf(err) != llm.Malformed || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("Generate of a flood = %v, want malformed after 16 MiB", err)
	}
}

// TestConcurrentUse asks one model many times at once while parameters are
// being refused; the race detector looks on.
func TestConcurrentUse(t *testing.T) {
	_, cfg := serve(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		if strings.Contains(body, "stream_options") {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"Unknown parameter: 'stream_options'"}}`)
			return
		}
		io.WriteString(w, chatEnd)
	})
	m := NewChat(cfg)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got := wiretest.Render(m.Generate(t.Context(), hello())); got != wantHi {
				t.Errorf("Generate =\n%s", got)
			}
		})
	}
	wg.Wait()
}

// last is the error that ended an answer.
func last(chunks iter.Seq2[llm.Chunk, error]) error {
	var err error
	for _, err = range chunks {
	}
	return err
}
