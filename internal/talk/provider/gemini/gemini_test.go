package gemini_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"ken/internal/talk/provider/gemini"
	"ken/internal/testkit/wiretest"
	"ken/llm"

	"go.uber.org/goleak"
	"ken/internal/testkit"
	"ken/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const done = `data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}` + "\n\n"

func TestRequest(t *testing.T) {
	for _, tt := range []struct{ model, base, want string }{
		{"", "", "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"},
		{"models/gemini-4-argon", "", "/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse"},
		{"tunedModels/mine", "/proxy/v1beta", "/proxy/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"},
		{"a?key=b/../c", "/v1/", "/v1/a%3Fkey=b/..%2Fc:streamGenerateContent?alt=sse"},
	} {
		var got *http.Request
		var body string
		cfg := wiretest.Serve(t, func(w http.ResponseWriter, r *http.Request, sent string) {
			got, body = r, sent
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, done)
		})
		cfg.BaseURL += tt.base
		cfg.MaxTokens = 99
		cfg.Model = "gemini-3.8-flash"
		said, err := wiretest.Ask(t.Context(), gemini.New(cfg), llm.Request{Model: tt.model, Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "x"}}}}})
		if err != nil || said != "hi" {
			t.Fatalf("Generate = %q, %v, want hi", said, err)
		}
		if got.RequestURI != tt.want || got.Method != http.MethodPost || got.Header.Get("X-Goog-Api-Key") != wiretest.Key {
			t.Errorf("%q was asked by %s %s with %v, want %s and the key in its header only", tt.model, got.Method, got.RequestURI, got.Header, tt.want)
		}
		if !strings.Contains(body, `"maxOutputTokens":99`) {
			t.Errorf("the body is %s, want the limit of the configuration", body)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		kind  llm.Kind
		tries int
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, llm.Malformed, 1},
		{"an answer that is no stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `[{"candidates":[]}]`)
		}, llm.Malformed, 1},
		{"busy", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":503,"message":"sk-very-secret-0123456789 \u001b[2J","status":"UNAVAILABLE"}}`)
		}, llm.Overloaded, 2},
		{"a wrong key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"message":"API key not valid: sk-very-secret-0123456789","status":"INVALID_ARGUMENT"}}`)
		}, llm.Auth, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			cfg := wiretest.Serve(t, func(w http.ResponseWriter, r *http.Request, _ string) { tries++; tt.serve(w, r) })
			cfg.Retry.Tries = 2
			_, err := wiretest.Ask(t.Context(), gemini.New(cfg), llm.Request{})
			if llm.KindOf(err) != tt.kind || tries != tt.tries {
				t.Fatalf("Generate gave %v after %d tries, want %v after %d", err, tries, tt.kind, tt.tries)
			}
			if text := err.Error(); strings.Contains(text, "sk-very-secret-0123456789") || strings.ContainsRune(text, 0x1b) {
				t.Errorf("the error shows what it must not: %q", text)
			}
		})
	}
}

// TestConformance runs the contract of llm.Model over the scripted wire.
func TestConformance(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	for _, name := range []string{"gemini-3.8-flash", "gemini-2.5-flash"} {
		t.Run(name, func(t *testing.T) {
			llmtest.Test(t, llmtest.Gemini, func(t *testing.T, baseURL string) llm.Model {
				cfg := wiretest.Config(t, baseURL)
				cfg.Model = name
				return gemini.New(cfg)
			})
		})
	}
}
