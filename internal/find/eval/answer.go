package eval

import (
	"time"

	"ken/internal/find/discover"
)

// AnswerOf returns what was selected as an answer. floor is what the best had to
// reach.
func AnswerOf(sel discover.Selection, floor float64) Answer {
	a := Answer{
		Abstained: sel.Abstained(), Floor: floor, Tokens: sel.Tokens.Total,
		Took: time.Duration(sel.TookUS) * time.Microsecond,
	}
	for _, b := range sel.Briefs {
		a.Shown = append(a.Shown, string(b.ID))
	}
	for _, n := range sel.Ranking[:min(10, len(sel.Ranking))] {
		a.Hits = append(a.Hits, Ranked{ID: string(n.ID), Score: n.Score})
	}
	return a
}
