package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"ken/internal/store"
)

// jobs are what an actor can do by itself; send gives something to its caller
// at once, also from a process that is killed afterwards. Any goroutine may.
var jobs = map[string]func(s *store.Store, arg int, send func(string)) error{
	"claim": claimJob, "count": countJob, "transfer": transferJob, "write": writeJob,
}

const (
	claims        = 200
	counts        = 40
	accounts      = 8
	transfersEach = 60
)

// meet waits until both who do a job have begun it.
func meet(s *store.Store, me int) error {
	if _, err := (local{s}).apply(put(fmt.Sprintf("ready/%d", me), "")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for c, err := range s.Watch(ctx, fmt.Sprintf("ready/%d", 1-me), 0) {
		if err != nil || !c.Gone {
			return err
		}
	}
	return nil
}

// both does a job with two actors at once.
func both(t testing.TB, a, b actor, job string) (sent [2][]string) {
	t.Helper()
	var done sync.WaitGroup
	for i, x := range []actor{a, b} {
		done.Go(func() {
			var err error
			if sent[i], err = x.work(job, i); err != nil {
				t.Errorf("%s: %v", job, err)
			}
		})
	}
	done.Wait()
	return sent
}

// claim: of two who want a key that is not there, exactly one gets it.
func claim(t *testing.T, a, b actor) {
	sent := both(t, a, b, "claim")
	won := map[string]int{}
	for i, keys := range sent {
		for _, key := range keys {
			if _, ok := won[key]; ok {
				t.Errorf("both won %s", key)
			}
			won[key] = i
		}
	}
	if len(won) != claims {
		t.Errorf("%d of %d keys were won", len(won), claims)
	}
	for key, i := range won {
		item, ok, err := a.get(key)
		if err != nil || !ok || string(item.Value) != fmt.Sprint(i) {
			t.Errorf("Get(%s) = %q, %v, %v; want its winner, %d", key, item.Value, ok, err, i)
		}
	}
	t.Logf("won %d and %d", len(sent[0]), len(sent[1]))
}

func claimJob(s *store.Store, me int, send func(string)) error {
	if err := meet(s, me); err != nil {
		return err
	}
	return together(4, func(worker int) error {
		for i := range claims / 4 {
			if me == 1 && worker%2 == 1 { // some meet head on, some go side by side
				i = claims/4 - 1 - i
			}
			key := fmt.Sprintf("claim/%d", 4*i+worker)
			_, err := local{s}.apply(absent(key), put(key, fmt.Sprint(me)))
			switch {
			case err == nil:
				send(key)
			case !errors.Is(err, store.ErrConflict):
				return err
			}
		}
		return nil
	})
}

// together does something in a few goroutines.
func together(n int, do func(worker int) error) error {
	errs := make([]error, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { errs[i] = do(i) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// count: no increment under a version condition is lost.
func count(t *testing.T, a, b actor) {
	both(t, a, b, "count")
	for i := range 2 {
		item, _, err := b.get(fmt.Sprintf("counter/%d", i))
		if want := fmt.Sprint(2 * 4 * counts / 2); err != nil || string(item.Value) != want {
			t.Errorf("counter/%d = %s, %v; want %s", i, item.Value, err, want)
		}
	}
}

func countJob(s *store.Store, me int, _ func(string)) error {
	if err := meet(s, me); err != nil {
		return err
	}
	return together(4, func(int) error {
		for i := range counts {
			key := fmt.Sprintf("counter/%d", i%2)
			for {
				item, _, err := local{s}.get(key)
				if err != nil {
					return err
				}
				n, _ := strconv.Atoi(string(item.Value))
				_, err = local{s}.apply(at(key, item.Version), put(key, fmt.Sprint(n+1)))
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrConflict) {
					return err
				}
			}
		}
		return nil
	})
}

// transfer: batches over several keys are seen whole or not at all.
func transfer(t *testing.T, a, b actor) {
	var steps []step
	for i := range accounts {
		steps = append(steps, put(fmt.Sprintf("account/%d", i), "100"))
	}
	mustApply(t, a, steps...)
	stop, looked := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			items, err := a.scan("account/", store.Range{}) // one page: one moment
			sum := 0
			for _, item := range items {
				v, _ := strconv.Atoi(string(item.Value))
				sum += v
			}
			if n++; err != nil || sum != 100*accounts {
				t.Errorf("the accounts hold %d, %v; want %d", sum, err, 100*accounts)
				break
			}
			select {
			case <-stop:
				looked <- n
				return
			default:
			}
		}
		<-stop
		looked <- n
	}()
	both(t, a, b, "transfer")
	close(stop)
	t.Logf("looked %d times", <-looked)
}

func transferJob(s *store.Store, me int, _ func(string)) error {
	if err := meet(s, me); err != nil {
		return err
	}
	ctx := context.Background()
	return together(2, func(worker int) error {
		for i := range transfersEach {
			for {
				from, to := fmt.Sprintf("account/%d", (i+me)%accounts), fmt.Sprintf("account/%d", (i*3+worker+me+1)%accounts)
				if from == to {
					break
				}
				x, _, err := s.Get(ctx, from)
				if err != nil {
					return err
				}
				y, _, err := s.Get(ctx, to)
				if err != nil {
					return err
				}
				n, _ := strconv.Atoi(string(x.Value))
				m, _ := strconv.Atoi(string(y.Value))
				_, err = local{s}.apply(at(from, x.Version), at(to, y.Version), put(from, fmt.Sprint(n-1)), put(to, fmt.Sprint(m+1)))
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrConflict) {
					return err
				}
			}
		}
		return nil
	})
}
