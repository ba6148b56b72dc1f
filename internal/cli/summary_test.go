package cli

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
)

// TestSummary: each kind of change is counted, also where few are named, and a gap
// in the history is not reported as no change.
func TestSummary(t *testing.T) {
	var many []door.Change
	for i := range 5 {
		many = append(many, door.Change{ID: capability.ID(fmt.Sprint("tool:new", i)), What: "added"})
	}
	many = append(many, door.Change{ID: "tool:old", What: "removed"}, door.Change{ID: "tool:moved", What: "updated", Note: "use path"})
	for _, tt := range []struct {
		news door.Changes
		want string
	}{
		{door.Changes{Complete: true}, ""},
		{door.Changes{}, "too many changes to list; see ken catalog list"},
		{door.Changes{Changes: many, Complete: true}, "5 added (tool:new0, tool:new1, tool:new2, and 2 more); 1 updated (tool:moved: use path); 1 removed (tool:old)"},
	} {
		if got := strings.Join(summary(tt.news), "; "); got != tt.want {
			t.Errorf("summary = %q, want %q", got, tt.want)
		}
	}
}
