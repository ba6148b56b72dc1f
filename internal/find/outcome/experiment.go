package outcome

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The two configurations of an experiment.
const (
	VariantA = "A"
	VariantB = "B"
)

// Assign puts a session into one half of an experiment. It depends on nothing
// but its arguments: every process, today and later, says the same. The name of
// the experiment is the salt, so the halves of two experiments are independent.
func Assign(session, experiment string) string {
	// The lengths keep the two apart.
	text := fmt.Appendf(nil, "ken.experiment.v1 %d:%s %d:%s", len(experiment), experiment, len(session), session)
	if sha256.Sum256(text)[0]&1 == 0 {
		return VariantA
	}
	return VariantB
}

// A Comparison is what an experiment shows so far.
type Comparison struct {
	Experiment string     `json:"experiment"`
	Method     string     `json:"method"`
	A          Variant    `json:"a"`
	B          Variant    `json:"b"`
	Success    Difference `json:"success"` // used of selected
	Tokens     Difference `json:"tokens"`  // per turn
	Misses     Difference `json:"misses"`  // per turn
	Crossed    int        `json:"crossed"` // sessions left out because they saw both
	Unreadable int        `json:"unreadable"`
}

// A Variant is one half of an experiment. Tokens are those sent or, where
// nothing was injected, those that would have been.
type Variant struct {
	Sessions      int     `json:"sessions"`
	Turns         int     `json:"turns"`
	Selections    int     `json:"selections"`
	Used          int     `json:"used"`
	Misses        int     `json:"misses"`
	Success       float64 `json:"success"`
	TokensPerTurn float64 `json:"tokens_per_turn"`
	MissesPerTurn float64 `json:"misses_per_turn"`
}

// A Difference is B − A with its 95% confidence interval. Judging all three
// measures, or looking many times until one shows something, finds more
// differences than there are.
type Difference struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Enough bool    `json:"enough"` // there were sessions enough for an interval
	Clear  bool    `json:"clear"`  // the interval leaves out 0
	Words  string  `json:"words"`
}

const (
	method = "ratios of sums over sessions, linearised; Welch's t over sessions, 95%"

	// minSessions is how many each half needs before an interval is given.
	minSessions = 10
)

// A trial is what one session contributes.
type trial struct {
	variant                               string
	turns, tokens, selected, used, misses float64
	crossed                               bool
}

// Compare computes what an experiment shows. A session is the unit: its turns
// resemble each other and are not counted as independent. The interval of each
// ratio of sums comes from the sessions' residuals, with Welch's t for two
// halves of unequal size and spread. Sessions count from their first selection
// in the experiment on.
func Compare(events iter.Seq2[Event, error], experiment string) Comparison {
	c := Comparison{Experiment: experiment, Method: method}
	trials := map[string]*trial{}
	book := ledger{
		settled: func(p pair, s showing) {
			if t := trials[p.session]; t != nil && s.judged() {
				t.selected++
				if s.used {
					t.used++
				}
			}
		},
		searched: func(p pair, _ time.Time, missed bool) {
			if t := trials[p.session]; t != nil && missed {
				t.misses++
			}
		},
	}
	for e, err := range events {
		if err != nil {
			c.Unreadable++
			continue
		}
		if e.Kind == Selected {
			if e.Experiment != experiment {
				continue
			}
			if trials[e.Session] == nil {
				trials[e.Session] = &trial{variant: e.Variant}
			}
			trials[e.Session].add(e)
		}
		book.add(e)
	}
	book.close()
	c.judge(trials)
	return c
}

func (t *trial) add(e Event) {
	t.turns++
	if e.Injected {
		t.tokens += float64(e.sent())
	} else {
		t.tokens += float64(e.Tokens.Total)
	}
	t.crossed = t.crossed || e.Variant != t.variant || e.Variant != VariantA && e.Variant != VariantB
}

