package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// all returns every metric of a server.
func all() []*family {
	var r Registry
	NewMeters(&r, Readings{
		Calls:   func() (int, int) { return 0, 0 },
		Started: time.Now(), Pending: func() (int, error) { return 0, nil },
		Catalog: func() Catalog { return Catalog{} }, Audit: func() Audit { return Audit{} },
		Cluster: func() Cluster { return Cluster{} },
	})
	return r.families
}

// TestMetricsAreDocumented checks that docs/metrics.md lists every metric, as
// go test -update writes it.
func TestMetricsAreDocumented(t *testing.T) {
	const path, begin, end = "../../../docs/metrics.md", "<!-- metrics -->\n", "<!-- end of metrics -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	var b strings.Builder
	b.WriteString("\n| metric | type | labels | what it counts |\n|---|---|---|---|\n")
	for _, f := range all() {
		labels := "none"
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, f.kind, labels, strings.TrimSuffix(f.help, "."))
	}
	b.WriteByte('\n')
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s is out of date; run go test ./internal/serve/metrics -run %s -update", path, t.Name())
	}
}

// TestDashboardAndAlerts checks that the dashboard and the alert rules ask for
// metrics and labels that exist.
func TestDashboardAndAlerts(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../../deploy/grafana/ken.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			checkQuery(t, p.Title, target.Expr)
			n++
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations struct{ Summary, Description string }
			}
		}
	}
	if text, err = os.ReadFile("../../../deploy/prometheus/alerts.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			checkQuery(t, r.Alert, r.Expr)
			n++
			if r.Annotations.Summary == "" || r.Annotations.Description == "" {
				t.Errorf("alert %s has no summary or no description", r.Alert)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d queries were checked, want at least 30", n)
	}
}

var (
	queried = regexp.MustCompile(`\b((?:ken|go|process|mcp|gen_ai)_[a-z_]+)(\{[^}]*\})?`)
	labelIn = regexp.MustCompile(`([a-z_]+)\s*[!=]~?=?"`)
	grouped = regexp.MustCompile(`\bby \(([a-z_, ]+)\)`)
)

// checkQuery checks the names in a query. The labels job and instance are
// Prometheus's own.
func checkQuery(t *testing.T, where, query string) {
	t.Helper()
	known := []string{"job", "instance", "le"}
	plain := grouped.ReplaceAllString(query, "")
	asked := queried.FindAllStringSubmatch(plain, -1)
	if len(asked) == 0 {
		t.Errorf("%s: %q asks for no metric", where, query)
	}
	for _, m := range asked {
		i := slices.IndexFunc(all(), func(f *family) bool {
			if f.kind == histogram {
				return m[1] == f.name+"_bucket" || m[1] == f.name+"_sum" || m[1] == f.name+"_count"
			}
			return m[1] == f.name
		})
		if i < 0 {
			t.Errorf("%s: there is no metric %s", where, m[1])
			continue
		}
		f := all()[i]
		known = append(known, f.labels...)
		for _, l := range labelIn.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(f.labels, l[1]) && l[1] != "job" {
				t.Errorf("%s: %s has no label %s", where, f.name, l[1])
			}
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(query, -1) {
		for _, l := range strings.Split(g[1], ",") {
			if l = strings.TrimSpace(l); !slices.Contains(known, l) {
				t.Errorf("%s: groups by %s, which none of its metrics has", where, l)
			}
		}
	}
}
