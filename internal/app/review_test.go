package app

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
)

// TestReviewedCheckIsInvoke: a call whose extension is off is told the same
// before anybody is asked as when it runs, and its executor is not reached.
func TestReviewedCheckIsInvoke(t *testing.T) {
	dir, getenv := home(t, nil)
	if err := os.CopyFS(filepath.Join(dir, ".ken", "extensions", "text"), os.DirFS(filepath.FromSlash("../../examples/extensions/text"))); err != nil {
		t.Fatal(err)
	}
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	n := 0
	for e := range a.catalog.Snapshot().All() {
		if _, needs := review.Owner(e.Capability); !needs {
			continue
		}
		n++
		call := capability.Call{Target: e.ID}
		_, before := reviewed{nil, a}.Check(t.Context(), call)
		_, then := reviewed{nil, a}.Invoke(t.Context(), call)
		if capability.KindOf(then) != capability.Denied || !reflect.DeepEqual(before, then) {
			t.Errorf("%s: Check() = %v, want what Invoke gives: %v", e.ID, before, then)
		}
	}
	if n == 0 {
		t.Error("the catalog has no extension")
	}
}
