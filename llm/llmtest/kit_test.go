package llmtest

import (
	"slices"
	"testing"
	"time"

	"ken/llm"
)

// TestKit runs the kit over a client that keeps the contract.
func TestKit(t *testing.T) {
	Test(t, Chat, func(_ *testing.T, url string) llm.Model { return &client{url: url} })
}

// TestKitCatches breaks each promise, and expects the clause to say so.
func TestKitCatches(t *testing.T) {
	tests := []struct{ flaw, clause string }{
		{"no block", "text"},
		{"other block", "text"},
		{"buffers", "streams"},
		{"first call only", "calls"},
		{"no stop", "calls"},
		{"same id", "calls without ids"},
		{"empty block", "empty answer"},
		{"no thought", "thoughts come back"},
		{"foreign thought", "thoughts of others stay"},
		{"uncached input", "usage"},
		{"always done", "stop reasons"},
		{"repairs", "malformed arguments"},
		{"replays raw", "malformed arguments"},
		{"ascii", "any text"},
		{"short lines", "large text"},
		{"no system", "request"},
		{"own model", "request"},
		{"no results", "history"},
		{"no images", "images"},
		{"few tools", "many tools"},
		{"random", "same bytes"},
		{"rewrites", "append only"},
		{"narrows tools", "allowed"},
		{"ignores allowed", "allowed"},
		{"no cache", "cache"},
		{"drops tools", "tools in a message"},
		{"drops tools", "tools in a result"},
		{"no kinds", "faults"},
		{"tries auth again", "faults"},
		{"tells key", "faults"},
		{"once", "faults"},
		{"once", "tries again"},
		{"once", "no server"},
		{"impatient", "waits as told"},
		{"takes back", "nothing is taken back"},
		{"insists", "wrong request"},
		{"repeats errors", "hostile error"},
		{"follows", "redirect"},
		{"leaks", "break"},
		{"own error", "cancel"},
		{"own error", "cancel before the answer"},
		{"own error", "cancel while waiting"},
		{"one at a time", "concurrency"},
	}
	left := conduct()
	for _, test := range tests {
		t.Run(test.flaw+" breaks "+test.clause, func(t *testing.T) {
			i := slices.IndexFunc(conduct(), func(p promise) bool { return p.name == test.clause })
			if i < 0 {
				t.Fatalf("there is no clause %q", test.clause)
			}
			left = slices.DeleteFunc(left, func(p promise) bool { return p.name == test.clause })
			k := &kit{t: t, wire: Chat, patience: 2 * time.Second, open: func(_ *testing.T, url string) llm.Model {
				return &client{url: url, flaw: test.flaw}
			}}
			err := conduct()[i].check(k)
			if err == nil {
				t.Errorf("a client with the flaw %q passes %q", test.flaw, test.clause)
			}
			t.Log(err)
		})
	}
	for _, p := range left {
		t.Errorf("no flaw shows that %q can fail", p.name)
	}
}
