package evals

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/find/eval"
)

func written(do func(writer)) (out, err string) {
	var o, e strings.Builder
	do(writer{output.New(&o), &e})
	return o.String(), e.String()
}

// TestReport: each measure is a line, one that is not defined is a dash, and only
// the first problems are printed.
func TestReport(t *testing.T) {
	none := eval.Mean(math.NaN())
	r := eval.Report{
		N: 1, OutOfScope: 3, NDCG5: 61.25, NDCG5BeforeFloor: 70, Recall1: 50, Recall5: 80, Recall5BeforeFloor: 80, Recall10: none, MRR: none,
		Reliability: []eval.Bin{{From: 0, To: 0.1}, {From: 0.9, To: 1, N: 4, Score: 0.95, Right: 0.5}},
	}
	for i := range maxProblems + 2 {
		r.Problems = append(r.Problems, capability.Problem{Message: fmt.Sprintf("case %d\nis odd", i)})
	}
	out, errs := written(func(w writer) { w.report(r) })
	for _, want := range []string{
		"queries\t1 answerable query, 3 out of scope\n", "ndcg@5\t61.2  (70.0 before the floor)\n", "recall@5\t80.0\n", "recall@10\t–\n",
		"reliability\t0.9–1.0\t4\tsaid 0.95\tright 0.50\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("Report has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "0.0–0.1") || strings.Contains(out, "tokens") {
		t.Errorf("Report has lines of what was not measured:\n%s", out)
	}
	if n := strings.Count(errs, "\n"); n != maxProblems+1 || !strings.Contains(errs, "case 0 is odd") || !strings.HasSuffix(errs, "ken: 2 problems more; --json has them all\n") {
		t.Errorf("problems are printed in %d lines:\n%s", n, errs)
	}
}

// TestMisses: a query, its gold and the first three hits, and that nothing was
// shown.
func TestMisses(t *testing.T) {
	if out, _ := written(func(w writer) { w.misses(nil) }); out != "" {
		t.Errorf("no misses print %q", out)
	}
	hits := []eval.Ranked{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	out, _ := written(func(w writer) {
		w.misses([]eval.PerQuery{{ID: "q1", Query: "send mail", Gold: []string{"tool:mail"}, Hits: hits, Abstained: true}})
	})
	if want := "\nndcg@5\tquery\tgold\tfound\n0.0\tq1: send mail\ttool:mail\tnothing shown, a, b, c\n"; out != want {
		t.Errorf("Misses = %q, want %q", out, want)
	}
}

// TestComparison: a difference counts where its interval leaves out zero, and
// less time is better.
func TestComparison(t *testing.T) {
	real := func(diff eval.Mean) eval.Difference {
		return eval.Difference{A: 50, B: 50 + diff, Diff: diff, Low: diff - 1, High: diff + 1}
	}
	out, _ := written(func(w writer) {
		w.comparison(eval.Comparison{NDCG5: real(5), Recall5: eval.Difference{A: 50, B: 51, Diff: 1, Low: -1, High: 3}, Latency: real(9)})
	})
	lines := strings.Split(out, "\n")
	for i, want := range []string{"", "B is better", "no clear difference", "A is better"} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("line %d is %q, want it to end with %q", i, lines[i], want)
		}
	}
	if !strings.Contains(lines[1], "+5.00\t+4.00 … +6.00") || !strings.Contains(out, "no query is ranked better or worse") {
		t.Errorf("Comparison =\n%s", out)
	}
	out, _ = written(func(w writer) {
		w.comparison(eval.Comparison{Tokens: real(-20), Changed: []eval.Changed{{ID: "q1", Query: "x", NDCG5: [2]eval.Mean{0, 100}}}})
	})
	if !strings.Contains(out, "tokens\t50.0\t30.0\t-20.00") || !strings.Contains(out, "0.0\t100.0\tq1: x\t\n") {
		t.Errorf("Comparison =\n%s", out)
	}
}
