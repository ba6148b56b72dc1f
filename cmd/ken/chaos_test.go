//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestChaos has four servers, three workers and 64 clients on one PostgreSQL. Clients call
// with keys and call again when something fails, add jobs, and try what they may not.
// Meanwhile processes are killed with SIGKILL and start again with another clock,
// PostgreSQL crashes, is killed, stops and starts, connections are cut, a disk is full,
// and a rule forbids the calls for a while. No effect happens twice, every call that was
// acknowledged is in the audit log, nothing happens that was not allowed, and calls work
// again soon after PostgreSQL does.
//
// KEN_CHAOS says for how long; without it, until each of these has happened once.
func TestChaos(t *testing.T) {
	testkit.Nightly(t, "replicas under kill -9")
	var lasts time.Duration
	if text := os.Getenv("KEN_CHAOS"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatalf("KEN_CHAOS: %v", err)
		}
	}
	const servers, workers, clients = 4, 3, 64
	pg := storetest.NewServer(t)
	wire := storetest.NewWire(t, pg.Address)
	binary := skewedKen(t)
	c := &chaos{t: t, all: newReplicas(t, servers, wire.Address), effects: "effects.txt", backs: map[string][]time.Duration{}}
	for _, r := range c.all {
		r.house.binary = binary
		r.configure(t, "jobs: {serve: false}\n"+shellOpen, wire.Address)
	}
	// The first server's home is a small disk, if that can be had.
	small := c.all[0].house.home
	free := smallDisk(t, small)
	for i := range c.all {
		if i == 0 && free != nil { // the disk is empty
			c.all[0].configure(t, "jobs: {serve: false}\n"+shellOpen, wire.Address)
		}
		c.kill(i)
	}
	for range workers {
		k := &house{binary: binary, home: t.TempDir(), work: c.all[0].work}
		r := &replica{house: k}
		r.configure(t, shellOpen, wire.Address)
		c.workers = append(c.workers, r)
		c.startWorker(len(c.workers) - 1)
	}
	c.allow()

	faults := []struct {
		name string
		do   func()
	}{
		{"kill a server", func() { c.kill(rand.IntN(servers)) }},
		{"crash of PostgreSQL", func() { pg.Crash(); c.back("crash of PostgreSQL") }},
		{"kill a worker", func() { c.killWorker(rand.IntN(workers)) }},
		{"cut connections", func() { wire.Cut(); c.back("cut connections") }},
		{"kill PostgreSQL", func() { pg.Kill(); c.back("kill of PostgreSQL") }},
		{"another clock", func() { c.skew(1+rand.IntN(servers-1), rand.IntN(workers)) }},
		{"restart PostgreSQL", func() { pg.Stop(); pg.Start(); c.back("restart of PostgreSQL") }},
		{"full disk", func() {
			if free == nil {
				t.Log("no disk can be filled here: mounting is not allowed")
				return
			}
			ballast := filepath.Join(small, "ballast")
			fillDisk(t, ballast)
			c.pause(2 * time.Second)
			if err := os.Remove(ballast); err != nil {
				t.Error(err)
			}
			c.back("full disk")
		}},
		{"no way to PostgreSQL", func() { wire.Down(); c.pause(3 * time.Second); wire.Up(); c.back("no way to PostgreSQL") }},
		{"forbid by a rule", func() { c.forbid() }},
	}
	var working sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range clients {
		switch {
		case i%16 == 0:
			working.Go(func() { c.stranger(ctx, i) })
		case i%8 == 1:
			working.Go(func() { c.adder(ctx, i) })
		default:
			working.Go(func() { c.client(ctx, i) })
		}
	}
	c.pause(5 * time.Second)
	over, ended := context.WithTimeout(ctx, lasts)
	defer ended()
	for n := 0; n < len(faults) || over.Err() == nil; n++ {
		f := faults[n%len(faults)]
		f.do()
		c.pause(time.Second)
	}
	stop()
	working.Wait()
	c.settle()
	c.settleJobs()
	for after, took := range c.backs {
		slices.Sort(took)
		c.t.Logf("after %s calls work on all servers in %v (median of %d), slowest %v", after, took[len(took)/2], len(took), took[len(took)-1])
	}
}

