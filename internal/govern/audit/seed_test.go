package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

// seedRecord has the values of the seed's example.
func seedRecord() Record {
	return Record{
		Logger: "agentos.core.capabilities.runner", Event: Executed,
		ExtensionID: "tools.postman", Command: "/postman", Action: "get", Runner: "exec.postman_cli",
		SessionID: "sess_abc123", UserID: "user_xyz",
		Success: new(true), DurationSeconds: new(1.234), ExitCode: new(0),
		Metadata: Metadata{Tool: "postman", ArgsCount: 1, WorkDir: "~/.agentos/extensions/tools.postman/work"},
	}
}

func seedClock() time.Time { return time.Date(2026, 1, 30, 10, 30, 45, 123456789, time.UTC) }

// keys returns the keys of a JSON object in their order, nested ones with a dot.
func keys(t *testing.T, doc []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	var out, path []string
	var walk func()
	walk = func() {
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			path = append(path, key.(string))
			out = append(out, strings.Join(path, "."))
			value, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			if value == json.Delim('{') {
				walk()
			}
			path = path[:len(path)-1]
		}
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	walk()
	return out
}

// TestT01S537SeedLine writes the seed's example: the view has exactly its
// fields, order and values; the chain's line has them first.
func TestT01S537SeedLine(t *testing.T) {
	want, err := os.ReadFile("testdata/seed_line.json")
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	cfg.now = seedClock
	l := testOpen(t, cfg)
	testAppend(t, l, seedRecord())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	view, err := os.ReadFile(filepath.Join(cfg.ViewDir, "capabilities.log"))
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := json.Unmarshal(view, &got); err != nil {
		t.Fatalf("capabilities.log is not one JSON line: %v\n%s", err, view)
	}
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("view = %v, want %v", got, wanted)
	}
	if got, want := keys(t, view), keys(t, want); !reflect.DeepEqual(got, want) {
		t.Errorf("keys of the view = %v, want %v", got, want)
	}
	for e, err := range Query(cfg.Dir, Filter{Event: string(Executed)}) {
		if err != nil {
			t.Fatal(err)
		}
		if got, want := keys(t, e.Line), keys(t, want); !reflect.DeepEqual(got[:len(want)], want) {
			t.Errorf("keys of the record = %v, want first %v", got, want)
		}
	}
}

// TestS538Events: each event of the seed at its level.
func TestS538Events(t *testing.T) {
	for event, level := range map[string]string{
		"capability_started": "DEBUG", "capability_executed": "INFO", "capability_slow": "WARNING",
		"capability_failed": "ERROR", "capability_timeout": "ERROR", "security_violation": "ERROR",
	} {
		if got := Event(event).Level(); got != level {
			t.Errorf("Event(%q).Level() = %q, want %q", event, got, level)
		}
	}
	for status, event := range map[Status]string{
		Running: "capability_started", Completed: "capability_executed", CallFailed: "capability_failed",
		CallTimeout: "capability_timeout", Denied: "security_violation", Cancelled: "capability_failed",
		Lost: "capability_unknown", Pending: "capability_asked", "": "capability_failed",
	} {
		if got := status.Event(); string(got) != event {
			t.Errorf("Status(%q).Event() = %q, want %q", status, got, event)
		}
	}
}

