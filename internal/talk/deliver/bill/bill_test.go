package bill

import (
	"fmt"
	"testing"

	"ken/internal/talk/model"
)

var rows = []struct {
	name string
	wire model.Wire
	id   string
}{
	{"anthropic", model.Messages, "claude-opus-5-5"},
	{"openai", model.Responses, "gpt-6.1-sol"},
	{"openai-older", model.Responses, "gpt-5.1"},
	{"gemini", model.Gemini, "gemini-4-argon"},
	{"local", model.Chat, "gpt-oss:20b"},
}

func TestExplore(t *testing.T) {
	tools := corpus(t)
	var table *model.Table
	for _, n := range []int{50, 200} {
		w := newWorld(t, tools[:n])
		for _, fresh := range []int{3} {
			for _, calls := range []int{3, 8} {
				var talks [][]turn
				for seed := range uint64(3) {
					talks = append(talks, w.talk(t, calls, fresh, seed))
				}
				for _, r := range rows {
					row, _ := table.Find(r.wire, r.id)
					sum := func(rung model.Rung) (c float64, se int, why string) {
						for _, talk := range talks {
							p := w.play(t, row, rung, talk, calls)
							c += p.cost
							se += p.searches
							why = p.why
						}
						return c, se, why
					}
					base, _, _ := sum(none)
					all, _, _ := sum(everything)
					s := fmt.Sprintf("fresh %d n %4d calls %d %-12s base %.3f all +%.3f:", fresh, n, calls, r.name, base, all-base)
					for _, rung := range []model.Rung{model.Whole, model.Inline, model.Search, model.Bridge, model.Auto} {
						if !row.Has(rung) {
							continue
						}
						c, se, why := sum(rung)
						s += fmt.Sprintf(" %s %.1f%%/%d", rung, 100*(1-(c-base)/(all-base)), se)
						if rung == model.Auto {
							s += why
						}
					}
					t.Log(s)
				}
			}
		}
	}
}
