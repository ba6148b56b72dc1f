package approval_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// What makes a test binary a child: its job, the store, and its name.
const (
	childJob   = "KEN_APPROVAL_JOB"
	childStore = "KEN_APPROVAL_STORE"
	childName  = "KEN_APPROVAL_NAME"
)

// A job works on ids and says what came of it.
type job func(d *approval.Desk, name string, ids []string, say func(what, id, more string)) error

var jobs = map[string]job{"settle": settleJob, "consume": consumeJob, "live": liveJob}

// serve opens the store, says so, reads the ids, and does the job.
func serve(work job) error {
	s, err := store.Open(ctx, os.Getenv(childStore), "")
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := approval.New(s, approval.Config{Approvers: []string{"operator"}, Pending: manyPending})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(what, id, more string) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode([3]string{what, id, more}) // a parent that is gone needs no word
	}
	say("open", "", "")
	var ids []string
	if err := json.NewDecoder(os.Stdin).Decode(&ids); err != nil {
		return err
	}
	return work(d, os.Getenv(childName), ids, say)
}

// A child is a process that does a job.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func start(t *testing.T, address, work, name string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childJob+"="+work, childStore+"="+address, childName+"="+name, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.in, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.out = json.NewDecoder(bufio.NewReader(out))
	t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait() // killed, in most cases
	})
	if said, ok := c.next(); !ok || said[0] != "open" {
		t.Fatal("the child did not open the store: see above")
	}
	return c
}

func (c *child) next() (said [3]string, ok bool) {
	err := c.out.Decode(&said)
	return said, err == nil
}

// together starts children on a job at the same time and gives what each said.
func together(t *testing.T, address, work string, n int, ids []string) [][][3]string {
	t.Helper()
	var children []*child
	for i := range n {
		children = append(children, start(t, address, work, fmt.Sprintf("p%d", i)))
	}
	all := make([][][3]string, n)
	var done sync.WaitGroup
	for i, c := range children {
		done.Go(func() {
			if err := json.NewEncoder(c.in).Encode(ids); err != nil {
				t.Error(err)
			}
			for said, ok := c.next(); ok; said, ok = c.next() {
				all[i] = append(all[i], said)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("child %d: %v", i, err)
			}
		})
	}
	done.Wait()
	return all
}

