package chat

import (
	"slices"
	"testing"

	"ken/internal/door"
)

// TestSkippedLines: one line for each reason, and what is in a brief was not
// left out.
func TestSkippedLines(t *testing.T) {
	var f door.Found
	f.Briefs = []door.Piece{{ID: "tool:a"}}
	f.Skipped = []door.Skip{
		{ID: "tool:a", Tier: "full", Reason: "only the best is shown"},
		{ID: "tool:b", Tier: "briefs", Reason: "only the best is shown"},
		{ID: "tool:c", Tier: "briefs", Reason: "too long"},
		{ID: "tool:d", Tier: "briefs", Reason: "only the best is shown"},
		{ID: "tool:d", Tier: "full", Reason: "only the best is shown"},
	}
	want := []string{
		"not in full: tool:a: only the best is shown",
		"left out tool:b, tool:d: only the best is shown",
		"left out tool:c: too long",
	}
	if got := skippedLines(f); !slices.Equal(got, want) {
		t.Errorf("skippedLines() = %q, want %q", got, want)
	}
}
