package confine

import (
	"os"
	"strings"
	"testing"
)

// TestDropCodePages: a program whose pages were dropped goes on, and what was written
// keeps its value.
func TestDropCodePages(t *testing.T) {
	written := strings.Repeat("x", 1+len(os.Args))
	dropCodePages()
	if written != strings.Repeat("x", 1+len(os.Args)) {
		t.Errorf("a variable has changed to %q", written)
	}
}
