package storetest

import (
	"fmt"
	"testing"
	"time"

	"ken/internal/store"
)

// next waits for a change.
func next(t testing.TB, changes <-chan store.Change) store.Change {
	t.Helper()
	select {
	case c, ok := <-changes:
		if !ok {
			t.Fatal("the watch ended")
		}
		return c
	case <-time.After(patience):
		t.Fatal("no change came")
	}
	panic("unreachable")
}

func told(c store.Change) string {
	if c.Gone {
		return fmt.Sprintf("%s@%d gone %d", c.Key, c.Version, len(c.Value))
	}
	return fmt.Sprintf("%s@%d=%s", c.Key, c.Version, c.Value)
}

func wantChange(t testing.TB, changes <-chan store.Change, format string, args ...any) {
	t.Helper()
	if got, want := told(next(t, changes)), fmt.Sprintf(format, args...); got != want {
		t.Fatalf("change %s, want %s", got, want)
	}
}

// watch: b sees what a does, and its own, once each and in order.
func watch(t *testing.T, a, b actor) {
	v1 := mustApply(t, a, put("w/1", "x"), put("v/1", "other"))
	mustApply(t, a, put("w/gone", "x"))
	mustApply(t, a, drop("w/gone"), putFor("w/short", "x", time.Microsecond))
	all, stopAll := b.watch("w/", 0)
	defer stopAll()
	fresh, stopFresh := b.watch("w/", store.FromNow)
	defer stopFresh()
	wantChange(t, all, "w/1@%d=x", v1)

	both := func(format string, args ...any) {
		t.Helper()
		wantChange(t, all, format, args...)
		wantChange(t, fresh, format, args...)
	}
	v := mustApply(t, a, put("w/2", "y"), put("v/2", "other"))
	both("w/2@%d=y", v)
	v = mustApply(t, b, put("w/3", "z"), put("w/2", "yy"))
	both("w/2@%d=yy", v)
	both("w/3@%d=z", v)
	v = mustApply(t, a, drop("w/2"))
	both("w/2@%d gone 0", v)
	v = mustApply(t, b, put("w/2", "back"))
	both("w/2@%d=back", v)
	if _, err := a.apply(absent("w/2"), put("w/9", "")); err == nil {
		t.Error("a batch that should conflict did not")
	}
	mustApply(t, a, drop("w/never")) // nothing changes
	v = mustApply(t, a, putFor("w/4", "brief", time.Microsecond))
	both("w/4@%d gone 0", v)
	v = mustApply(t, a, put("w/end", "."))
	both("w/end@%d=.", v)
}

// resume: who goes on after a version gets what came since, deletions too.
func resume(t *testing.T, a, b actor) {
	mustApply(t, a, put("k/1", "x"), put("k/2", "x"), put("k/3", "x"))
	seen := mustApply(t, a, put("k/1", "y"))
	v2 := mustApply(t, b, drop("k/2"))
	v3 := mustApply(t, a, put("k/3", "z"))
	v4 := mustApply(t, b, put("k/4", "new"))
	for _, x := range []actor{a, b} {
		changes, stop := x.watch("k/", seen)
		wantChange(t, changes, "k/2@%d gone 0", v2)
		wantChange(t, changes, "k/3@%d=z", v3)
		wantChange(t, changes, "k/4@%d=new", v4)
		stop()
	}
}
