package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"ken/internal/store"
)

// The variable that makes a test binary a child: the address of its store.
const variable = "KEN_STORETEST_CHILD"

// Main runs the tests. Every package that uses [Run] has it in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }
//
// Run starts the test binary again for cases of two processes; there Main does
// what the tests in the first one say.
func Main(m *testing.M) int {
	address, ok := os.LookupEnv(variable)
	if !ok {
		return m.Run()
	}
	if err := serve(address); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

type question struct {
	ID     int
	Do     string      // get, scan, apply, watch, stop, work
	Key    string      // or prefix, or job
	Steps  []step      `json:",omitempty"`
	Range  store.Range `json:",omitzero"`
	Number int64       // after, or arg, or the ID of what to stop
}

type answer struct {
	ID       int
	More     bool // another one follows
	Item     store.Item
	Found    bool
	Items    []store.Item
	Version  int64
	Change   store.Change
	Sent     string
	Failed   string
	Conflict *store.Conflict
}

// serve answers the questions on standard input.
func serve(address string) error {
	s, err := store.Open(context.Background(), address, "")
	if err != nil {
		return err
	}
	defer s.Close()
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	tell := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(a) // a parent that is gone closes our input too
	}
	tell(answer{ID: 0}) // open
	var watches sync.Map
	var asked sync.WaitGroup
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<16))
	for {
		var q question
		if err := in.Decode(&q); err != nil {
			asked.Wait()
			return nil
		}
		switch q.Do {
		case "watch": // the answer that it has begun comes first
			changes, stop := local{s}.watch(q.Key, q.Number)
			watches.Store(q.ID, stop)
			tell(answer{ID: q.ID, More: true, Found: true})
			asked.Go(func() {
				for c := range changes {
					tell(answer{ID: q.ID, More: true, Change: c})
				}
				tell(answer{ID: q.ID})
			})
		case "stop":
			if stop, ok := watches.LoadAndDelete(int(q.Number)); ok {
				go stop.(func())()
			}
		default:
			asked.Go(func() { tell(reply(s, q, tell)) })
		}
	}
}

func reply(s *store.Store, q question, tell func(answer)) answer {
	a := answer{ID: q.ID}
	var err error
	switch l := (local{s}); q.Do {
	case "get":
		a.Item, a.Found, err = l.get(q.Key)
	case "scan":
		a.Items, err = l.scan(q.Key, q.Range)
	case "apply":
		a.Version, err = l.apply(q.Steps...)
	case "work":
		err = jobs[q.Key](s, int(q.Number), func(text string) { tell(answer{ID: q.ID, More: true, Sent: text}) })
	}
	if err != nil && !errors.As(err, &a.Conflict) {
		a.Failed = err.Error()
	}
	return a
}

// A child is an actor in another process.
type child struct {
	t   testing.TB
	cmd *exec.Cmd

	mu      sync.Mutex
	out     *json.Encoder
	last    int
	waiting map[int]chan answer
	ended   bool
}

// start starts a process on the store and returns when it has opened it.
func start(t testing.TB, address string) *child {
	t.Helper()
	c := &child{t: t, waiting: map[int]chan answer{}}
	c.cmd = exec.Command(os.Args[0])
	// A program with the race detector would sleep for a second at its end.
	c.cmd.Env = append(os.Environ(), variable+"="+address, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.out = json.NewEncoder(in)
	opened := make(chan answer, 1)
	c.waiting[0] = opened
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(json.NewDecoder(bufio.NewReaderSize(out, 1<<16)))
	}()
	t.Cleanup(func() {
		in.Close()
		<-read
		_ = c.cmd.Wait() // killed, in some cases
	})
	if _, ok := <-opened; !ok {
		t.Fatal("the child did not open the store: see above")
	}
	return c
}

func (c *child) read(in *json.Decoder) {
	for {
		var a answer
		err := in.Decode(&a)
		c.mu.Lock()
		if err != nil {
			c.ended = true
			for _, w := range c.waiting {
				close(w)
			}
			c.mu.Unlock()
			return
		}
		w := c.waiting[a.ID]
		if !a.More {
			delete(c.waiting, a.ID)
		}
		c.mu.Unlock()
		w <- a
		if !a.More {
			close(w)
		}
	}
}

// ask returns the channel of the answers; it closes after the last one.
func (c *child) ask(q question) (int, <-chan answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	q.ID = c.last
	w := make(chan answer, 4096)
	if c.ended || c.out.Encode(q) != nil {
		close(w)
		return q.ID, w
	}
	c.waiting[q.ID] = w
	return q.ID, w
}

var errEnded = errors.New("the child has ended")

func (a answer) err() error {
	switch {
	case a.Conflict != nil:
		return a.Conflict
	case a.Failed != "":
		return errors.New(a.Failed)
	}
	return nil
}

func (c *child) one(q question) (answer, error) {
	_, answers := c.ask(q)
	a, ok := <-answers
	if !ok {
		return a, errEnded
	}
	return a, a.err()
}

func (c *child) get(key string) (store.Item, bool, error) {
	a, err := c.one(question{Do: "get", Key: key})
	return a.Item, a.Found, err
}

func (c *child) scan(prefix string, r store.Range) ([]store.Item, error) {
	a, err := c.one(question{Do: "scan", Key: prefix, Range: r})
	return a.Items, err
}

func (c *child) apply(steps ...step) (int64, error) {
	a, err := c.one(question{Do: "apply", Steps: steps})
	return a.Version, err
}

func (c *child) watch(prefix string, after int64) (<-chan store.Change, func()) {
	id, answers := c.ask(question{Do: "watch", Key: prefix, Number: after})
	<-answers // it has begun
	changes := make(chan store.Change)
	stopped := make(chan struct{})
	go func() {
		defer close(changes)
		for a := range answers {
			if a.More {
				select {
				case changes <- a.Change:
				case <-stopped:
				}
			}
		}
	}()
	return changes, sync.OnceFunc(func() {
		close(stopped)
		c.mu.Lock()
		if !c.ended {
			_ = c.out.Encode(question{Do: "stop", Number: int64(id)})
		}
		c.mu.Unlock()
		for range changes {
		}
	})
}

func (c *child) work(job string, arg int) (sent []string, err error) {
	_, answers := c.ask(question{Do: "work", Key: job, Number: int64(arg)})
	for a := range answers {
		if !a.More {
			return sent, a.err()
		}
		sent = append(sent, a.Sent)
	}
	return sent, errEnded
}
