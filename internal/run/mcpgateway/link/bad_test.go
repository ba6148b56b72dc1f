//go:build unix

package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
)

func TestHangsAtInitialize(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := link.Open(ctx, link.Config{Target: link.Target{Name: "tester", Start: start("hangs at initialize")}})
	if capability.KindOf(err) != capability.Timeout || !strings.Contains(err.Error(), "startTimeout") {
		t.Errorf("Open(hangs) = %v, want a timeout that names startTimeout", err)
	}
}

// TestUnknownVersion: the error names the version of the server and those of Ken,
// not how the process ended because Ken left.
func TestUnknownVersion(t *testing.T) {
	_, err := link.Open(soon(t), link.Config{Target: link.Target{Name: "tester", Start: start("speaks another version")}})
	if capability.KindOf(err) != capability.Unavailable {
		t.Fatalf("Open = %v, want unavailable", err)
	}
	for _, want := range []string{"2099-01-01", "2025-11-25", "2024-11-05"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want it to say %s", err, want)
		}
	}
}

func TestDiesAtInitialize(t *testing.T) {
	_, err := link.Open(soon(t), link.Config{Target: link.Target{Name: "tester", Start: start("dies at initialize")}})
	if capability.KindOf(err) != capability.Unavailable {
		t.Fatalf("Open(dies) = %v, want unavailable", err)
	}
	for _, want := range []string{"no such database", "exit status 7", "mcp.servers.tester"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Open(dies) = %v, want it to say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\x1b") {
		t.Errorf("Open(dies) = %q, which holds an escape", err)
	}
}

// TestUnreachable: the error says what the network said, without the steps of the
// SDK that led there.
func TestUnreachable(t *testing.T) {
	for _, sse := range []bool{false, true} {
		_, err := link.Open(soon(t), link.Config{Target: link.Target{Name: "tester", URL: "http://127.0.0.1:1/mcp", SSE: sse}})
		if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "cannot be reached: http://127.0.0.1:1/mcp: dial tcp 127.0.0.1:1: connect: connection refused") {
			t.Errorf("Open(sse %v) = %v, want the network's cause", sse, err)
		}
		for _, noise := range []string{"calling", "sending", "transport"} {
			if err != nil && strings.Contains(err.Error(), noise) {
				t.Errorf("Open(sse %v) = %v, which says %q", sse, err, noise)
			}
		}
	}
}

func TestOldHandshakes(t *testing.T) {
	for _, mode := range []string{"dies of discover", "ignores discover", "noise"} {
		t.Run(mode, func(t *testing.T) {
			l, err := link.Open(soon(t), link.Config{Target: link.Target{Name: "tester", Start: start(mode)}})
			if err != nil {
				t.Fatalf("Open(%s) = %v", mode, err)
			}
			defer l.Close()
			if got := l.Info(); got.Protocol != "2025-03-26" || got.Name != "bad" || got.Pid == 0 {
				t.Errorf("Info() = %+v, want protocol 2025-03-26 of bad", got)
			}
			res, err := l.Call(soon(t), callOf(`{}`), "echo")
			if err != nil || textOf(res) != mode {
				t.Errorf("Call(echo) = %v, %v, want %s", res, err, mode)
			}
			if n, sample := l.Noise(); mode == "noise" && (n != 7 || !strings.Contains(sample, "starting up")) {
				t.Errorf("Noise() = %d, %q, want 7 lines from the start", n, sample)
			}
		})
	}
}

func TestBadCalls(t *testing.T) {
	var changes atomic.Int64
	l := open(t, link.Config{Target: link.Target{Start: start("x")}, Changed: func(string) { changes.Add(1) }})
	for _, test := range []struct {
		tool string
		text string               // of the result
		kind capability.ErrorKind // of the error, where text is empty
		says string
	}{
		{tool: "flood stdout", text: "done"},
		{tool: "flood notifications", text: "done"},
		{tool: "invalid", text: "after"},
		{tool: "wrong shape", kind: capability.Upstream, says: "violates the protocol"},
		{tool: "huge", kind: capability.Unavailable, says: "the limit is 16777216"},
		{tool: "huge backwards", kind: capability.Unavailable, says: "the limit is 16777216"},
		{tool: "huge unknown", kind: capability.Unavailable, says: "the limit is 16777216"},
		{tool: "deep", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep backwards", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep unknown", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep batch", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "huge batch", kind: capability.Upstream, says: "10001 messages"},
		{tool: "batch", text: "batched"},
		{tool: "echo", text: "x"},
	} {
		t.Run(test.tool, func(t *testing.T) {
			res, err := l.Call(soon(t), callOf(`{}`), test.tool)
			switch {
			case test.text != "" && (err != nil || textOf(res) != test.text):
				t.Errorf("Call(%s) = %v, %v, want %s", test.tool, res, err, test.text)
			case test.text == "" && (err == nil || capability.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says)):
				t.Errorf("Call(%s) = %v, %v, want %v that says %q", test.tool, res, err, test.kind, test.says)
			}
		})
	}
	if changes.Load() == 0 {
		t.Error("no change of the tools was told")
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > 64<<20 {
		t.Errorf("heap after the floods = %d MB, want less than 64", after.HeapAlloc>>20)
	}
}

// TestEndless: a message that is too long fails its request before it ends.
func TestEndless(t *testing.T) {
	for _, tool := range []string{"endless", "endless unknown"} {
		t.Run(tool, func(t *testing.T) {
			l := open(t, link.Config{Target: link.Target{Start: start("x")}})
			_, err := l.Call(soon(t), callOf(`{}`), tool)
			if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "the limit is 16777216") {
				t.Errorf("Call(%s) = %v, want unavailable that names the longest message", tool, err)
			}
		})
	}
}

