package anthropic_test

import (
	"context"
	"testing"
	"time"

	"ken/internal/talk/provider"
	"ken/internal/talk/provider/anthropic"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestConformance runs the kit that all wires share.
func TestConformance(t *testing.T) {
	llmtest.Test(t, "anthropic", func(t *testing.T, baseURL string) llm.Model {
		return anthropic.New(provider.Config{
			BaseURL: baseURL,
			Model:   "claude-test",
			Key:     func(context.Context) (string, error) { return "sk-ant-test-0123456789", nil },
			Retry:   provider.Retry{First: time.Millisecond},
		})
	})
}