func settleJob(d *approval.Desk, name string, ids []string, say func(what, id, more string)) error {
	return each(ids, 8, func(id string) error {
		a := no(approval.Once)
		if name == "p0" {
			a = yes(approval.Once)
		}
		a.By = pia
		a.By.ID = name
		t, err := d.Settle(ctx, id, a)
		switch {
		case err == nil:
			say("won", id, string(t.State))
		case errors.Is(err, approval.ErrSettled):
			say("lost", id, t.Answer.By.ID)
		default:
			return err
		}
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

// TestTwoProcessesSettle: 200 tickets, two processes that answer each of them:
// one of them wins each, and the other is told who did.
func TestTwoProcessesSettle(t *testing.T) {
	address := storetest.Address(t)
	d := newDesk(t, storetest.Open(t, address), approval.Config{})
	ids := askMany(t, d, 200)
	winner := map[string]string{}
	said := together(t, address, "settle", 2, ids)
	wins := make([]int, 2)
	for i, lines := range said {
		for _, l := range lines {
			if l[0] == "won" {
				if winner[l[1]] != "" {
					t.Errorf("ticket %s was settled twice", l[1])
				}
				winner[l[1]] = fmt.Sprintf("p%d", i)
				wins[i]++
			}
		}
	}
	if len(winner) != len(ids) {
		t.Errorf("%d of %d tickets were settled", len(winner), len(ids))
	}
	for _, lines := range said {
		for _, l := range lines {
			if l[0] == "lost" && l[2] != winner[l[1]] {
				t.Errorf("ticket %s: the loser was told %s, the winner is %s", l[1], l[2], winner[l[1]])
			}
		}
	}
	held, err := d.Held(ctx, approval.Filter{Tenant: "acme"})
	if err != nil || len(held) != wins[0] {
		t.Errorf("%d grants, %v; p0 granted %d", len(held), err, wins[0])
	}
	for _, id := range ids {
		got, err := d.Get(ctx, id)
		if err != nil || got.Answer == nil || got.Answer.By.ID != winner[id] || (got.State == approval.Granted) != (winner[id] == "p0") || (got.Grant != "") != (winner[id] == "p0") {
			t.Errorf("Get(%s) = %s by %+v, %v; winner %s", id, got.State, got.Answer, err, winner[id])
		}
	}
	t.Logf("settled by each: %v", wins)
}

// askMany asks as many different questions, on several goroutines, so that
// commits are shared.
func askMany(t *testing.T, d *approval.Desk, n int) []string {
	t.Helper()
	ids := make([]string, n)
	var numbers []string
	for i := range n {
		numbers = append(numbers, fmt.Sprint(i))
	}
	err := each(numbers, 32, func(number string) error {
		q := about(callOf(`{"n":` + number + `}`))
		q.Widest = approval.Once
		ticket, err := d.Ask(ctx, q)
		var i int
		fmt.Sscan(number, &i)
		ids[i] = ticket.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func consumeJob(d *approval.Desk, _ string, ids []string, say func(what, id, more string)) error {
	errs := make([]error, 16)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() {
			for _, id := range ids { // all of them at the same grant
				_, err := d.Consume(ctx, id)
				switch {
				case err == nil:
					say("used", id, "")
				case errors.Is(err, approval.ErrEnded) && strings.Contains(err.Error(), "spent"):
				default:
					errs[i] = err
				}
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// TestTwoProcessesConsume: a grant for one call, and 16 goroutines in each of
// two processes that want to use it.
func TestTwoProcessesConsume(t *testing.T) {
	address := storetest.Address(t)
	d := newDesk(t, storetest.Open(t, address), approval.Config{})
	var grants []string
	for _, id := range askMany(t, d, 30) {
		grants = append(grants, settle(t, d, id, yes(approval.Once)).Grant)
	}
	used := map[string]int{}
	for _, lines := range together(t, address, "consume", 2, grants) {
		for _, l := range lines {
			if l[0] == "used" {
				used[l[1]]++
			}
		}
	}
	for _, id := range grants {
		if used[id] != 1 {
			t.Errorf("grant %s was used %d times, want once", id, used[id])
		}
	}
	if held, err := d.Held(ctx, approval.Filter{Tenant: "acme"}); err != nil || len(held) != 0 {
		t.Errorf("Held = %d, %v; want none", len(held), err)
	}
}

// liveJob settles and consumes, on a few goroutines, and says each when done.
func liveJob(d *approval.Desk, _ string, ids []string, say func(what, id, more string)) error {
	return each(ids, 4, func(id string) error {
		t, err := d.Settle(ctx, id, yes(approval.Once))
		if err != nil {
			return err
		}
		say("granted", id, t.Grant)
		if _, err := d.Consume(ctx, t.Grant); err != nil {
			return err
		}
		say("used", id, t.Grant)
		return nil
	})
}

// TestKilled: a process is killed while it settles and consumes. What it had
// said holds, every ticket is in one state, and what was granted and not used
// can be used, once.
func TestKilled(t *testing.T) {
	for round := range 4 {
		address := storetest.Address(t)
		d := newDesk(t, storetest.Open(t, address), approval.Config{})
		ids := askMany(t, d, 60)
		c := start(t, address, "live", "p0")
		if err := json.NewEncoder(c.in).Encode(ids); err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		n := 0
		for l, ok := c.next(); ok; l, ok = c.next() {
			said[l[0]+" "+l[1]] = true
			if n++; n == 10+13*round {
				if err := c.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		states := map[string]int{}
		for _, id := range ids {
			got, err := d.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if said["granted "+id] && got.State != approval.Granted || said["used "+id] && (got.Ended == nil || got.Ended.How != "spent") {
				t.Errorf("ticket %s is %s, ended %+v, after granted %t and used %t were said", id, got.State, got.Ended, said["granted "+id], said["used "+id])
			}
			covers := len(grantsFor(t, d, got.Question.Call))
			switch {
			case got.State == approval.Pending && covers == 0:
				states["pending"]++
				settle(t, d, id, yes(approval.Once)) // it can still be answered
			case got.State == approval.Granted && got.Ended == nil && covers == 1:
				states["granted"]++
				if _, err := d.Consume(ctx, got.Grant); err != nil {
					t.Errorf("Consume after the kill = %v", err)
				}
				if _, err := d.Consume(ctx, got.Grant); !errors.Is(err, approval.ErrEnded) {
					t.Errorf("a second Consume after the kill = %v", err)
				}
			case got.State == approval.Granted && got.Ended != nil && covers == 0:
				states["used"]++
				if _, err := d.Consume(ctx, got.Grant); !errors.Is(err, approval.ErrEnded) {
					t.Errorf("Consume of a used grant after the kill = %v", err)
				}
			default:
				t.Errorf("ticket %s is %s, ended %+v, with %d grants", id, got.State, got.Ended, covers)
			}
		}
		t.Logf("killed after %d words: %v", n, states)
	}
}