func (c *Comparison) judge(trials map[string]*trial) {
	var a, b half
	for _, session := range slices.Sorted(maps.Keys(trials)) { // sums depend on the order
		t := trials[session]
		switch {
		case t.crossed:
			c.Crossed++
		case t.variant == VariantA:
			a = append(a, *t)
		default:
			b = append(b, *t)
		}
	}
	c.A, c.B = a.variant(), b.variant()
	success := func(t trial) (y, x float64) { return t.used, t.selected }
	tokens := func(t trial) (y, x float64) { return t.tokens, t.turns }
	misses := func(t trial) (y, x float64) { return t.misses, t.turns }
	c.Success = difference(a.estimate(success), b.estimate(success))
	c.Tokens = difference(a.estimate(tokens), b.estimate(tokens))
	c.Misses = difference(a.estimate(misses), b.estimate(misses))
	c.Success.say(a, b, wording{measure: "the share of shown capabilities that are used", scale: 100, places: 1, unit: " points",
		clear: "B's share of shown capabilities that are used is %s points %s", less: "lower", more: "higher"})
	c.Tokens.say(a, b, wording{measure: "tokens per turn", scale: 1, places: 0,
		clear: "B uses %s %s tokens per turn", less: "fewer", more: "more"})
	c.Misses.say(a, b, wording{measure: "misses per turn", scale: 1, places: 3,
		clear: "B has %s %s misses per turn", less: "fewer", more: "more"})
}

// A half is the sessions of one variant.
type half []trial

func (h half) variant() Variant {
	var v Variant
	tokens := 0.0
	for _, t := range h {
		v.Sessions++
		v.Turns += int(t.turns)
		v.Selections += int(t.selected)
		v.Used += int(t.used)
		v.Misses += int(t.misses)
		tokens += t.tokens
	}
	v.Success = ratio(v.Used, v.Selections)
	v.MissesPerTurn = ratio(v.Misses, v.Turns)
	if v.Turns > 0 {
		v.TokensPerTurn = tokens / float64(v.Turns)
	}
	return v
}

// An estimate is a ratio of sums and the variance of that ratio.
type estimate struct {
	ratio, variance float64
	n               int // sessions that say something
}

func (h half) estimate(of func(trial) (y, x float64)) estimate {
	var e estimate
	var sumY, sumX float64
	for _, t := range h {
		if y, x := of(t); x > 0 {
			sumY += y
			sumX += x
			e.n++
		}
	}
	if e.n == 0 {
		return e
	}
	e.ratio = sumY / sumX
	if e.n < 2 {
		return e
	}
	squares := 0.0
	for _, t := range h {
		if y, x := of(t); x > 0 {
			r := y - e.ratio*x
			squares += r * r
		}
	}
	n := float64(e.n)
	e.variance = squares / (sumX * sumX) * n / (n - 1)
	return e
}

func difference(a, b estimate) Difference {
	d := Difference{Value: b.ratio - a.ratio, Enough: min(a.n, b.n) >= minSessions}
	if !d.Enough {
		return d
	}
	v := a.variance + b.variance
	margin := 0.0
	if v > 0 {
		df := v * v / (a.variance*a.variance/float64(a.n-1) + b.variance*b.variance/float64(b.n-1))
		margin = t975(df) * math.Sqrt(v)
	}
	d.Low, d.High = d.Value-margin, d.Value+margin
	d.Clear = d.Low > 0 || d.High < 0
	return d
}

// t975 is the quantile of Student's t that leaves 2.5% above, by the expansion
// around the normal's; within 0.2% from 5 degrees of freedom on.
func t975(df float64) float64 {
	const z = 1.959963984540054
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*df) + (5*z5+16*z3+3*z)/(96*df*df) + (3*z7+19*z5+17*z3-15*z)/(384*df*df*df)
}

// wording says how a difference is told.
type wording struct {
	measure    string
	scale      float64
	places     int
	unit       string
	clear      string // with the amount and the direction
	less, more string
}

func (d *Difference) say(a, b half, w wording) {
	number := func(x float64) string {
		return strings.Replace(fmt.Sprintf("%.*f", w.places, w.scale*x), "-", "−", 1)
	}
	switch {
	case !d.Enough:
		d.Words = fmt.Sprintf("too few sessions to compare %s (A %d, B %d; at least %d of each must have some)", w.measure, len(a), len(b), minSessions)
	case !d.Clear:
		d.Words = fmt.Sprintf("no difference shown in %s (B − A: %s%s, 95%%: %s to %s)", w.measure, number(d.Value), w.unit, number(d.Low), number(d.High))
	case d.Value < 0:
		d.Words = fmt.Sprintf(w.clear, number(-d.Value), w.less) + fmt.Sprintf(" (95%%: %s to %s)", number(-d.High), number(-d.Low))
	default:
		d.Words = fmt.Sprintf(w.clear, number(d.Value), w.more) + fmt.Sprintf(" (95%%: %s to %s)", number(d.Low), number(d.High))
	}
}
