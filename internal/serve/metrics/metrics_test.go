package metrics

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/find/outcome"
)

// A sample is one line.
type sample struct {
	name   string
	labels [][2]string
	value  float64
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (\S+)$`)
	label      = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	unescape   = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parse reads an exposition strictly: what Prometheus would refuse or take for
// something else is an error.
func parse(text string) (out []sample, err error) {
	seen := map[string]bool{}
	family, kind := "", ""
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			family, _, _ = strings.Cut(rest, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "+family+" "); ok {
			kind = rest
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || seen[m[1]+m[2]] || !strings.HasPrefix(m[1], family) || kind != "histogram" && m[1] != family {
			return nil, fmt.Errorf("line %d, %q, is no sample of %s, or is there twice", i+1, line, family)
		}
		seen[m[1]+m[2]] = true
		s := sample{name: m[1]}
		if s.value, err = strconv.ParseFloat(m[3], 64); err != nil || kind == "counter" && (!strings.HasSuffix(family, "_total") || s.value < 0) {
			return nil, fmt.Errorf("line %d, %q: %v; a counter ends in _total and is not negative", i+1, line, err)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			s.labels = append(s.labels, [2]string{l[1], unescape.Replace(l[2])})
		}
		out = append(out, s)
	}
	return out, nil
}

func TestText(t *testing.T) {
	var r Registry
	r.Counter("b_total", "Two\nlines and a \\.", "who").Add(2, "a \"b\"\\\n")
	h := r.Histogram("c_seconds", "How long.", []float64{0.1, 1}, "route")
	for _, x := range []float64{0.1, 0.5, 7, math.NaN(), math.Inf(1)} {
		h.Observe(x, "x")
	}
	g := r.Gauge("a", "A gauge.")
	g.Set(3)
	g.Add(-4.5)
	r.GaugeOf("d", "Read.", func() float64 { return math.Inf(-1) })
	want := `# HELP a A gauge.
# TYPE a gauge
a -1.5
# HELP b_total Two\nlines and a \\.
# TYPE b_total counter
b_total{who="a \"b\"\\\n"} 2
# HELP c_seconds How long.
# TYPE c_seconds histogram
c_seconds_bucket{route="x",le="0.1"} 1
c_seconds_bucket{route="x",le="1"} 2
c_seconds_bucket{route="x",le="+Inf"} 3
c_seconds_sum{route="x"} 7.6
c_seconds_count{route="x"} 3
# HELP d Read.
# TYPE d gauge
d -Inf
`
	if got := string(r.Text()); got != want {
		t.Errorf("Text = %s\nwant %s", got, want)
	}
	if _, err := parse(string(r.Text())); err != nil {
		t.Error(err)
	}
}

// TestAnyLabel: whatever a label is, the exposition can be read and gives it
// back.
func TestAnyLabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Registry
		c := r.Counter("a_total", rapid.String().Draw(t, "help"), "x", "y")
		want := map[[2]string]float64{}
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			x, y := rapid.String().Draw(t, "x"), rapid.String().Draw(t, "y")
			c.Add(2, x, y)
			want[[2]string{x, y}] += 2
		}
		samples, err := parse(string(r.Text()))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			key := [2]string{s.labels[0][1], s.labels[1][1]}
			if want[key] != s.value {
				t.Fatalf("%q = %v, want %v", key, s.value, want[key])
			}
			delete(want, key)
		}
		if len(want) > 0 {
			t.Fatalf("%v is missing", want)
		}
	})
}

// TestSeriesAreBounded: what comes from outside cannot fill the memory.
func TestSeriesAreBounded(t *testing.T) {
	var r Registry
	c := r.Counter("a_total", "A.", "x")
	for i := range 10 * mostSeries {
		c.Add(1, fmt.Sprint(i))
	}
	samples, err := parse(string(r.Text()))
	if err != nil || len(samples) > mostSeries+1 {
		t.Fatalf("%d series, %v; want at most %d", len(samples), err, mostSeries+1)
	}
	i := slices.IndexFunc(samples, func(s sample) bool { return s.labels[0][1] == Other })
	if i < 0 || samples[i].value != 9*mostSeries {
		t.Errorf("the others are %v, want %d", samples, 9*mostSeries)
	}
	c.Add(-1, "1")
	c.Add(math.NaN(), "1")
	if got := c.f.of(labels{"1"}).value(); got != 1 {
		t.Errorf("a counter that was given less than nothing = %v, want 1", got)
	}
}

func TestWrongFamiliesPanic(t *testing.T) {
	for name, make := range map[string]func(*Registry){
		"twice":  func(r *Registry) { r.Gauge("a", ""); r.Gauge("a", "") },
		"name":   func(r *Registry) { r.Gauge("1a", "") },
		"label":  func(r *Registry) { r.Gauge("a", "", "b-c") },
		"le":     func(r *Registry) { r.Histogram("a", "", nil, "le") },
		"labels": func(r *Registry) { r.Gauge("a", "", "b", "c", "d", "e") },
		"bounds": func(r *Registry) { r.Histogram("a", "", []float64{2, 1}) },
		"same":   func(r *Registry) { r.Histogram("a", "", []float64{1, 1}) },
		"values": func(r *Registry) { r.Gauge("a", "", "b").Set(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it does not panic", name)
				}
			}()
			make(&Registry{})
		}()
	}
}

// TestMeters: what happens is counted under the names that are promised.
func TestMeters(t *testing.T) {
	var r Registry
	m := NewMeters(&r, Readings{
		Version: "v1", Started: time.Unix(1000, 0),
		Pending: func() (int, error) { return 3, nil },
		Calls:   func() (int, int) { return 5, 6 },
		Catalog: func() Catalog { return Catalog{Capabilities: 9, Available: 8, Quarantined: 1, Problems: 2, Version: 7} },
		Audit:   func() Audit { return Audit{Written: 12, Poisoned: true} },
	})
	m.Request("listSessions", 200, 3*time.Millisecond, false)
	m.Request("listSessions", 404, 3*time.Millisecond, false)
	m.Request("feed", 0, time.Hour, true)
	end := m.Stream()
	m.Stream()
	end()
	m.Turn()
	for _, e := range []outcome.Event{
		{Kind: outcome.Selected, TookUS: 80},
		{Kind: outcome.Used, TookUS: 1_500_000}, {Kind: outcome.Failed, TookUS: 10},
		{Kind: outcome.Refused, Rule: "intents.read.write"}, {Kind: outcome.Refused},
		{Kind: outcome.Ended, End: "answer", Requests: 2, TookUS: 4_000_000, Cost: 0.25, Shown: 10, AllToolTokens: 100, Usage: outcome.Usage{Input: 100, Output: 5, CachedRead: 60, CachedWrite: 30}},
		{Kind: outcome.Searched},
	} {
		m.Outcome(e)
	}
	text := string(r.Text())
	if _, err := parse(text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`ken_http_requests_total{route="listSessions",status="2xx"} 1`, `ken_http_requests_total{route="listSessions",status="4xx"} 1`,
		`ken_http_requests_total{route="feed",status="none"} 1`, `ken_http_request_seconds_bucket{route="listSessions",le="0.005"} 2`,
		`ken_http_streams 1`, `ken_turns_running 1`, `ken_turns_total{end="answer"} 1`, `ken_model_requests_total 2`,
		`ken_model_tokens_total{as="plain"} 10`, `ken_model_tokens_total{as="cached_read"} 60`, `ken_model_tokens_total{as="cached_write"} 30`,
		`ken_model_tokens_total{as="output"} 5`, `ken_model_cost_dollars_total 0.25`, `ken_capability_tokens_total{what="all"} 200`, `ken_capability_tokens_total{what="shown"} 20`,
		`ken_find_seconds_bucket{le="0.0001"} 1`, `ken_calls_total{status="worked"} 1`, `ken_calls_total{status="failed"} 1`, `ken_calls_total{status="refused"} 2`,
		`ken_call_seconds_bucket{le="2.5"} 2`, `ken_refusals_total{rule="intents"} 1`, `ken_refusals_total{rule="none"} 1`,
		`ken_calls_running 5`, `ken_calls_waiting 6`, `ken_approvals_pending 3`, `ken_catalog_capabilities 9`, `ken_catalog_problems 2`, `ken_catalog_version 7`, `ken_audit_records_total 12`, `ken_audit_poisoned 1`,
		`process_start_time_seconds 1000`, `ken_turn_seconds_sum 4`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, `ken_http_request_seconds_count{route="feed"}`) {
		t.Error("a stream counts as a slow answer")
	}

	var unread Registry
	NewMeters(&unread, Readings{Pending: func() (int, error) { return 0, errors.New("the store is away") }})
	if text := string(unread.Text()); !strings.Contains(text, "ken_approvals_pending NaN\n") {
		t.Errorf("questions that cannot be counted are not NaN in\n%s", text)
	}
}

// TestManyAtOnce: counting and writing go on beside each other, and nothing is
// lost.
func TestManyAtOnce(t *testing.T) {
	var r Registry
	m := NewMeters(&r, Readings{})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 500 {
				m.Request(fmt.Sprint("route", i%7), 200, time.Duration(i)*time.Millisecond, false)
				if g == 0 && i%50 == 0 {
					if _, err := parse(string(r.Text())); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	samples, err := parse(string(r.Text()))
	if err != nil {
		t.Fatal(err)
	}
	n := 0.0
	for _, s := range samples {
		if s.name == "ken_http_request_seconds_count" {
			n += s.value
		}
	}
	if n != 4000 {
		t.Errorf("%v requests, want 4000", n)
	}
}
