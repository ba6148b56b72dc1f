package outcome

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

func TestAssignIsStable(t *testing.T) {
	// Sessions in flight must not change sides: these never change.
	var got strings.Builder
	for i := range 16 {
		got.WriteString(Assign(fmt.Sprint("session-", i), "floor"))
	}
	if want := "AABBABAAAAABAAAB"; got.String() != want {
		t.Errorf("Assign = %s, want %s", &got, want)
	}
}

func TestAssignIsBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		experiment := rapid.String().Draw(t, "experiment")
		prefix := rapid.String().Draw(t, "prefix")
		const n = 1000
		b, both := 0, 0
		for i := range n {
			session := fmt.Sprint(prefix, i)
			v := Assign(session, experiment)
			if v != VariantA && v != VariantB || v != Assign(session, experiment) {
				t.Fatalf("Assign(%q, %q) = %q", session, experiment, v)
			}
			count(&b, v == VariantB)
			count(&both, v == VariantB && Assign(session, experiment+"'") == VariantB)
		}
		// Five standard deviations of a fair coin.
		if math.Abs(float64(b)-n/2) > 5*math.Sqrt(n/4.) {
			t.Fatalf("%d of %d in B", b, n)
		}
		if math.Abs(float64(both)-n/4) > 5*math.Sqrt(n*3/16.) {
			t.Fatalf("%d of %d in B of both experiments, want independent halves", both, n)
		}
	})
	if Assign("1", "ab") == Assign("1", "ba") && Assign("2", "ab") == Assign("2", "ba") && Assign("3", "ab") == Assign("3", "ba") &&
		Assign("4", "ab") == Assign("4", "ba") && Assign("5", "ab") == Assign("5", "ba") && Assign("6", "ab") == Assign("6", "ba") {
		t.Error("the experiment is no salt")
	}
}

// A world makes an experiment with known truth: sessions differ, so turns of
// one session resemble each other.
type world struct {
	sessions       int
	successA, upB  float64 // mean success, and B's advantage
	tokensA, moreB float64
}

func (w world) events(r *rand.Rand) []Event {
	var out []Event
	for s := range w.sessions {
		session := fmt.Sprint("s", s)
		variant := []string{VariantA, VariantB}[s%2]
		success, tokens := w.successA+0.2*(r.Float64()-0.5), w.tokensA+200*r.NormFloat64()
		if variant == VariantB {
			success += w.upB
			tokens += w.moreB
		}
		for range 2 + r.IntN(8) {
			e := selection(session, brief("tool:a", 0), brief("tool:b", 0))
			e.Experiment, e.Variant = "floor", variant
			e.Tokens.Total = max(0, int(tokens+100*r.NormFloat64()))
			out = append(out, e)
			if r.Float64() < success {
				out = append(out, outcome(Used, session, "tool:a"))
			}
			if r.Float64() < success {
				out = append(out, outcome(Used, session, "tool:b"))
			}
			if r.Float64() < 0.1 {
				out = append(out, outcome(Searched, session, "tool:c"))
			}
		}
	}
	return out
}