// TestS539Views: the three files, and what goes where.
func TestS539Views(t *testing.T) {
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	l := testOpen(t, cfg)
	for _, e := range []Event{Started, Executed, Slow, Failed, TimedOut, Violation} {
		r := seedRecord()
		r.Event = e
		testAppend(t, l, r)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]Event{
		"ken.log":          {Opened, Started, Executed, Slow, Failed, TimedOut, Violation},
		"capabilities.log": {Started, Executed, Slow, Failed, TimedOut},
		"security.log":     {Violation},
	} {
		var got []Event
		data, err := os.ReadFile(filepath.Join(cfg.ViewDir, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var r Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			got = append(got, r.Event)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", file, got, want)
		}
	}
	if h := l.Views(); h.Lost != 0 || h.Err != nil || h.Written != 13 {
		t.Errorf("Views() = %+v, want 13 written, none lost", h)
	}
}

// TestS540Queries: the seed's four questions, as greps on the views and as
// queries on the chains.
func TestS540Queries(t *testing.T) {
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	l := testOpen(t, cfg)
	for _, c := range []struct {
		event Event
		ext   string
	}{{Executed, "tools.postman"}, {Failed, "tools.postman"}, {Executed, "tools.other"}, {Violation, "tools.other"}} {
		r := seedRecord()
		r.Event, r.ExtensionID = c.event, c.ext
		testAppend(t, l, r)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, grep, file string
		filter           Filter
		want             int
	}{
		{"all executions", "capability_executed", "capabilities.log", Filter{Event: "capability_executed"}, 2},
		{"failures", "capability_failed", "capabilities.log", Filter{Event: "capability_failed"}, 1},
		{"one extension", `"extension_id": "tools.postman"`, "capabilities.log", Filter{Extension: "tools.postman"}, 2},
		{"security violations", "", "security.log", Filter{Event: "security_violation"}, 1},
		{"lifecycle name", "", "security.log", Filter{Event: "EXT_RUN_DENIED"}, 1},
	} {
		n := 0
		f, err := os.Open(filepath.Join(cfg.ViewDir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			if strings.Contains(s.Text(), c.grep) {
				n++
			}
		}
		f.Close()
		if n != c.want {
			t.Errorf("%s: grep %q finds %d lines, want %d", c.name, c.grep, n, c.want)
		}
		if got := len(collect(t, cfg.Dir, c.filter)); got != c.want {
			t.Errorf("%s: Query(%+v) gives %d records, want %d", c.name, c.filter, got, c.want)
		}
	}
}

func collect(t testing.TB, dir string, f Filter) []Entry {
	t.Helper()
	var out []Entry
	for e, err := range Query(dir, f) {
		if err != nil {
			t.Fatalf("Query(%+v): %v", f, err)
		}
		out = append(out, e)
	}
	return out
}

// TestS430CommandExitDurationTruncation: the four fields of the shell's audit.
func TestS430CommandExitDurationTruncation(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	r := seedRecord()
	r.CommandLine = cfg.Redactor.CommandLine([]string{"sh", "-c", "exit 3"})
	end := r.Ended(CallFailed, 1234567*time.Microsecond)
	end.ExitCode, end.Truncated, end.Error = new(3), true, new("exit status 3")
	testAppend(t, l, end)
	got := collect(t, cfg.Dir, Filter{Event: string(Failed)})[0].Record
	if got.CommandLine != "sh -c 'exit 3'" || *got.ExitCode != 3 || *got.DurationSeconds != 1.234567 || *got.DurationMS != 1234 ||
		!got.Truncated || *got.Success || got.Status != CallFailed || *got.Error != "exit status 3" {
		t.Errorf("record = %+v", got)
	}
	if slow := end.AsSlow(); slow.Event != Slow || slow.Level != "" {
		t.Errorf("AsSlow() = %s %q", slow.Event, slow.Level)
	}
}

// TestForCall takes over who and what, never the arguments.
func TestForCall(t *testing.T) {
	call := capability.Call{
		Target: "tool:x", Action: "get", Arguments: json.RawMessage(`{"q":"raw-argument-text"}`),
		Principal: capability.Principal{Tenant: "t1", ID: "u1"}, Session: "s1", Intent: "READ_FILE", Mode: "code", Origin: capability.ByPerson,
	}
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	r := ForCall(call)
	r.Event, r.ArgsDigest = Started, l.Digest(call.Arguments)
	testAppend(t, l, r)
	e := collect(t, cfg.Dir, Filter{Session: "s1"})[0]
	if bytes.Contains(e.Line, []byte("raw-argument-text")) {
		t.Errorf("raw arguments are in the record: %s", e.Line)
	}
	got := e.Record
	if got.Target != "tool:x" || got.UserID != "u1" || got.Tenant != "t1" || got.Intent != "READ_FILE" || got.Mode != "code" || got.Origin != "person" {
		t.Errorf("record = %+v", got)
	}
	if want := l.Digest([]byte(`{"q":"raw-argument-text"}`)); got.ArgsDigest != want || !strings.HasPrefix(want, "hmac-sha256:") {
		t.Errorf("args digest = %q, want %q", got.ArgsDigest, want)
	}
}
