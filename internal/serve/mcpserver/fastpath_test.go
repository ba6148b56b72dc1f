package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// A wire is a client that writes its own lines.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func newWire(t *testing.T, s *Server) *wire {
	t.Helper()
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), ada, there, Hello{}) }()
	t.Cleanup(func() {
		here.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	w := &wire{t, here, bufio.NewReader(here)}
	w.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`)
	w.hear()
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *wire) say(line string) {
	w.t.Helper()
	if _, err := w.conn.Write([]byte(line + "\n")); err != nil {
		w.t.Fatal(err)
	}
}

type heard struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (w *wire) hear() heard {
	w.t.Helper()
	line := testkit.Must(w.in.ReadString('\n'))(w.t)
	var h heard
	if err := json.Unmarshal([]byte(line), &h); err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	return h
}

// TestBadLines: what is no message is answered, and the session goes on.
func TestBadLines(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	cfg.MaxBody = 200 << 10
	w := newWire(t, New(cfg))
	for line, code := range map[string]int{
		`{`: -32700, "\x00\xff": -32700, `null`: -32600, `7`: -32600, `{"jsonrpc":"1.0","id":1,"method":"ping"}`: -32600,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("y", 300<<10) + `"}}`: -32600,
		`[]`: -32600, `[7]`: -32600, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: -32600,
		`{"jsonrpc":"2.0"}`: -32600, `{"jsonrpc":"2.0","result":{}}`: -32600, `{"jsonrpc":"2.0","id":1,"method":5}`: -32600, `{"jsonrpc":"2.0","id":1,"error":5}`: -32600,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}}`: -32600,
	} {
		w.say(line)
		if h := w.hear(); h.Error == nil || h.Error.Code != code || string(h.ID) != "null" {
			t.Errorf("%.40s gave %s %s %+v, want error %d", line, h.ID, h.Result, h.Error, code)
		}
	}
	// Longer than a buffer, and fine.
	w.say(`{"jsonrpc":"2.0","id":"p","method":"ping","params":{"_meta":{"x":"` + strings.Repeat("y", 150<<10) + `"}}}`)
	if h := w.hear(); h.Error != nil || string(h.ID) != `"p"` {
		t.Errorf("a long ping gave %s %+v", h.ID, h.Error)
	}
	w.say("")
	w.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"invoke_capability","arguments":{"capability":"tool:greet","arguments":{"name":"Ada"}}}}`)
	if h := w.hear(); h.Error != nil || !strings.Contains(string(h.Result), "Ada") || strings.Contains(string(h.Result), `"isError":true`) {
		t.Errorf("a call after all that gave %s %+v", h.Result, h.Error)
	}
}

// TestCallsAreBounded: a client that calls and does not listen is told, and
// holds nobody up; what it cancels has no answer.
func TestCallsAreBounded(t *testing.T) {
	started := make(chan struct{}, 1000)
	release := make(chan struct{})
	b := newBench(t, func(b *bench) {
		b.tool("tool:wait", `{"type":"object"}`, capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			started <- struct{}{}
			select {
			case <-release:
				return capability.Result{Parts: []capability.Part{{Text: "done"}}}, nil
			case <-ctx.Done():
				return capability.Result{}, ctx.Err()
			}
		})
	})
	w := newWire(t, New(b.config()))
	call := func(id int) {
		w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"invoke_capability","arguments":{"capability":"tool:wait","arguments":{}}}}`, id))
	}
	call(1)
	<-started
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for id := 2; id < maxRunning+2; id++ {
		call(id)
	}
	refused := 0
	for id := maxRunning + 2; id < maxRunning+12; id++ {
		call(id)
		h := w.hear()
		if string(h.ID) == "1" {
			t.Errorf("a call that was cancelled was answered: %s %+v", h.Result, h.Error)
		}
		if strings.Contains(string(h.Result), "run already") {
			refused++
		}
	}
	close(release)
	if refused < 9 { // the cancelled one may have given its place back in between
		t.Errorf("%d of 10 calls too many were refused", refused)
	}
}
