package pin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"ken/internal/govern/pin"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// childStore makes the test binary a child with a desk on this store.
const childStore = "KEN_PIN_STORE"

// A request is what a child is asked: to check a listing.
type request struct {
	Server string
	Tools  []pin.Tool
}

func serve() error {
	s, err := store.Open(context.Background(), os.Getenv(childStore), "")
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := pin.New(s, pin.Config{})
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		if err := in.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		v, err := d.Check(ctx, r.Server, r.Tools)
		if err != nil {
			return err
		}
		if err := out.Encode(v); err != nil {
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
	cmd.Env = append(os.Environ(), childStore+"="+address, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
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

func (c *child) check(r request) (v map[string]pin.Verdict, err error) {
	if err = c.in.Encode(r); err == nil {
		err = c.out.Decode(&v)
	}
	return v, err
}

// TestRace: of many that list a server first with different tools, in two
// processes, one is trusted; and no name is given to two servers.
func TestRace(t *testing.T) {
	address := storetest.Address(t)
	s := storetest.Open(t, address)
	desks := []*pin.Desk{newDesk(t, s, pin.Config{}), newDesk(t, s, pin.Config{})}
	there := start(t, address)
	names := map[string]string{}
	for round := range 12 {
		var mu sync.Mutex
		accepted := map[string]map[string]bool{} // server → descriptions that were trusted
		var group sync.WaitGroup
		see := func(server, text string, v map[string]pin.Verdict, err error) {
			mu.Lock()
			defer mu.Unlock()
			got := v["tool"]
			if err != nil || got.State == pin.Unknown {
				t.Errorf("round %d: Check(%s) = %+v, %v", round, server, got, err)
			}
			if other := names[got.Exposed]; got.Exposed != "" && other != "" && other != server {
				t.Errorf("round %d: the name %q was given to %q and to %q", round, got.Exposed, other, server)
			}
			names[got.Exposed] = server
			if got.State == pin.Accepted {
				if accepted[server] == nil {
					accepted[server] = map[string]bool{}
				}
				accepted[server][text] = true
			}
		}
		for i := range 2 {
			server := fmt.Sprintf("server%d-%d", round, i)
			for who, d := range desks {
				group.Go(func() {
					tool := named("tool")
					tool.Description = fmt.Sprint("desk ", who)
					v, err := d.Check(ctx, server, []pin.Tool{tool})
					see(server, tool.Description, v, err)
				})
			}
		}
		group.Go(func() {
			for i := range 2 {
				server := fmt.Sprintf("server%d-%d", round, i)
				tool := named("tool")
				tool.Description = "there"
				v, err := there.check(request{server, []pin.Tool{tool}})
				see(server, tool.Description, v, err)
			}
		})
		group.Wait()
		for server, texts := range accepted {
			if len(texts) != 1 {
				t.Errorf("round %d: of %s %v were trusted, want one", round, server, texts)
			}
		}
		if len(accepted) != 2 {
			t.Errorf("round %d: %d servers were trusted, want 2", round, len(accepted))
		}
	}
}

// TestTwoProcesses: what waits in one process can be accepted in the other, and
// holds there and here from then on.
func TestTwoProcesses(t *testing.T) {
	address := storetest.Address(t)
	d := newDesk(t, storetest.Open(t, address), pin.Config{})
	there := start(t, address)
	tool := readFile()
	for round := range 20 {
		tool.Description = fmt.Sprint("round ", round)
		want := pin.Changed
		if round == 0 {
			want = pin.Accepted
		}
		v, err := there.check(request{"s", []pin.Tool{tool}})
		if err != nil || v["read_file"].State != want {
			t.Fatalf("round %d: Check there = %v, %v, want %v", round, v, err, want)
		}
		accept(t, d, "s")
		wantState(t, check(t, d, "s", tool), "read_file", pin.Accepted)
		if v, err = there.check(request{"s", []pin.Tool{tool}}); err != nil || v["read_file"].State != pin.Accepted {
			t.Fatalf("round %d: Check there = %v, %v, want accepted", round, v, err)
		}
	}
}