// pause lets the clients work.
func (c *chaos) pause(d time.Duration) {
	select {
	case <-c.t.Context().Done():
	case <-time.After(d):
	}
}

// configure writes the settings of a replica, which read them live.
func (r *replica) configure(t *testing.T, text, address string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.house.home, "ken.yaml"), fmt.Appendf(nil, "store: %q\n%s", address, text), 0o600); err != nil {
		t.Fatal(err)
	}
}

type chaos struct {
	t       *testing.T
	effects string

	mu      sync.Mutex
	all     []*replica
	workers []*replica
	jobs    map[string]string // ids by the word of the call
	ran     [][2]time.Time    // when calls began and ended that had an effect now
	closed  [][2]time.Time    // when no call was allowed

	backs map[string][]time.Duration // how long calls did not work, by the fault; for the log

	acknowledged sync.Map // the id of an effect, by the word of the call
	broken       sync.Map // the same, of commands that failed
	done, failed atomic.Int64
	tries        atomic.Int64 // of strangers
}

func (c *chaos) pick(i int) *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[i%len(c.all)].server
}

// call runs a command under a key on a server.
func (c *chaos) call(ctx context.Context, s *server, word string) (int, invoked, error) {
	body, _ := json.Marshal(map[string]any{
		"session": "chaos", "target": "tool:shell", "key": word, "arguments": map[string]any{"cmd": "echo " + word + " >> " + c.effects},
	})
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v1/invoke", bytes.NewReader(body))
	if err != nil {
		return 0, invoked{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, invoked{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var got invoked
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	return resp.StatusCode, got, err
}

// allow has a person allow the command for the session.
func (c *chaos) allow() {
	c.t.Helper()
	s := c.pick(0)
	var got invoked
	if !testkit.Until(func() bool {
		_, got, _ = c.call(c.t.Context(), s, "first")
		return got.ticket() != ""
	}) {
		c.t.Fatalf("the call needs no approval: %+v", got)
	}
	status, text := s.ask(c.t, http.MethodPost, "/api/v1/approvals/"+got.ticket(), s.token, map[string]any{"effect": "grant", "scope": "session", "covers": "tool"})
	if status != http.StatusOK {
		c.t.Fatalf("allow: %d %s", status, text)
	}
}

// A request of a client with nothing but a token. It returns 0 where there is no answer.
func (c *chaos) request(ctx context.Context, s *server, token, method, path string, body, into any) int {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	status, text, err := requestTo(ctx, method, s.url+path, token, body)
	if err != nil || into != nil && json.Unmarshal(text, into) != nil {
		return 0
	}
	return status
}

// stranger tries what was never allowed: a call in another session, and a token that
// does not exist.
func (c *chaos) stranger(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		s := c.pick(i + n)
		body := map[string]any{"session": fmt.Sprint("stranger", i), "target": "tool:shell", "arguments": map[string]any{"cmd": fmt.Sprintf("echo bad-%d-%d >> %s", i, n, c.effects)}}
		token := s.token
		if n%2 == 1 {
			token, body["session"] = "ken_no_such_token_at_all", "chaos"
		}
		if c.request(ctx, s, token, http.MethodPost, "/api/v1/invoke", body, nil) == http.StatusOK {
			c.t.Errorf("a stranger's call %d-%d was allowed", i, n)
		}
		c.tries.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond): // each leaves a question for a person
		}
	}
}

