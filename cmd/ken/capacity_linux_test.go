package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A cost is what one of something needs, as scripts/capacity reads it.
type cost struct {
	CPU      float64 `json:"cpuMs"`    // of Ken
	Database float64 `json:"dbCpuMs"`  // of PostgreSQL
	Trips    float64 `json:"trips"`    // to PostgreSQL and back
	Bytes    float64 `json:"bytes"`    // to PostgreSQL and back
	Commits  float64 `json:"commits"`  // batches written, under the lock of the store
	Stored   float64 `json:"stored"`   // bytes in PostgreSQL
	Memory   float64 `json:"memoryKB"` // of Ken
}

// A meter reads what a server and PostgreSQL have used so far.
type meter struct {
	t    *testing.T
	pid  int
	wire *storetest.Wire
	conn *pgx.Conn
	main int // the process of PostgreSQL that starts the others
}

// cpu returns the milliseconds of processor time of a process: its own, and of children
// that have ended.
func cpu(pid int) (own, children float64, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	n := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v * 10 } // hundredths of a second
	parent, _ = strconv.Atoi(f[1])
	return n(11) + n(12), n(13) + n(14), parent
}

func (m *meter) read() (c cost) {
	m.t.Helper()
	own, children, _ := cpu(m.pid)
	c.CPU = own + children
	_, c.Database, _ = cpu(m.main)
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			if own, _, parent := cpu(pid); parent == m.main {
				c.Database += own
			}
		}
	}
	c.Trips, c.Bytes = float64(m.wire.Trips()), float64(m.wire.Bytes())
	if err := m.conn.QueryRow(m.t.Context(), "SELECT (SELECT version FROM ken_head), (SELECT coalesce(sum(octet_length(key) + octet_length(value)), 0) FROM ken_item)").Scan(&c.Commits, &c.Stored); err != nil {
		m.t.Fatal(err)
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			c.Memory, _ = strconv.ParseFloat(strings.Fields(kb)[0], 64)
		}
	}
	return c
}

// of returns what one of n needed.
func (m *meter) of(n int, do func(i int)) cost {
	for i := range min(n, 20) { // statements are prepared, memory is grown
		do(-1 - i)
	}
	return m.bare(n, do)
}

func (m *meter) bare(n int, do func(i int)) cost {
	a := m.read()
	for i := range n {
		do(i)
	}
	b := m.read()
	by := func(x, y float64) float64 { return (y - x) / float64(n) }
	return cost{by(a.CPU, b.CPU), by(a.Database, b.Database), by(a.Trips, b.Trips), by(a.Bytes, b.Bytes), by(a.Commits, b.Commits), by(a.Stored, b.Stored), by(a.Memory, b.Memory)}
}

// TestCapacity measures what finds, calls, turns and idle sessions need of a server and of
// PostgreSQL. KEN_CAPACITY says how many of each; 10 is the default, which only shows that
// it works. scripts/capacity reads the line that it logs.
func TestCapacity(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	n := sizeOf(t, "KEN_CAPACITY", 10)
	address := storetest.Postgres(t)
	wire := storetest.NewWire(t, address)
	model := newTalker(t, func(string, bool) (string, []string, <-chan struct{}) { return "", counting, nil })
	s := newReplicas(t, 1, wire.Address, shellOpen, fmt.Sprintf(
		"serve: {rate: {requests: 100000, burst: 100000, open: 100000}}\nmodel: lab/any\nproviders: {lab: {wire: openai-chat, url: %q}}\n", model))[0]
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	m := &meter{t: t, pid: s.cmd.Process.Pid, wire: wire, conn: conn}
	_, _, m.main = cpu(int(conn.PgConn().PID()))
	if m.main == 0 {
		t.Fatal("the processes of PostgreSQL cannot be read")
	}
	want := func(what string, status int, text any) {
		if status != http.StatusOK {
			t.Fatalf("%s: %d %+v", what, status, text)
		}
	}
	out := map[string]cost{}
	out["find"] = m.of(n, func(i int) {
		status, text := s.ask(t, http.MethodGet, fmt.Sprintf("/api/v1/discover?q=read+the+file+number+%d", i+100), s.token, nil)
		want("find", status, string(text))
	})
	out["call"] = m.of(n, func(int) {
		status, got := s.invoke(t, s.token, "plain", "tool:read_file", map[string]any{"path": "note.txt"})
		want("call", status, got)
	})
	echo := map[string]any{"cmd": "echo hi"}
	_, asked := s.invoke(t, s.token, "keyed", "tool:shell", echo)
	status, text := s.ask(t, http.MethodPost, "/api/v1/approvals/"+asked.ticket(), s.token, map[string]any{"effect": "grant", "scope": "session", "covers": "tool"})
	want("grant", status, string(text))
	out["command with a key"] = m.of(n, func(i int) {
		status, got := s.invoke(t, s.token, "keyed", "tool:shell", echo, "key", fmt.Sprint("k", i))
		want("a command", status, got)
	})
	session := s.session(t)
	l := s.follow(t, session, "")
	out["turn"] = m.of(n, func(int) {
		s.say(t, session, "count to eight")
		for e := range l.events {
			if e.name == "failed" {
				t.Fatalf("a turn failed: %s", e.data)
			}
			if e.name == "done" {
				return
			}
		}
		t.Fatal("the stream ended")
	})
	l.stop()
	var ids []string
	out["new session"] = m.bare(n, func(int) { ids = append(ids, s.session(t)) })
	seconds := 2
	if n > 10 {
		seconds = 10
	}
	idle := func() cost {
		c := m.bare(seconds, func(int) { <-time.After(time.Second) })
		c.Memory = m.read().Memory
		return c
	}
	out["idle replica, a second"] = idle()
	out["open stream"] = m.bare(n, func(i int) { s.follow(t, ids[i], "") })
	out["the same with the open streams"] = idle()
	text, err = json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of each: %s", n, text)
	if c := out["call"]; n > 10 && c.Commits > 0.5 {
		t.Errorf("a call without approval writes %.1f times", c.Commits)
	}
	if c := out["command with a key"]; c.Commits < 1 {
		t.Errorf("a call with a key writes %.1f times: it is not measured", c.Commits)
	}
}
