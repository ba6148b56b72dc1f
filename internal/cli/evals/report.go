package evals

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ken/internal/cli/output"
	"ken/internal/find/checkup"
	"ken/internal/find/eval"
)

// maxProblems is how many problems are printed for people.
const maxProblems = 10

// A writer prints reports to Out, and problems to Err.
type writer struct {
	Out *output.Printer
	Err io.Writer
}

// report prints a report: bars on a terminal, tabs between columns
// elsewhere.
func (w writer) report(r eval.Report) {
	queries := output.Plural(r.N, "answerable query")
	if r.OutOfScope > 0 {
		queries += fmt.Sprintf(", %d out of scope", r.OutOfScope)
	}
	w.fact("queries", queries)
	w.score("ndcg@5", r.NDCG5, r.NDCG5BeforeFloor)
	w.score("recall@1", r.Recall1, r.Recall1)
	w.score("recall@5", r.Recall5, r.Recall5BeforeFloor)
	w.score("recall shown", r.RecallShown, r.RecallShown)
	w.score("recall@10", r.Recall10, r.Recall10)
	w.score("mrr", r.MRR, r.MRR)
	w.fact("abstained", fmt.Sprintf("%s of out of scope, %s of answerable, floor %s",
		number(r.Abstain.OutOfScope, 1, "%"), number(r.Abstain.InScope, 1, "%"), number(r.Abstain.Floor, 2, "")))
	w.fact("calibration", fmt.Sprintf("error %s, of the first five %s", number(r.CalibrationError, 3, ""), number(r.CalibrationErrorAll, 3, "")))
	w.reliability(r.Reliability)
	if r.Tokens.Max > 0 {
		w.fact("tokens", fmt.Sprintf("median %d, most %d", r.Tokens.Median, r.Tokens.Max))
	}
	w.fact("time", fmt.Sprintf("p50 %s, p99 %s, first answer after %s",
		number(r.P50, 1, " µs"), number(r.P99, 1, " µs"), number(r.IndexMS, 0, " ms")))
	w.fact("memory", fmt.Sprintf("%s resident, %s allocations a query", number(r.RSSMB, 1, " MB"), number(r.Allocs, 0, "")))
	w.problems(r)
}

// fact prints one line of a report.
func (w writer) fact(label, value string) {
	if !w.Out.Terminal {
		w.Out.Linef("%s\t%s", label, value)
		return
	}
	w.Out.Linef("%s  %s", w.Out.Style(output.Bold, fmt.Sprintf("%-11s", label)), value)
}

// score prints a measure, and what it was before the floor where that differs.
func (w writer) score(label string, m, before eval.Mean) {
	value := number(m, 1, "")
	if w.Out.Terminal && m.Defined() {
		value = w.Out.Bar(float64(m)/100) + " " + fmt.Sprintf("%5s", value)
	}
	if m.Defined() && m != before {
		value += fmt.Sprintf("  (%s before the floor)", number(before, 1, ""))
	}
	w.fact(label, value)
}

// number writes a mean with so many digits after the point, or a dash.
func number(m eval.Mean, digits int, unit string) string {
	if !m.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.*f%s", digits, float64(m), unit)
}

// reliability shows what share of the hits was right, by what their
// scores promised: an honest finder gives a line that rises evenly.
func (w writer) reliability(bins []eval.Bin) {
	if w.Out.Terminal {
		const steps = "▁▂▃▄▅▆▇█"
		var line strings.Builder
		for _, b := range bins {
			if b.N == 0 {
				line.WriteString("·")
				continue
			}
			line.WriteRune([]rune(steps)[min(int(b.Right*8), 7)])
		}
		w.fact("reliability", w.Out.Style(output.Green, line.String())+w.Out.Style(output.Dim, "  share that was right, by score from 0 to 1"))
		return
	}
	for _, b := range bins {
		if b.N > 0 {
			w.fact("reliability", fmt.Sprintf("%.1f–%.1f\t%d\tsaid %s\tright %s", b.From, b.To, b.N, number(b.Score, 2, ""), number(b.Right, 2, "")))
		}
	}
}

func (w writer) problems(r eval.Report) {
	for _, p := range r.Problems[:min(maxProblems, len(r.Problems))] {
		fmt.Fprintln(w.Err, "ken:", output.Line(p.String()))
	}
	if more := len(r.Problems) - maxProblems; more > 0 {
		fmt.Fprintf(w.Err, "ken: %s more; --json has them all\n", output.Plural(more, "problem"))
	}
}

// misses names queries, what should have been found, and what was.
func (w writer) misses(misses []eval.PerQuery) {
	if len(misses) == 0 {
		return
	}
	rows := [][]string{{"ndcg@5", "query", "gold", "found"}}
	for _, p := range misses {
		found := []string{}
		for _, h := range p.Hits[:min(3, len(p.Hits))] {
			found = append(found, h.ID)
		}
		if p.Abstained {
			found = append([]string{"nothing shown"}, found...)
		}
		rows = append(rows, []string{fmt.Sprintf("%.1f", p.NDCG5), p.ID + ": " + p.Query, strings.Join(p.Gold, ", "), strings.Join(found, ", ")})
	}
	w.Out.Linef("")
	w.Out.Table([]output.Column{{Style: output.Bold}, {Grow: true}, {Style: output.Green}, {Style: output.Dim}}, rows)
}

