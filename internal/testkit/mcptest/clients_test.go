//go:build linux

package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// eachAgent runs a test with every client that is here, in a network with nothing
// but this machine.
func eachAgent(t *testing.T, test func(t *testing.T, a agent, program string)) {
	dir := os.Getenv("KEN_CLIENTS")
	if dir == "" {
		t.Skip("there are no clients: make install-nightly installs them; KEN_CLIENTS names the folder of their programs")
	}
	ken(t) // building does not count
	fixture(t)
	for _, a := range agents() {
		t.Run(a.name, func(t *testing.T) {
			program := filepath.Join(dir, a.program)
			if _, err := os.Stat(program); err != nil {
				t.Skipf("there is no %s in KEN_CLIENTS: make install-nightly installs it", a.program)
			}
			test(t, a, program)
		})
	}
}

// TestClientFlows lets every client do a task through Ken, over both transports:
// find a tool, read it, call one that reads and one that a person must approve
// in another terminal. Afterwards the client's file is as it was.
func TestClientFlows(t *testing.T) {
	testkit.Nightly(t, "runs published clients")
	eachAgent(t, func(t *testing.T, a agent, program string) {
		for _, way := range []string{"stdio", "http"} {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				alone(t)
				flow(t, a, program, way)
			})
		}
	})
}

func flow(t *testing.T, a agent, program, way string) {
	m := &model{wire: a.wire, searched: map[string]bool{}}
	server := llmtest.ServeOthers(t, a.wire, m.reply)
	dir := t.TempDir()
	orders := filepath.Join(dir, "orders")
	p, path := a.newHome(t, "mcp: {trustHints: [shop]}\n", server.URL(), "-orders", orders)
	before := read(t, path)
	m.grant = func(ticket string) error {
		cmd := p.ken("approve", "grant", ticket)
		cmd.Stderr = nil
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ken approve grant %s: %w: %s", ticket, err, out)
		}
		return nil
	}

	connect := []string{"connect", a.name, "--yes"}
	if way == "http" {
		connect = append(connect, "--http")
	}
	t.Logf("%s", p.must(connect...))
	connected := read(t, path)
	if bytes.Contains(connected, []byte("shop")) || !bytes.Contains(connected, []byte("ken")) {
		t.Errorf("after ken connect the file is %s", connected)
	}
	if way == "http" {
		p.serveAt(t)
	} else {
		t.Cleanup(p.stop)
	}

	out := a.run(t, p, program, server.URL())
	if !strings.Contains(out, finished) {
		t.Errorf("%s does not print %q:\n%s", a.program, finished, out)
	}
	m.report(t, server)
	if got, err := os.ReadFile(orders); string(got) != "canceled 4711\n" {
		t.Errorf("the server was told %q, %v; want one order canceled", got, err)
	}
	if log := p.must("audit", "query", "--json"); !strings.Contains(log, `"`+a.name+`"`) {
		t.Errorf("the audit log does not name %s:\n%s", a.name, log)
	}

	touched := !bytes.Equal(read(t, path), connected)
	if touched != a.rewrite {
		t.Errorf("%s wrote to its file: %v, want %v", a.program, touched, a.rewrite)
	}
	t.Logf("%s", p.must("disconnect", a.name))
	after := read(t, path)
	if !touched && !bytes.Equal(after, before) {
		t.Errorf("after ken disconnect the file is\n%s\nwant\n%s", after, before)
	}
	if touched && (!bytes.Contains(after, []byte(fixture(t))) || bytes.Contains(after, []byte(`"ken"`))) {
		t.Errorf("after ken disconnect the file is\n%s\nwant the server shop and no ken", after)
	}
	// A client that keeps its own notes in the file has not run in between now.
	p.must(connect...)
	p.must("disconnect", a.name)
	if again := read(t, path); !bytes.Equal(again, after) {
		t.Errorf("connected and disconnected again, the file is\n%s\nwant\n%s", again, after)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