func TestFloodsRequests(t *testing.T) {
	l := open(t, link.Config{Target: link.Target{Start: start("x")}})
	_, err := l.Call(soon(t), callOf(`{}`), "flood requests")
	if q := inquiryOf(t, err); len(q.Requests) > 16 {
		t.Errorf("Call(flood requests) asks %d things at once, want at most 16", len(q.Requests))
	}
}

func TestHangsInCall(t *testing.T) {
	l := open(t, link.Config{Target: link.Target{Start: start("x")}})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := l.Call(ctx, callOf(`{}`), "hang")
	if capability.KindOf(err) != capability.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call(hang) = %v, want a timeout", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = l.Call(ctx, callOf(`{}`), "hang")
	if capability.KindOf(err) != capability.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("Call(hang), cancelled = %v, want unavailable for context.Canceled", err)
	}
	if res, err := l.Call(soon(t), callOf(`{}`), "echo"); err != nil {
		t.Errorf("Call(echo) after that = %v, %v", res, err)
	}
}

// A server that stops reading must not hold a caller whose pipe is full.
func TestStopsReading(t *testing.T) {
	l := open(t, link.Config{Target: link.Target{Start: start("x")}})
	big := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for range 100 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err := l.Call(ctx, callOf(big), "slow reader")
		cancel()
		if capability.KindOf(err) != capability.Timeout {
			t.Fatalf("Call(slow reader) = %v, want a timeout", err)
		}
	}
}

func TestDiesInCall(t *testing.T) {
	l := open(t, link.Config{Target: link.Target{Start: start("x")}})
	hung := make(chan error, 1)
	go func() {
		_, err := l.Call(soon(t), callOf(`{}`), "hang")
		hung <- err
	}()
	_, err := l.Call(soon(t), callOf(`{}`), "die")
	for _, err := range []error{err, <-hung} {
		if capability.KindOf(err) != capability.Unavailable {
			t.Errorf("Call(die) = %v, want unavailable", err)
		}
	}
	<-l.Done()
	err = l.Err()
	for _, want := range []string{"exit status 9", "out of luck"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err() = %v, want it to say %q", err, want)
		}
	}
	if _, err := l.Call(soon(t), callOf(`{}`), "echo"); capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("Call() on an ended link = %v, want unavailable with its reason", err)
	}
}

func TestOddLists(t *testing.T) {
	for _, test := range []struct {
		mode  string
		tools int
		notes []string
	}{
		{"ten thousand tools", 10_000, []string{"more than 10000 tools: the rest is cut (mcp.maxTools)"}},
		{"odd tools", 3, []string{"duplicate tool twice", "missing name", "the name has 300 bytes", "of the list is left out: it cannot be read"}},
		{"same cursor", 2, []string{"has no end"}},
		{"endless cursors", 1000, []string{"has no end"}},
	} {
		t.Run(test.mode, func(t *testing.T) {
			l := open(t, link.Config{Target: link.Target{Start: start(test.mode)}})
			got, err := l.Lists(soon(t))
			if err != nil || len(got.Tools) != test.tools {
				t.Fatalf("Lists(%s) = %d tools, %v, want %d", test.mode, len(got.Tools), err, test.tools)
			}
			notes := strings.Join(got.Notes, "\n")
			for _, want := range test.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("Lists(%s).Notes = %s, want %q", test.mode, notes, want)
				}
			}
			if test.mode == "odd tools" && !strings.Contains(string(got.Tools[0].InputSchema.(json.RawMessage)), `"first"`) {
				t.Errorf("of two tools with one name %v is kept, want the first", got.Tools[0].InputSchema)
			}
		})
	}
}

func TestNewKinds(t *testing.T) {
	l := open(t, link.Config{Target: link.Target{Start: start("x")}})
	res, err := l.Call(soon(t), callOf(`{}`), "new kinds")
	if err != nil || len(res.Parts) != 2 {
		t.Fatalf("Call(new kinds) = %v, %v, want two parts", res, err)
	}
	if got := string(res.Parts[0].JSON); got != `{"type":"hologram","depth":9007199254740993}` || res.Parts[0].MIME != link.MIMEContent {
		t.Errorf("a block of an unknown kind = %s, want it as it came", got)
	}
	if got := string(res.Parts[1].JSON); got != `{"n":9007199254740993}` {
		t.Errorf("structured content = %s, want it as it came", got)
	}
}
