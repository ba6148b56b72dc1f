package statsreport

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ken/internal/cli/output"
	"ken/internal/door"
)

// TestSearchesWithoutMessages: an agent that searches and calls over MCP sends no
// messages, and all the same something was recorded.
func TestSearchesWithoutMessages(t *testing.T) {
	const none = "Nothing was recorded"
	var r door.Report
	if got := printed(r); !strings.Contains(got, none) {
		t.Errorf("Print() of an empty report printed\n%s\nwant %q", got, none)
	}
	r.Metrics.Searched, r.Metrics.Misses, r.Metrics.Calls, r.Metrics.FailedCalls = 3, 2, 5, 1
	got := printed(r)
	for _, want := range []string{"searched for: 3, not shown before: 2", "calls that ran: 5, failed: 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("Print() printed\n%s\nwant %q", got, want)
		}
	}
	for _, not := range []string{none, "messages", "tokens selected"} {
		if strings.Contains(got, not) {
			t.Errorf("Print() printed\n%s\nwant no %q", got, not)
		}
	}
}

func printed(r door.Report) string {
	var out bytes.Buffer
	Print(output.New(&out), r, 48*time.Hour)
	return out.String()
}
