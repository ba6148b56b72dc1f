package door

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/find/outcome"
	"ken/internal/testkit"
)

// TestCloseWaitsForWhatIsLearned: the end waits for the learning that runs, no
// longer than it is given, and afterwards nothing more is begun.
func TestCloseWaitsForWhatIsLearned(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := recorder(t, dir, outcome.Full, outcome.SwitchConfig{})
		d := open(t, r)
		r.mu.Lock()
		r.learning = make(chan struct{}) // nobody learns while the log is filled
		r.mu.Unlock()
		for i := range 6 {
			scope := capability.Scope{Session: fmt.Sprint("s", i)}
			find(t, d, Query{Text: "weather forecast for the city", Scope: scope})
			testkit.OK(t, d.Used(scope, "tool:weather", true))
		}
		r.learning = nil
		held, calls := make(chan struct{}), 0
		r.Now = func() time.Time {
			if calls++; calls == 2 { // the first is the message's, the second the learning's
				<-held
			}
			return noon.Add(time.Hour)
		}
		if p := r.Priors(session); p != nil {
			t.Fatalf("Priors before anything was learned = %v", p)
		}
		synctest.Wait()
		begin := time.Now()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(brief); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("Close() = %v after %v, want that it gave up after 1s", err, time.Since(begin))
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Close(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("Close() = %v while the log is read, want that it waits", err)
		default:
		}
		close(held)
		if err := <-ended; err != nil {
			t.Errorf("Close() = %v, want that it waited", err)
		}
		if p := r.Priors(session); p["tool:weather"] <= 0 {
			t.Errorf("Priors after Close = %v, want what was being learned", p)
		}
		r.relearned.Store(0)
		_ = r.Priors(session)
		if r.learning != nil {
			t.Error("something is learned after Close")
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("Close() again = %v", err)
		}
	})
}