// comparison says how B differs from A, and whether that means anything.
func (w writer) comparison(d eval.Comparison) {
	rows := [][]string{{"", "A", "B", "B − A", "95% interval", "better", "worse", "same", ""}}
	add := func(label string, d eval.Difference, better float64) {
		verdict := "no clear difference"
		switch {
		case d.Real() && better*float64(d.Diff) > 0:
			verdict = "B is better"
		case d.Real():
			verdict = "A is better"
		}
		rows = append(rows, []string{
			label, number(d.A, 1, ""), number(d.B, 1, ""), signed(d.Diff), signed(d.Low) + " … " + signed(d.High),
			fmt.Sprint(d.Wins), fmt.Sprint(d.Losses), fmt.Sprint(d.Ties), verdict,
		})
	}
	add("ndcg@5", d.NDCG5, 1)
	add("recall@5", d.Recall5, 1)
	if d.Tokens.A > 0 || d.Tokens.B > 0 {
		add("tokens", d.Tokens, -1)
	}
	add("time µs", d.Latency, -1)
	words := map[string]string{"B is better": output.Green, "A is better": output.Yellow, "no clear difference": output.Dim}
	w.Out.Table([]output.Column{{Style: output.Bold}, {}, {}, {}, {}, {}, {}, {}, {Styles: words}}, rows)
	if len(d.Changed) == 0 {
		w.Out.Linef("\nno query is ranked better or worse")
		return
	}
	w.Out.Linef("\nchanged most, ndcg@5 of A and B:")
	rows = nil
	for _, q := range d.Changed {
		rows = append(rows, []string{number(q.NDCG5[0], 1, ""), number(q.NDCG5[1], 1, ""), q.ID + ": " + q.Query, strings.Join(q.Gold, ", ")})
	}
	w.Out.Table([]output.Column{{}, {}, {Grow: true}, {Style: output.Green}}, rows)
}

func signed(m eval.Mean) string {
	if !m.Defined() {
		return "–"
	}
	return fmt.Sprintf("%+.2f", float64(m))
}

// checkup prints what the examination of a catalog showed: the first n of each
// list, ten where n is 0.
func (w writer) checkup(r checkup.Report, n int) {
	if n == 0 {
		n = maxProblems
	}
	share := func(k int) string {
		if r.Requests == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f%%", 100*float64(k)/float64(r.Requests))
	}
	w.fact("asked", fmt.Sprintf("%s for %s, made of their descriptions", output.Plural(r.Requests, "request"), output.Plural(r.Capabilities, "capability")))
	w.fact("found first", share(r.First))
	w.fact("first three", share(r.Three))
	w.fact("not shown", share(r.Empty))
	if len(r.Confusable) > 0 {
		w.Out.Linef("\n%s", w.Out.Style(output.Bold, "taken for each other"))
		w.pairs(r.Confusable[:min(n, len(r.Confusable))])
		w.more(len(r.Confusable)-n, "pair")
	}
	if len(r.Improve) > 0 {
		w.Out.Linef("\n%s", w.Out.Style(output.Bold, "descriptions to improve"))
		for _, a := range r.Improve[:min(n, len(r.Improve))] {
			w.Out.Linef("%s", w.Out.Style(output.Green, output.Line(string(a.ID))))
			for _, how := range a.How {
				w.Out.Linef("  %s", output.Line(how))
			}
		}
		w.more(len(r.Improve)-n, "description")
	}
	if r.BuiltIn > 0 {
		w.Out.Linef("\n%s", w.Out.Style(output.Dim, "No advice for "+output.Plural(r.BuiltIn, "capability")+" of Ken itself: you cannot change these descriptions."))
	}
	if len(r.Confusable)+len(r.Improve)+r.BuiltIn == 0 {
		w.Out.Linef("\nEvery capability is told from the others by its description.")
	}
}

// pairs prints what is taken for each other. Turns of the outcome log have a column
// where there are any.
func (w writer) pairs(list []checkup.Pair) {
	rows := [][]string{{"asked for", "first instead", "requests", "words the other lacks"}}
	columns := []output.Column{{Style: output.Green}, {Style: output.Yellow}, {}, {Grow: true, Style: output.Dim}}
	logged := slices.ContainsFunc(list, func(p checkup.Pair) bool { return p.Turns > 0 })
	if logged {
		rows[0], columns = slices.Insert(rows[0], 3, "turns"), slices.Insert(columns, 3, output.Column{})
	}
	for _, p := range list {
		row := []string{string(p.ID), string(p.With), fmt.Sprintf("%d of %d", p.Lost, p.Of), strings.Join(p.Only, ", ")}
		if logged {
			row = slices.Insert(row, 3, fmt.Sprint(p.Turns))
		}
		rows = append(rows, row)
	}
	w.Out.Table(columns, rows)
}

// more says how many are not printed.
func (w writer) more(n int, what string) {
	if n > 0 {
		w.Out.Linef("%s", w.Out.Style(output.Dim, output.Plural(n, what)+" more; --json has them all"))
	}
}