// adder adds jobs, each with a word of its own: an answer that never came leaves open
// whether the job is there.
func (c *chaos) adder(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		word := fmt.Sprintf("job-%d-%d", i, n)
		s := c.pick(i + n)
		var added struct{ ID string }
		body := map[string]any{"session": "chaos", "target": "tool:shell", "arguments": map[string]any{"cmd": "echo " + word + " >> " + c.effects}}
		if c.request(ctx, s, s.token, http.MethodPost, "/api/v1/jobs", body, &added) == http.StatusAccepted {
			c.mu.Lock()
			if c.jobs == nil {
				c.jobs = map[string]string{}
			}
			c.jobs[word] = added.ID
			c.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// settleJobs waits until every job that was acknowledged has ended, and compares that
// with what happened.
func (c *chaos) settleJobs() {
	times := c.times()
	states, whys := map[string]int{}, map[string]int{}
	for word, id := range c.jobs {
		var job struct{ State, Why string }
		ended := func() bool {
			s := c.pick(0)
			c.request(c.t.Context(), s, s.token, http.MethodGet, "/api/v1/jobs/"+id, nil, &job)
			return job.State == "done" || job.State == "failed" || job.State == "unknown" || job.State == "cancelled"
		}
		if !testkit.Until(ended) {
			c.t.Errorf("job %s (%s) never ends: %+v", id, word, job)
		}
		states[job.State]++
		if job.State != "done" {
			whys[job.State+": "+strings.ReplaceAll(job.Why, id, "ID")]++
		}
		if n := times[word]; job.State == "done" && n != 1 {
			if n = c.times()[word]; n != 1 { // it ended only now
				c.t.Errorf("job %s is done, and %s happened %d times", id, word, n)
			}
		}
	}
	for word, n := range c.times() {
		if n > 1 {
			c.t.Errorf("%s had its effect %d times", word, n)
		}
	}
	c.t.Logf("jobs: %d acknowledged, %v", len(c.jobs), states)
	for why, n := range whys {
		c.t.Logf("%d jobs %s", n, why)
	}
	if len(c.jobs) == 0 || states["done"] == 0 {
		c.t.Error("no job was done")
	}
}

// startWorker starts a worker.
func (c *chaos) startWorker(i int) {
	c.t.Helper()
	r := c.workers[i]
	s := &server{cmd: r.house.command("worker")}
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	r.server = s
}

func (c *chaos) killWorker(i int) {
	r := c.workers[i]
	_ = r.server.cmd.Process.Kill()
	_ = r.server.cmd.Wait()
	c.startWorker(i)
}

// skew kills a server and a worker, and starts them again with wrong clocks.
func (c *chaos) skew(server, worker int) {
	for _, k := range []*house{c.all[server].house, c.workers[worker].house} {
		k.env = []string{fmt.Sprintf("%s=%d", skewVariable, []int{-5400, -90, 0, 90, 5400}[rand.IntN(5)])}
	}
	c.kill(server)
	c.killWorker(worker)
}

// forbid has a rule forbid the command on all servers, and then allow it again. A call
// that begins a second later has no effect.
func (c *chaos) forbid() {
	config := func(args ...string) {
		var out []byte
		if !testkit.Until(func() (ok bool) {
			var err error
			out, err = c.all[1].command(append([]string{"config"}, args...)...).CombinedOutput()
			return err == nil
		}) {
			c.t.Fatalf("ken config %v:\n%s", args, out)
		}
	}
	config("set", "--shared", "policy.toolAccess", "{tools: {shell: {enabled: false}}}")
	from := time.Now().Add(time.Second)
	c.pause(3 * time.Second)
	to := time.Now()
	config("unset", "--shared", "policy.toolAccess")
	c.mu.Lock()
	c.closed = append(c.closed, [2]time.Time{from, to})
	c.mu.Unlock()
	c.back("forbidden by a rule")
}

// client makes calls, each until it is answered.
func (c *chaos) client(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		word := fmt.Sprintf("w-%d-%d", i, n)
		for try := 0; ctx.Err() == nil; try++ {
			began := time.Now()
			status, got, err := c.call(ctx, c.pick(i+n+try), word)
			if err == nil && status == http.StatusOK {
				if got.Result.Meta["repeated"] == "" {
					c.mu.Lock()
					c.ran = append(c.ran, [2]time.Time{began, time.Now()})
					c.mu.Unlock()
				}
				if got.Result.Failed { // the command did, on a full disk for example, and that is recorded too
					c.broken.Store(word, got.Result.Meta["effect"])
					break
				}
				c.acknowledged.Store(word, got.Result.Meta["effect"])
				c.done.Add(1)
				break
			}
			if err == nil && got.Rule == "effect.unknown" { // a person would have to look
				break
			}
			c.failed.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// kill kills a server with SIGKILL and starts it again.
func (c *chaos) kill(i int) {
	c.mu.Lock()
	r := c.all[i]
	c.mu.Unlock()
	_ = r.server.cmd.Process.Kill()
	_ = r.server.cmd.Wait()
	again := r.house.serve(c.t)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.server = again
}

// back waits until a call works again on each server.
func (c *chaos) back(after string) {
	began := time.Now()
	var all sync.WaitGroup
	for i := range c.all {
		all.Go(func() {
			word := fmt.Sprintf("back-%d-%d", i, began.UnixNano())
			var last string
			if !testkit.Until(func() bool {
				status, got, err := c.call(c.t.Context(), c.pick(i), word)
				last = fmt.Sprintf("%d %+v %v", status, got, err)
				return err == nil && status == http.StatusOK
			}) {
				c.t.Errorf("after %s calls never work again: %s", after, last)
			}
		})
	}
	all.Wait()
	c.backs[after] = append(c.backs[after], time.Since(began).Round(time.Millisecond))
}

// times counts what happened.
func (c *chaos) times() map[string]int {
	text, err := os.ReadFile(filepath.Join(c.all[0].work, c.effects))
	if err != nil {
		c.t.Fatal(err)
	}
	times := map[string]int{}
	for _, word := range strings.Fields(string(text)) {
		times[word]++
	}
	return times
}

// unrecorded counts the calls whose end is not in the audit log.
func (c *chaos) unrecorded(calls *sync.Map, event string) int {
	recorded := map[string]bool{}
	for _, r := range c.all {
		files, _ := filepath.Glob(filepath.Join(r.house.home, "audit", "*.jsonl"))
		for _, file := range files {
			log, err := os.ReadFile(file)
			if err != nil {
				c.t.Fatal(err)
			}
			for line := range bytes.Lines(log) {
				var rec struct {
					Event  string
					Effect string `json:"effect_id"`
				}
				if json.Unmarshal(line, &rec) == nil && rec.Event == event {
					recorded[rec.Effect] = true
				}
			}
		}
	}
	n := 0
	calls.Range(func(_, effect any) bool {
		if !recorded[effect.(string)] {
			n++
		}
		return true
	})
	return n
}

// settle compares what was acknowledged with what happened and what was recorded.
func (c *chaos) settle() {
	times := c.times()
	twice, missing, unrecorded := 0, 0, 0
	for word, n := range times {
		if n > 1 {
			twice++
			c.t.Errorf("%s had its effect %d times", word, n)
		}
		if strings.HasPrefix(word, "bad-") {
			c.t.Errorf("%s happened, which was never allowed", word)
		}
	}
	for _, ran := range c.ran {
		for _, w := range c.closed {
			if ran[0].After(w[0]) && ran[1].Before(w[1]) { // one that ended later may have been decided when it was allowed again
				c.t.Errorf("a call that began %v after a rule forbade it had an effect", ran[0].Sub(w[0])+time.Second)
			}
		}
	}
	c.acknowledged.Range(func(word, _ any) bool {
		if times[word.(string)] == 0 {
			missing++
		}
		return true
	})
	// The files that are read here follow the log within a moment.
	testkit.Until(func() bool {
		unrecorded = c.unrecorded(&c.acknowledged, "capability_executed") + c.unrecorded(&c.broken, "capability_failed")
		return unrecorded == 0
	})
	if missing > 0 || unrecorded > 0 {
		c.t.Errorf("of %d acknowledged calls %d had no effect and %d are not in the audit log", c.done.Load(), missing, unrecorded)
	}
	if c.done.Load() == 0 {
		c.t.Error("no call was acknowledged")
	}
	broken := 0
	c.broken.Range(func(_, _ any) bool { broken++; return true })
	c.t.Logf("%d calls acknowledged, %d commands failed, %d tries failed, %d effects, %d twice; %d attempts of strangers, %d periods in which a rule forbade all calls", c.done.Load(), broken, c.failed.Load(), len(times), twice, c.tries.Load(), len(c.closed))
}
