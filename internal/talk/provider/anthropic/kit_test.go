package anthropic_test

import (
	"testing"

	"ken/internal/talk/provider/anthropic"
	"ken/internal/testkit"
	"ken/internal/testkit/wiretest"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestConformance runs the kit that all wires share.
func TestConformance(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	llmtest.Test(t, "anthropic", func(t *testing.T, baseURL string) llm.Model { return anthropic.New(wiretest.Config(t, baseURL)) })
}
