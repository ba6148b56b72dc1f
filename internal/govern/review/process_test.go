package review_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// What makes a test binary a child: its job and the store.
const (
	childJob   = "KEN_REVIEW_JOB"
	childStore = "KEN_REVIEW_STORE"
)

// serve answers, for each word on standard input, with a line.
func serve(string) error {
	s, err := store.Open(context.Background(), os.Getenv(childStore), "")
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := review.New(s, review.Config{})
	if err != nil {
		return err
	}
	x, a := base()
	m, err := review.Of(x, []*capability.Capability{a})
	if err != nil {
		return err
	}
	book := bookOf(m)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var word string
		if err := in.Decode(&word); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var answer error
		switch word {
		case "check":
			answer = d.Check(ctx, pia.Tenant, book, a)
		case "enable":
			st, err := d.Status(ctx, pia.Tenant, m)
			if answer = err; err == nil {
				_, answer = d.Enable(ctx, m, st.Shown, yes("from there"))
			}
		case "disable":
			_, answer = d.Disable(ctx, m.Key(), yes("from there"))
		}
		text := ""
		if answer != nil {
			text = answer.Error()
		}
		if err := out.Encode(text); err != nil {
			return err
		}
	}
}

type child struct {
	in  *json.Encoder
	out *json.Decoder
}

func start(t *testing.T, address string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"=serve", childStore+"="+address, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	return &child{json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
}

func (c *child) ask(t *testing.T, word string) string {
	t.Helper()
	var text string
	if err := c.in.Encode(word); err != nil {
		t.Fatal(err)
	}
	if err := c.out.Decode(&text); err != nil {
		t.Fatalf("%s: %v", word, err)
	}
	return text
}

// TestTwoProcesses: what one process says holds in the other from the moment
// that it has been said, in both directions and again and again.
func TestTwoProcesses(t *testing.T) {
	address := storetest.Address(t)
	x, a := base()
	m := must(review.Of(x, []*capability.Capability{a}))
	book := bookOf(m)
	d := newDesk(t, storetest.Open(t, address), review.Config{})
	there := start(t, address)
	for round := range 30 {
		if there.ask(t, "check") == "" || d.Check(ctx, pia.Tenant, book, a) == nil {
			t.Fatalf("round %d: it is on, want off", round)
		}
		if round%2 == 0 {
			enable(t, d, m)
		} else if answer := there.ask(t, "enable"); answer != "" {
			t.Fatalf("round %d: enable there = %s", round, answer)
		}
		if answer := there.ask(t, "check"); answer != "" {
			t.Fatalf("round %d: check there = %s, want it on", round, answer)
		}
		if err := d.Check(ctx, pia.Tenant, book, a); err != nil {
			t.Fatalf("round %d: Check here = %v, want it on", round, err)
		}
		if round%3 == 0 {
			if _, err := d.Disable(ctx, m.Key(), yes("")); err != nil {
				t.Fatal(err)
			}
		} else if answer := there.ask(t, "disable"); answer != "" {
			t.Fatalf("round %d: disable there = %s", round, answer)
		}
	}
}
