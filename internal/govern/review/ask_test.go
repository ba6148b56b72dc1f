package review_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
)

// TestAskIsReviewed: a review shows what a model is asked, and a difference names
// what changed in it.
func TestAskIsReviewed(t *testing.T) {
	manifest := func(ask capability.Ask) *review.Manifest {
		x, a := base()
		a.Run = &capability.Recipe{Runner: "llm.ask", Ask: &ask}
		m := made(review.Of(x, []*capability.Capability{a}))
		return m
	}
	was := manifest(capability.Ask{Prompt: "Summarize {text}", Answer: json.RawMessage(`{"type":"object"}`), MaxPrice: 0.5})
	now := manifest(capability.Ask{Prompt: "Translate {text}", Answer: json.RawMessage(`{"type":"array"}`), MaxPrice: 0.5, Instructions: []string{"text"}})
	if was.Digest == now.Digest {
		t.Error("the digests are the same")
	}
	var shown strings.Builder
	for _, l := range was.Lines() {
		shown.WriteString(l.Name + " " + l.Text + "\n")
	}
	for _, want := range []string{"a question to a model", "Summarize {text}", `{"type":"object"}`, "0.5"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the review does not show %s:\n%s", want, shown.String())
		}
	}
	var changes string
	for _, d := range review.Differences(was, now) {
		changes += d.String() + "\n"
	}
	for _, want := range []string{"Translate {text}", `{"type":"array"}`, "text"} {
		if !strings.Contains(changes, want) {
			t.Errorf("the differences do not show %s:\n%s", want, changes)
		}
	}
}
