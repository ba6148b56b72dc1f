package gemini_test

import (
	"testing"

	"ken/internal/talk/provider/gemini"
	"ken/internal/testkit"
	"ken/internal/testkit/wiretest"
	"ken/llm"
	"ken/llm/llmtest"
)

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
