package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
)

// TestEndWaitsForWhatIsLearned: Close does not end while outcomes are learned
// from, so that nothing of it is lost; and what never ends holds it no longer
// than it may.
func TestEndWaitsForWhatIsLearned(t *testing.T) {
	for name, ends := range map[string]bool{"it ends": true, "it never ends": false} {
		t.Run(name, func(t *testing.T) {
			_, getenv := home(t, nil)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				a, err := Open(t.Context(), Config{Getenv: getenv, Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				held, calls := make(chan struct{}), 0
				a.recorder.Now = func() time.Time {
					if calls++; calls == 2 { // the first is the message's, the second the learning's
						<-held
					}
					return time.Now()
				}
				_ = a.recorder.Priors(capability.Scope{Session: "s1"})
				synctest.Wait()
				begin := time.Now()
				closed := make(chan error, 1)
				go func() { closed <- a.Close() }()
				synctest.Wait()
				select {
				case err := <-closed:
					t.Fatalf("Close() = %v while outcomes are learned from, want that it waits", err)
				default:
				}
				if !ends {
					defer close(held)
					if err := <-closed; !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != learningEnds {
						t.Errorf("Close() = %v after %v, want that it gave up after %v", err, time.Since(begin), learningEnds)
					}
					return
				}
				close(held)
				if err := <-closed; err != nil || time.Since(begin) != 0 {
					t.Errorf("Close() = %v after %v, want that it ended with the learning", err, time.Since(begin))
				}
				over, cancel := context.WithCancel(t.Context())
				cancel()
				if err := a.recorder.Close(over); err != nil {
					t.Errorf("after Close() the recorder says %v, want that nothing is learned", err)
				}
			})
		})
	}
}
