//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestJobsOutage: jobs whose calls have not begun when PostgreSQL goes away for long run
// when it is back, each once. They neither fail nor become unknown.
func TestJobsOutage(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	const jobs = 5
	wire := storetest.NewWire(t, storetest.Postgres(t))
	s := newReplicas(t, 1, wire.Address, shellOpen, "limits: {perExtension: 1}\nserve: {rate: {requests: 0}}\n")[0]
	s.allowShell(t, "all")
	add := func(cmd string) string {
		status, text := s.ask(t, http.MethodPost, "/api/v1/jobs", s.token, map[string]any{"session": "all", "target": "tool:shell", "arguments": map[string]any{"cmd": cmd}})
		var added struct{ ID string }
		if err := json.Unmarshal(text, &added); err != nil || status != http.StatusAccepted {
			t.Fatalf("add a job: %d %s", status, text)
		}
		return added.ID
	}
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(s.work, name))
		return string(text)
	}
	// The first job has the only place until it is told to end.
	ids := []string{add("echo first >> effects.txt; while [ ! -e end ]; do sleep 0.02; done")}
	if !testkit.Until(func() bool { return read("effects.txt") != "" }) {
		t.Fatal("the first job does not begin")
	}
	for i := range jobs {
		ids = append(ids, add(fmt.Sprintf("echo job-%d >> effects.txt", i)))
	}
	if !testkit.Until(func() bool { return s.gauge(t, "ken_calls_waiting") == jobs }) {
		t.Fatalf("%v calls wait, want %d", s.gauge(t, "ken_calls_waiting"), jobs)
	}
	wire.Down()
	// When the lease of the only place has ended, the calls that wait are refused.
	if !testkit.Until(func() bool { return s.gauge(t, "ken_calls_waiting") == 0 }) {
		t.Fatal("calls wait for a place although there is no PostgreSQL")
	}
	wire.Up()
	if err := os.WriteFile(filepath.Join(s.work, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		var job struct{ State, Why string }
		if !testkit.Until(func() bool {
			_, text := s.ask(t, http.MethodGet, "/api/v1/jobs/"+id, s.token, nil)
			return json.Unmarshal(text, &job) == nil && (job.State == "done" || job.State == "failed" || job.State == "unknown")
		}) || i > 0 && job.State != "done" {
			t.Errorf("job %d is %s: %s", i, job.State, job.Why)
		}
	}
	for i := range jobs {
		if n := strings.Count(read("effects.txt"), fmt.Sprintf("job-%d\n", i)); n != 1 {
			t.Errorf("job %d had its effect %d times", i, n)
		}
	}
}
