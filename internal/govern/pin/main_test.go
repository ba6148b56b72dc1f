package pin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

var (
	ctx = context.Background()
	pia = capability.Principal{ID: "pia", Tenant: "acme", Roles: []string{"operator"}}
)

func newDesk(t testing.TB, s *store.Store, c pin.Config) *pin.Desk {
	t.Helper()
	return testkit.Must(pin.New(s, c))(t)
}

func anyDesk(t testing.TB, c pin.Config) *pin.Desk {
	t.Helper()
	return newDesk(t, storetest.Open(t, storetest.SQLite(t)), c)
}

func check(t testing.TB, d *pin.Desk, server string, tools ...pin.Tool) map[string]pin.Verdict {
	t.Helper()
	v, err := d.Check(ctx, server, tools)
	if err != nil {
		t.Fatalf("Check(%q) = %v", server, err)
	}
	return v
}

func wantState(t testing.TB, v map[string]pin.Verdict, tool string, want pin.State) {
	t.Helper()
	if got, ok := v[tool]; !ok || got.State != want {
		t.Fatalf("Check()[%q] = %v (listed: %v, %s), want %v", tool, got.State, ok, got.Diff, want)
	}
}

// accept does what a person does: look, then agree to all of it.
func accept(t testing.TB, d *pin.Desk, server string) {
	t.Helper()
	waiting := testkit.Must(d.Pending(ctx, server))(t)
	shown := map[string]string{}
	for _, w := range waiting {
		shown[w.Tool] = w.Hash
	}
	testkit.OK(t, d.Accept(ctx, server, shown, pia))
}

func readFile() pin.Tool {
	return pin.Tool{
		Name: "read_file", Title: "Read a file", Description: "Reads a file of the workspace.",
		Input:       json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		Output:      json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}
}

func named(name string) pin.Tool {
	t := readFile()
	t.Name = name
	return t
}

// A trail keeps audit records.
type trail struct {
	mu      sync.Mutex
	records []audit.Record
	err     error
}

func (l *trail) log(_ context.Context, r audit.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.records = append(l.records, r)
	return nil
}

func (l *trail) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, r := range l.records {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Target, r.Action, r.Status, r.UserID)))
	}
	l.records = nil
	return strings.Join(out, "\n")
}

func wantKind(t testing.TB, err error, kind capability.ErrorKind, parts ...string) {
	t.Helper()
	if err == nil || capability.KindOf(err) != kind {
		t.Fatalf("error = %v (%v), want kind %v", err, capability.KindOf(err), kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error = %q, want %q in it", err, part)
		}
	}
}

func lines(list []pin.Difference) string {
	var out []string
	for _, d := range list {
		out = append(out, d.String())
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