// TestIntervalsCover repeats an experiment whose truth is known: about 95 of
// 100 intervals hold it, and without a difference about 5 of 100 claim one.
func TestIntervalsCover(t *testing.T) {
	testkit.CI(t, "hundreds of experiments")
	for _, w := range []world{
		{40, 0.4, 0, 1000, 0},
		{40, 0.4, 0.15, 1000, -120},
		{100, 0.7, -0.1, 1500, 60},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		const runs = 200
		var success, tokens, misses int
		for range runs {
			c := Compare(of(w.events(r)...), "floor")
			count(&success, c.Success.Low <= w.upB && w.upB <= c.Success.High)
			count(&tokens, c.Tokens.Low <= w.moreB && w.moreB <= c.Tokens.High)
			count(&misses, !c.Misses.Clear)
		}
		for name, n := range map[string]int{"success": success, "tokens": tokens, "misses": misses} {
			// 0.95 ± four standard deviations of the count itself.
			if share := float64(n) / runs; share < 0.888 || share > 0.999 {
				t.Errorf("%+v: %s covered in %.3f of runs, want about 0.95", w, name, share)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	w := world{400, 0.4, 0.2, 1000, -120}
	events := w.events(r)
	c := Compare(of(events...), "floor")
	if c.A.Sessions != 200 || c.B.Sessions != 200 || c.A.Turns == 0 || c.A.Selections != 2*c.A.Turns || c.Crossed != 0 {
		t.Errorf("Compare = %+v", c)
	}
	if !c.Tokens.Clear || !strings.HasPrefix(c.Tokens.Words, "B uses 1") || !strings.Contains(c.Tokens.Words, " fewer tokens per turn (95%: ") {
		t.Errorf("tokens: %+v", c.Tokens)
	}
	if !c.Success.Clear || !strings.Contains(c.Success.Words, "points higher (95%: ") {
		t.Errorf("success: %+v", c.Success)
	}
	if c.Misses.Clear || !strings.HasPrefix(c.Misses.Words, "no difference shown in misses per turn") {
		t.Errorf("misses: %+v", c.Misses)
	}
	if again := Compare(of(events...), "floor"); again != c {
		t.Errorf("Compare = %+v, then %+v", c, again)
	}
	if got := Compare(of(events...), "other"); got.A.Turns+got.B.Turns != 0 || got.Tokens.Enough {
		t.Errorf("another experiment: %+v", got)
	}
	// A session that saw both sides says nothing about either.
	crossed := selection("s0", brief("tool:a", 0))
	crossed.Experiment, crossed.Variant = "floor", VariantB
	if got := Compare(of(append(slices.Clone(events), crossed)...), "floor"); got.Crossed != 1 || got.A.Sessions != 199 || got.B.Sessions != 200 {
		t.Errorf("crossed %d, A %d, B %d; want 1, 199, 200", got.Crossed, got.A.Sessions, got.B.Sessions)
	}
}

// exact makes sessions without any chance in them.
func exact(n, tokensA, tokensB int, injected bool) []Event {
	var out []Event
	for i := range n {
		e := selection(fmt.Sprint("s", i), brief("tool:a", 0))
		e.Experiment, e.Variant, e.Tokens.Total, e.Injected = "x", VariantA, tokensA, injected
		if i%2 == 1 {
			e.Variant, e.Tokens.Total = VariantB, tokensB
		}
		out = append(out, e)
	}
	return out
}

func TestComparisonInWords(t *testing.T) {
	spread := exact(40, 1000, 880, true)
	for i := range spread {
		spread[i].Tokens.Total += 50 * (i/2%3 - 1)
	}
	tests := []struct {
		name   string
		events []Event
		want   string
	}{
		{"nothing", nil, "too few sessions to compare tokens per turn (A 0, B 0; at least 10 of each must have some)"},
		{"few", exact(18, 1000, 880, true), "too few sessions to compare tokens per turn (A 9, B 9; at least 10 of each must have some)"},
		{"fewer", exact(40, 1000, 880, true), "B uses 120 fewer tokens per turn (95%: 120 to 120)"},
		{"more", exact(40, 1000, 1010, true), "B uses 10 more tokens per turn (95%: 10 to 10)"},
		{"same", exact(40, 1000, 1000, true), "no difference shown in tokens per turn (B − A: 0, 95%: 0 to 0)"},
		{"only logged", exact(40, 1000, 880, false), "B uses 120 fewer tokens per turn (95%: 120 to 120)"},
		// ±50 in thirds: variance of each mean 50²·(13/20)·(20/19)/20 = 85.5, of the difference 171; t(38) = 2.024.
		{"spread", spread, "B uses 120 fewer tokens per turn (95%: 94 to 146)"},
	}
	for _, tt := range tests {
		if got := Compare(of(tt.events...), "x").Tokens.Words; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestT975(t *testing.T) {
	// From the usual table.
	for df, want := range map[float64]float64{5: 2.5706, 9: 2.2622, 18: 2.1009, 38: 2.0244, 100: 1.9840, 1e9: 1.95996} {
		if got := t975(df); math.Abs(got-want) > 0.002*want {
			t.Errorf("t975(%v) = %v, want %v", df, got, want)
		}
	}
}

func TestCompareCountsUnreadable(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	add(t, l, exact(40, 1000, 880, true)...)
	l.file.Write([]byte("half"))
	if c := Compare(l.Events(time.Time{}), "x"); c.Unreadable != 1 || !c.Tokens.Clear || c.Method == "" {
		t.Errorf("Compare = %+v, want one unreadable line", c)
	}
}
