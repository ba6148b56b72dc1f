package llmtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/llm"
)

// TestKit runs the kit over a client that keeps the contract.
func TestKit(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	Test(t, Chat, func(_ *testing.T, url string) llm.Model { return &client{url: url} })
}

// TestKitCatches breaks each promise, and expects the clause to say so.
func TestKitCatches(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	tests := []struct{ flaw, clause, says string }{
		{"no block", "text", "without a block"},
		{"other block", "text", "its fragments make up"},
		{"buffers", "streams", "no fragment came"},
		{"first call only", "calls", "blocks ="},
		{"no stop", "calls", "without a stop"},
		{"same id", "calls without ids", "the ids"},
		{"empty block", "empty answer", "want none"},
		{"no thought", "thoughts come back", "the fragments of the thought"},
		{"foreign thought", "thoughts of others stay", "another wire was sent"},
		{"uncached input", "usage", "Input counts cached"},
		{"always done", "stop reasons", "want \"length\""},
		{"repairs", "malformed arguments", "as the model wrote them"},
		{"replays raw", "malformed arguments", "dictionary"},
		{"ascii", "any text", "was sent as"},
		{"short lines", "large text", "in 1 fragments"},
		{"no system", "request", "system ="},
		{"own model", "request", "model ="},
		{"no results", "history", "followed by their results"},
		{"no images", "images", "images ="},
		{"few tools", "many tools", "100 tools were sent"},
		{"random", "same bytes", "different bytes"},
		{"rewrites", "append only", "breaks the cached prefix"},
		{"narrows tools", "allowed", "2 tools were sent"},
		{"ignores allowed", "allowed", "want exactly these two"},
		{"no cache", "cache", "cache key"},
		{"drops tools", "tools in a message", "the feature \"inline\""},
		{"drops tools", "tools in a result", "the feature \"search\""},
		{"no kinds", "faults", "want one of kind [rate]"},
		{"tries auth again", "faults", "auth stays"},
		{"tells key", "faults", "tells the key"},
		{"once", "faults", "rate passes"},
		{"once", "tries again", "want an answer"},
		{"once", "no server", "Tries = 1"},
		{"impatient", "waits as told", "the next try came after"},
		{"takes back", "nothing is taken back", "want one of kind [cut]"},
		{"insists", "wrong request", "3 requests"},
		{"repeats errors", "hostile error", "bounded"},
		{"follows", "redirect", "redirect to another host was followed"},
		{"leaks", "break", "the connection closed"},
		{"own error", "cancel", "want context canceled"},
		{"own error", "cancel before the answer", "want context canceled"},
		{"own error", "cancel while waiting", "want context canceled"},
		{"one at a time", "concurrency", "busy"},
	}
	left := conduct()
	for _, test := range tests {
		t.Run(test.flaw+" breaks "+test.clause, func(t *testing.T) {
			i := slices.IndexFunc(conduct(), func(p promise) bool { return p.name == test.clause })
			if i < 0 {
				t.Fatalf("there is no clause %q", test.clause)
			}
			left = slices.DeleteFunc(left, func(p promise) bool { return p.name == test.clause })
			patience := 30 * time.Second
			if test.flaw == "buffers" || test.flaw == "leaks" { // seen only by waiting in vain
				patience = 2 * time.Second
			}
			k := &kit{t: t, wire: Chat, patience: patience, open: func(_ *testing.T, url string) llm.Model {
				return &client{url: url, flaw: test.flaw}
			}}
			err := conduct()[i].check(k)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("a client with the flaw %q: %q says %v, want %q", test.flaw, test.clause, err, test.says)
			}
		})
	}
	for _, p := range left {
		t.Errorf("no flaw shows that %q can fail", p.name)
	}
}
