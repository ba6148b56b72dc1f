package gemini_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"ken/internal/talk/provider"
	"ken/internal/talk/provider/gemini"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestConformance runs the contract of llm.Model over the scripted wire.
func TestConformance(t *testing.T) {
	for _, name := range []string{"gemini-3.8-flash", "gemini-2.5-flash"} {
		t.Run(name, func(t *testing.T) {
			llmtest.Test(t, llmtest.Gemini, func(t *testing.T, baseURL string) llm.Model {
				client := &http.Client{Transport: &http.Transport{}}
				t.Cleanup(client.CloseIdleConnections)
				return gemini.New(provider.Config{
					BaseURL: baseURL, Model: name, Client: client,
					Key:   func(context.Context) (string, error) { return "test-key", nil },
					Retry: provider.Retry{Tries: 3, First: 2 * time.Millisecond},
				})
			})
		})
	}
}
