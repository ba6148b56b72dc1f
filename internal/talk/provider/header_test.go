package provider_test

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ken/internal/talk/provider"
	"ken/llm"
)

// TestHeadersNotInErrors: the value of any header that a person configured may
// be a secret, whatever its name, and does not come back in an error.
func TestHeadersNotInErrors(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("you sent " + r.Header.Get("X-Team-Password")))
	}))
	defer srv.Close()
	cfg := provider.Config{Name: "x", BaseURL: srv.URL, Header: http.Header{"X-Team-Password": {"hunter2-and-more"}}}
	attempt := func(ctx context.Context) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			_, err := provider.Post(ctx, cfg, "/", nil, nil, func(status int, _ http.Header, body []byte) *llm.Error {
				return &llm.Error{Kind: llm.Invalid, Status: status, Message: string(body)}
			})
			yield(llm.Chunk{}, err)
		}
	}
	for _, err := range provider.Generate(t.Context(), cfg, attempt) {
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "you sent") {
			t.Errorf("the error is %v, want what the server said without the secret", err)
		}
	}
}
