//go:build unix

package outcome

import (
	"fmt"
	"iter"
	"syscall"
	"testing"
	"time"

	"ken/capability"
)

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppendSelection writes one selection, rotation included.
func BenchmarkAppendSelection(b *testing.B) {
	l := open(b, b.TempDir(), Config{})
	e := typical()
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if err := l.Append(e); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
}

// BenchmarkEncodeSelection is the part of it that is not the kernel's.
func BenchmarkEncodeSelection(b *testing.B) {
	e := typical()
	e.Time = noon
	b.ReportAllocs()
	for b.Loop() {
		line, err := encode(nil, e)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(line)))
	}
}

func BenchmarkHash(b *testing.B) {
	l := open(b, b.TempDir(), Config{})
	for b.Loop() {
		l.Hash("What would it cost to route these messages to a cheaper model, and who decides?")
	}
}

// BenchmarkSwitchCheck judges after one new turn, with a day of 5,000 turns.
func BenchmarkSwitchCheck(b *testing.B) {
	l := open(b, b.TempDir(), Config{})
	e := typical()
	e.Items = e.Items[:5]
	now := noon
	for range 5000 {
		e.Time = now
		add(b, l, e)
		now = now.Add(time.Second)
	}
	s := newSwitch(b, l, SwitchConfig{})
	check(b, s, now)
	b.ReportAllocs()
	for b.Loop() {
		e.Time = now
		add(b, l, e)
		now = now.Add(time.Second)
		check(b, s, now)
	}
}

// BenchmarkSwitchStart is the first look at a full log of which a day counts.
func BenchmarkSwitchStart(b *testing.B) {
	l := open(b, b.TempDir(), Config{})
	e := typical()
	now := noon
	for range 20_000 {
		e.Time = now
		add(b, l, e)
		now = now.Add(time.Minute)
	}
	for b.Loop() {
		check(b, newSwitch(b, l, SwitchConfig{}), now)
	}
}

func BenchmarkGate(b *testing.B) {
	g := Gate{Mode: Soft, SessionTypes: []string{"isolated", "main"}, Switch: newSwitch(b, open(b, b.TempDir(), Config{}), SwitchConfig{})}
	b.ReportAllocs()
	for b.Loop() {
		g.AllowCards(capability.Scope{})
	}
}

func BenchmarkPriors(b *testing.B) { // of 10,000 turns
	l := open(b, b.TempDir(), Config{Keep: 10})
	e := typical()
	for i := range 10_000 {
		e.Time, e.Session = noon, fmt.Sprint("s", i/8)
		add(b, l, e)
	}
	for b.Loop() {
		Priors(l.Events(time.Time{}), noon)
	}
}

// long returns a log of n events: a fifth of them each selections, calls that
// worked, turns, refusals and searches.
func long(n int) iter.Seq2[Event, error] {
	sel := typical()
	return func(yield func(Event, error) bool) {
		for i := range n {
			at, session := noon.Add(time.Duration(i)*20*time.Second), fmt.Sprint("s", i/40)
			e := Event{Time: at, Session: session, ID: capability.ID(fmt.Sprint("tool:", i%700))}
			switch i % 5 {
			case 0:
				e = sel
				e.Time, e.Session = at, session
			case 1:
				e.Kind, e.TookUS = Used, int64(i%9999)
			case 2:
				e.Kind, e.Rule = Refused, "intents"
			case 3:
				e.Kind = Searched
			case 4:
				e = turned(session, at, 3, 1500, 100, 42_000, Usage{Input: 30_000, CachedRead: 20_000, Output: 500})
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// BenchmarkInsights sums up 100,000 events; the bar is 300 ms.
func BenchmarkInsights(b *testing.B) {
	var all []Event
	for e := range long(100_000) {
		all = append(all, e)
	}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		Insights(of(all...), InsightsConfig{Price: dear, Zone: time.Local})
	}
	b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// BenchmarkInsightsOfLog reads them from the log too.
func BenchmarkInsightsOfLog(b *testing.B) {
	l := open(b, b.TempDir(), Config{Keep: 100})
	for e := range long(100_000) {
		add(b, l, e)
	}
	before := cpu(b)
	for b.Loop() {
		Insights(l.Events(time.Time{}), InsightsConfig{Price: dear})
	}
	b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}
