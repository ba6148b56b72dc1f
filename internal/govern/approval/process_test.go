package approval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// childStore makes a test binary a child: it is the address of its store.
const childStore = "KEN_APPROVAL_STORE"

func TestMain(m *testing.M) {
	if address := os.Getenv(childStore); address != "" {
		if err := live(address); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// live reads ids, settles and consumes each on a few goroutines, and says so.
func live(address string) error {
	s, err := store.Open(ctx, address, "")
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := approval.New(s, approval.Config{Pending: manyPending})
	if err != nil {
		return err
	}
	var ids []string
	if err := json.NewDecoder(os.Stdin).Decode(&ids); err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(what + " " + id) // a parent that is gone needs no word
	}
	return each(ids, 4, func(id string) error {
		t, err := d.Settle(ctx, id, yes(approval.Once))
		if err != nil {
			return err
		}
		say("granted", id)
		if _, err := d.Consume(ctx, t.Grant); err != nil {
			return err
		}
		say("used", id)
		return nil
	})
}

// each does work for all ids, on so many goroutines.
func each(ids []string, n int, work func(id string) error) error {
	next := make(chan string)
	errs := make([]error, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			for id := range next {
				if err := work(id); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	done.Wait()
	return errors.Join(errs...)
}

// askMany asks as many different questions, on several goroutines, so that
// commits are shared.
func askMany(t *testing.T, d *approval.Desk, n int) []string {
	t.Helper()
	ids := make([]string, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			q := about(callOf(fmt.Sprintf(`{"n":%d}`, i)))
			q.Widest = approval.Once
			ticket, err := d.Ask(ctx, q)
			if err != nil {
				t.Error(err)
			}
			ids[i] = ticket.ID
		})
	}
	done.Wait()
	return ids
}

// TestKilled: a process is killed while it settles and consumes. What it had
// said holds, every ticket is in one state, and what was granted and not used
// can be used, once.
func TestKilled(t *testing.T) {
	testkit.CI(t, "kills processes")
	for round := range 4 {
		address := storetest.Address(t)
		d := newDesk(t, storetest.Open(t, address), approval.Config{})
		ids := askMany(t, d, 60)
		in := testkit.Must(json.Marshal(ids))(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childStore+"="+address)
		cmd.Stdin, cmd.Stderr = strings.NewReader(string(in)), os.Stderr
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said, line := map[string]bool{}, ""
		for out := json.NewDecoder(pipe); out.Decode(&line) == nil; {
			if said[line] = true; len(said) == 10+13*round {
				testkit.OK(t, cmd.Process.Kill())
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("the process ended by itself after %d words", len(said))
		}
		for _, id := range ids {
			got := testkit.Must(d.Get(ctx, id))(t)
			if said["granted "+id] && got.State != approval.Granted || said["used "+id] && (got.Ended == nil || got.Ended.How != "spent") {
				t.Errorf("ticket %s is %s, ended %+v, after granted %t and used %t were said", id, got.State, got.Ended, said["granted "+id], said["used "+id])
			}
			covers, usable := len(grantsFor(t, d, got.Question.Call)), 0
			switch {
			case got.State == approval.Pending && covers == 0:
				settle(t, d, id, yes(approval.Once)) // it can still be answered
				continue
			case got.State == approval.Granted && got.Ended == nil && covers == 1:
				usable = 1
			case got.State == approval.Granted && got.Ended != nil && covers == 0:
			default:
				t.Errorf("ticket %s is %s, ended %+v, with %d grants", id, got.State, got.Ended, covers)
			}
			for i := range 2 {
				if _, err := d.Consume(ctx, got.Grant); (err == nil) != (i < usable) || err != nil && !errors.Is(err, approval.ErrEnded) {
					t.Errorf("Consume number %d after the kill = %v, want %d that are right", i, err, usable)
				}
			}
		}
	}
}

// consumeAll grants and lets many of two desks on two stores want the same grants:
// which were used how often, and of which that is not known.
func consumeAll(t *testing.T, desks []*approval.Desk, grants []string) (used, unsure map[string]int) {
	t.Helper()
	var mu sync.Mutex
	used, unsure = map[string]int{}, map[string]int{}
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			for _, id := range grants {
				_, err := desks[i%2].Consume(ctx, id)
				mu.Lock()
				switch {
				case err == nil:
					used[id]++
				case errors.Is(err, store.ErrUncertain):
					unsure[id]++
				case !errors.Is(err, approval.ErrEnded) && !errors.Is(err, store.ErrUnavailable):
					t.Errorf("Consume = %v", err)
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return used, unsure
}

func grantMany(t *testing.T, d *approval.Desk, n int) (grants []string) {
	for _, id := range askMany(t, d, n) {
		grants = append(grants, settle(t, d, id, yes(approval.Once)).Grant)
	}
	return grants
}

// TestConsumedOnce: a grant for one call that many want, on two replicas, is used once.
func TestConsumedOnce(t *testing.T) {
	a, b, _ := twoDesks(t, approval.Config{})
	grants := grantMany(t, a, 30)
	used, _ := consumeAll(t, []*approval.Desk{a, b}, grants)
	for _, id := range grants {
		if used[id] != 1 {
			t.Errorf("grant %s was used %d times, want once", id, used[id])
		}
	}
	wantHeld(t, a, 0)
}

// TestOutageConsume: the same while the server ends sessions again and again. No grant
// is used twice, and one that nobody was given can still be used, unless its use got
// through unknown to whom.
func TestOutageConsume(t *testing.T) {
	o := storetest.NewOutage(t)
	desks := []*approval.Desk{newDesk(t, storetest.Open(t, o.Address), approval.Config{}), newDesk(t, storetest.Open(t, o.Address), approval.Config{})}
	grants := grantMany(t, desks[0], 25)
	stop := o.Storm()
	used, unsure := consumeAll(t, desks, grants)
	stop()
	for _, id := range grants {
		if _, err := desks[0].Consume(ctx, id); err == nil {
			used[id]++
		} else if !errors.Is(err, approval.ErrEnded) {
			t.Errorf("Consume afterwards = %v", err)
		}
		if used[id] > 1 || used[id] == 0 && unsure[id] == 0 {
			t.Errorf("grant %s was used %d times, with %d not sure", id, used[id], unsure[id])
		}
	}
}
