//go:build unix

package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit"
	"ken/internal/testkit/linktest"
)

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
			l, err := link.Open(soon(t), link.Config{Target: link.Target{Name: "tester", Start: linktest.Start(mode)}})
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

// A server that stops reading must not hold a caller whose pipe is full.
func TestStopsReading(t *testing.T) {
	l := to(t, linktest.Start("x"))
	big := `{"x":"` + strings.Repeat("x", 1<<17) + `"}`
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err := l.Call(ctx, callOf(big), "slow reader")
		cancel()
		if capability.KindOf(err) != capability.Timeout {
			t.Fatalf("Call(slow reader) = %v, want a timeout", err)
		}
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
			l := to(t, linktest.Start(test.mode))
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

// TestBadStarts: an error says what the server did, and not how its process ended
// because Ken left.
func TestBadStarts(t *testing.T) {
	for mode, want := range map[string]struct {
		kind capability.ErrorKind
		says []string
	}{
		"hangs at initialize":    {capability.Timeout, []string{"startTimeout"}},
		"speaks another version": {capability.Unavailable, []string{"2099-01-01", "2025-11-25", "2024-11-05"}},
		"dies at initialize":     {capability.Unavailable, []string{"no such database", "exit status 7", "mcp.servers.tester"}},
	} {
		ctx := soon(t)
		if want.kind == capability.Timeout {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
		}
		_, err := link.Open(ctx, link.Config{Target: link.Target{Name: "tester", Start: linktest.Start(mode)}})
		wantErr(t, mode, err, want.kind, want.says...)
	}
}

func TestBadCalls(t *testing.T) {
	var changes atomic.Int64
	l := open(t, link.Config{Target: link.Target{Start: linktest.Start("x")}, Changed: func(string) { changes.Add(1) }})
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
		{tool: "deep", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep backwards", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep unknown", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "deep batch", kind: capability.Upstream, says: "nested too deeply"},
		{tool: "huge batch", kind: capability.Upstream, says: "10001 messages"},
		{tool: "batch", text: "batched"},
		{tool: "echo", text: "x"},
	} {
		if test.text != "" {
			wantText(t, l, callOf(`{}`), test.tool, test.text)
			continue
		}
		_, err := l.Call(soon(t), callOf(`{}`), test.tool)
		wantErr(t, test.tool, err, test.kind, test.says)
	}
	if changes.Load() == 0 {
		t.Error("no change of the tools was told")
	}
	_, err := l.Call(soon(t), callOf(`{}`), "flood requests")
	if q := inquiryOf(t, err); len(q.Requests) > 16 {
		t.Errorf("Call(flood requests) asks %d things at once, want at most 16", len(q.Requests))
	}
}

// TestLargeMessages: a message that is too long fails its request, before it ends
// where it never does.
func TestLargeMessages(t *testing.T) {
	testkit.CI(t, "sends hundreds of megabytes")
	huge := to(t, linktest.Start("x"))
	for tool, l := range map[string]*link.Link{
		"huge": huge, "huge backwards": huge, "huge unknown": huge, "endless": to(t, linktest.Start("x")), "endless unknown": to(t, linktest.Start("x")),
	} {
		_, err := l.Call(soon(t), callOf(`{}`), tool)
		wantErr(t, tool, err, capability.Unavailable, "the limit is 16777216")
	}
}

// TestEndsInCall: the time of a call ends, and its caller gives up, while the server
// answers others; then the server dies.
func TestEndsInCall(t *testing.T) {
	l := to(t, linktest.Start("x"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.Call(ctx, callOf(`{}`), "hang")
	if wantErr(t, "hang", err, capability.Timeout); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Call(hang) = %v, want a deadline", err)
	}
	wantText(t, l, callOf(`{}`), "echo", "x")
	hung := make(chan error, 1)
	go func() {
		_, err := l.Call(soon(t), callOf(`{}`), "hang")
		hung <- err
	}()
	_, err = l.Call(soon(t), callOf(`{}`), "die")
	wantErr(t, "die", err, capability.Unavailable)
	wantErr(t, "hang", <-hung, capability.Unavailable)
	<-l.Done()
	wantErr(t, "the link", l.Err(), capability.KindOf(l.Err()), "exit status 9", "out of luck")
	_, err = l.Call(soon(t), callOf(`{}`), "echo")
	wantErr(t, "an ended link", err, capability.Unavailable, "out of luck")
}
