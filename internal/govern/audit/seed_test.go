package audit

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// TestT01S537SeedLine writes the seed's example: the view has exactly its
// fields, order and values; the chain's line has them first.
func TestT01S537SeedLine(t *testing.T) {
	compact := func(doc []byte) string {
		var b bytes.Buffer
		if err := json.Compact(&b, doc); err != nil {
			t.Fatalf("not one JSON value: %v\n%s", err, doc)
		}
		return b.String()
	}
	want := compact(mustRead(t, "testdata/seed_line.json"))
	cfg := testConfig(t)
	cfg.ViewDir = filepath.Join(t.TempDir(), "logs")
	cfg.now = seedClock
	l := testOpen(t, cfg)
	testAppend(t, l, seedRecord())
	testClose(t, l)
	if got := compact(mustRead(t, filepath.Join(cfg.ViewDir, "capabilities.log"))); got != want {
		t.Errorf("view = %s\nwant   %s", got, want)
	}
	line := compact(collect(t, cfg.Dir, Filter{Event: string(Executed)})[0].Line)
	if first := strings.TrimSuffix(want, "}"); !strings.HasPrefix(line, first) {
		t.Errorf("record = %s\nwant first %s", line, first)
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
	testClose(t, l)
	for file, want := range map[string][]Event{
		"ken.log":          {Opened, Started, Executed, Slow, Failed, TimedOut, Violation},
		"capabilities.log": {Started, Executed, Slow, Failed, TimedOut},
		"security.log":     {Violation},
	} {
		var got []Event
		for line := range strings.Lines(string(mustRead(t, filepath.Join(cfg.ViewDir, file)))) {
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

func collect(t rapid.TB, dir string, f Filter) []Entry {
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
