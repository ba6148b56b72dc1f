package gemini_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ken/internal/talk/provider"
	"ken/internal/talk/provider/gemini"
	"ken/llm"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const done = `data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}` + "\n\n"

func ask(t *testing.T, cfg provider.Config, req llm.Request) (string, error) {
	t.Helper()
	said := ""
	for c, err := range gemini.New(cfg).Generate(context.Background(), req) {
		if err != nil {
			return said, err
		}
		said += c.Text
	}
	return said, nil
}

func serve(t *testing.T, h http.HandlerFunc) (cfg provider.Config) {
	t.Helper()
	s := httptest.NewServer(h)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { client.CloseIdleConnections(); s.Close() })
	return provider.Config{
		BaseURL: s.URL, Model: "gemini-3.8-flash", Client: client,
		Key:   func(context.Context) (string, error) { return "very-secret-key", nil },
		Retry: provider.Retry{Tries: 2, First: time.Millisecond},
	}
}

func TestRequest(t *testing.T) {
	for _, tt := range []struct{ model, base, want string }{
		{"", "", "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"},
		{"models/gemini-4-argon", "", "/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse"},
		{"tunedModels/mine", "/proxy/v1beta", "/proxy/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"},
		{"a?key=b/../c", "/v1/", "/v1/a%3Fkey=b/..%2Fc:streamGenerateContent?alt=sse"},
	} {
		var got *http.Request
		var body string
		cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			got, body = r, string(data)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, done)
		})
		cfg.BaseURL += tt.base
		cfg.MaxTokens = 99
		said, err := ask(t, cfg, llm.Request{Model: tt.model, Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "x"}}}}})
		if err != nil || said != "hi" {
			t.Fatalf("Generate = %q, %v, want hi", said, err)
		}
		if got.RequestURI != tt.want || got.Method != http.MethodPost || got.Header.Get("X-Goog-Api-Key") != "very-secret-key" {
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
			_, _ = io.WriteString(w, `{"error":{"code":503,"message":"very-secret-key \u001b[2J","status":"UNAVAILABLE"}}`)
		}, llm.Overloaded, 2},
		{"a wrong key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"code":400,"message":"API key not valid: very-secret-key","status":"INVALID_ARGUMENT"}}`)
		}, llm.Auth, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			cfg := serve(t, func(w http.ResponseWriter, r *http.Request) { tries++; tt.serve(w, r) })
			_, err := ask(t, cfg, llm.Request{})
			if llm.KindOf(err) != tt.kind || tries != tt.tries {
				t.Fatalf("Generate gave %v after %d tries, want %v after %d", err, tries, tt.kind, tt.tries)
			}
			if text := err.Error(); strings.Contains(text, "very-secret-key") || strings.ContainsRune(text, 0x1b) {
				t.Errorf("the error shows what it must not: %q", text)
			}
		})
	}
}

func TestUnsupportedIsNotSent(t *testing.T) {
	cfg := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was made") })
	_, err := ask(t, cfg, llm.Request{Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Tools: []llm.Tool{{Name: "f"}}}}}}})
	e, ok := err.(*llm.Error)
	if !ok || e.Kind != llm.Unsupported || e.Feature != llm.Inline || e.Provider != "gemini" || e.Model != "gemini-3.8-flash" {
		t.Errorf("Generate gave %v, want unsupported: inline", err)
	}
}
