// Package metrics counts what Ken does and writes it in the text format that
// Prometheus reads (version 0.0.4).
//
// A [Registry] holds families of numbers: counters, gauges and histograms, with
// up to three labels each. [Meters] are those of Ken. There are no globals, and
// what a label may be is bounded: the values of a label come from outside often
// enough, and every new one costs memory for good.
package metrics

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// mostLabels is how many labels a family may have, and mostSeries how many
// series: whatever comes after is counted as [Other].
const (
	mostLabels = 3
	mostSeries = 300
)

// Other is the value of all labels of what is one series too many.
const Other = "other"

// A Registry holds families. The zero value is empty and ready; it is safe for
// concurrent use.
type Registry struct {
	mu       sync.Mutex
	families []*family
}

type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// labels are the values of a series; those behind the last are empty.
type labels [mostLabels]string

// A family is all series of one name.
type family struct {
	name, help string
	kind       kind
	labels     []string
	bounds     []float64

	read func() float64 // instead of series

	mu     sync.Mutex            // held while a series is added
	series atomic.Pointer[table] // never changed; replaced
}

// A table has all series of a family and, where there is one label, also by it
// alone: that is the common case, and twice as fast.
type table struct {
	all map[labels]*series
	one map[string]*series
}

// A series is one number, or the buckets of a histogram.
type series struct {
	bits    atomic.Uint64 // of a float64: the number, or the sum
	buckets []atomic.Uint64
}

// add puts a family into the registry. It panics on what is wrong with it: it
// is the program's.
func (r *Registry) add(f *family) *family {
	if !validName(f.name, true) || len(f.labels) > mostLabels {
		panic(fmt.Sprintf("metrics: %q is not a name, or has more than %d labels", f.name, mostLabels))
	}
	for i, l := range f.labels {
		if !validName(l, false) || l == "le" || slices.Contains(f.labels[:i], l) {
			panic(fmt.Sprintf("metrics: %q is no label of %s", l, f.name))
		}
	}
	if !slices.IsSorted(f.bounds) || len(slices.Compact(slices.Clone(f.bounds))) != len(f.bounds) {
		panic("metrics: the bounds of " + f.name + " do not rise")
	}
	f.series.Store(&table{})
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.families, func(other *family) bool { return other.name == f.name }) {
		panic("metrics: there are two of " + f.name)
	}
	r.families = append(r.families, f)
	return f
}

func validName(s string, colon bool) bool {
	for i, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':' && colon, i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

// of returns the series of some values, and makes it where it is missing.
func (f *family) of(values labels) *series {
	if s := f.series.Load().find(f, &values); s != nil {
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.series.Load()
	if t.find(f, &values) == nil && len(t.all) >= mostSeries {
		for i := range f.labels {
			values[i] = Other
		}
	}
	if s := t.find(f, &values); s != nil {
		return s
	}
	s := &series{}
	if f.kind == histogram {
		s.buckets = make([]atomic.Uint64, len(f.bounds)+1)
	}
	f.series.Store(t.with(values, s))
	return s
}

func (t *table) find(f *family, values *labels) *series {
	if len(f.labels) == 1 {
		return t.one[values[0]]
	}
	return t.all[*values]
}

func (t *table) with(values labels, s *series) *table {
	next := &table{all: map[labels]*series{values: s}, one: map[string]*series{values[0]: s}}
	maps.Copy(next.all, t.all)
	maps.Copy(next.one, t.one)
	return next
}

// pick puts values into their places. It panics where there are not as many as
// labels.
func (f *family) pick(values []string) (l labels) {
	if len(values) != len(f.labels) {
		panic(fmt.Sprintf("metrics: %s has %d labels, not %d", f.name, len(f.labels), len(values)))
	}
	copy(l[:], values)
	return l
}

func (s *series) plus(x float64) {
	for {
		old := s.bits.Load()
		if s.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+x)) {
			return
		}
	}
}

func (s *series) value() float64 { return math.Float64frombits(s.bits.Load()) }

// A Counter only grows. It may have labels.
type Counter struct{ f *family }

// Counter makes one. Its name ends in _total.
func (r *Registry) Counter(name, help string, labels ...string) Counter {
	c := Counter{r.add(&family{name: name, help: help, kind: counter, labels: labels})}
	if len(labels) == 0 {
		c.f.of(c.f.pick(nil)) // it is there before anything happened
	}
	return c
}

// Add counts x more of the values of its labels. What is less than 0, or no
// number, counts nothing.
func (c Counter) Add(x float64, values ...string) {
	if x > 0 && !math.IsInf(x, 1) {
		c.f.of(c.f.pick(values)).plus(x)
	}
}

// A Gauge rises and falls. It may have labels.
type Gauge struct{ f *family }

// Gauge makes one.
func (r *Registry) Gauge(name, help string, labels ...string) Gauge {
	g := Gauge{r.add(&family{name: name, help: help, kind: gauge, labels: labels})}
	if len(labels) == 0 {
		g.f.of(g.f.pick(nil))
	}
	return g
}

// Add changes it by x.
func (g Gauge) Add(x float64, values ...string) { g.f.of(g.f.pick(values)).plus(x) }

// Set makes it x.
func (g Gauge) Set(x float64, values ...string) {
	g.f.of(g.f.pick(values)).bits.Store(math.Float64bits(x))
}

// GaugeOf makes a gauge that is read at every scrape.
func (r *Registry) GaugeOf(name, help string, read func() float64) {
	r.add(&family{name: name, help: help, kind: gauge, read: read})
}

// CounterOf makes a counter that is read at every scrape.
func (r *Registry) CounterOf(name, help string, read func() float64) {
	r.add(&family{name: name, help: help, kind: counter, read: read})
}

// A Histogram counts how large something was. It may have labels.
type Histogram struct{ f *family }

// Histogram makes one. Its bounds rise; what is above the last is counted too.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...string) Histogram {
	h := Histogram{r.add(&family{name: name, help: help, kind: histogram, labels: labels, bounds: slices.Clone(bounds)})}
	if len(labels) == 0 {
		h.f.of(h.f.pick(nil))
	}
	return h
}

// Observe counts one of size x. NaN is not counted.
func (h Histogram) Observe(x float64, values ...string) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	s := h.f.of(h.f.pick(values))
	i := 0
	for i < len(h.f.bounds) && x > h.f.bounds[i] { // few: faster than halving
		i++
	}
	s.buckets[i].Add(1)
	s.plus(x)
}
