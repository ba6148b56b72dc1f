package billtest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ken/internal/talk/model"
)

// families are the newest model of each provider family in the table, an older
// one whose provider caches without marks, and one that people run themselves.
func families() []family {
	return []family{
		{"anthropic", model.Messages, "claude-opus-5-5"},
		{"openai", model.Responses, "gpt-6.1-sol"},
		{"openai older", model.Responses, "gpt-5.1"},
		{"gemini", model.Gemini, "gemini-4-argon"},
		{"local", model.Chat, "gpt-oss:20b"},
	}
}

type family struct {
	name string
	wire model.Wire
	id   string
}

// talks is how many conversations a cell is the sum of.
const talks = 3

// A square of the table is one model with one sample and one number of calls.
type square struct {
	family     family
	tools      int
	calls      int
	none, all  float64
	modes      map[model.DeliveryMode]played
	auto       model.DeliveryMode
	why        string
	doesNotFit bool
}

// over is what a delivery mode costs more than the same conversation without any tools.
func (c *square) over(r model.DeliveryMode) float64 { return c.modes[r].cost - c.none }

// cut is how much less that is than with everything in the prompt, in percent.
func (c *square) cut(r model.DeliveryMode) float64 { return 100 * (1 - c.over(r)/(c.all-c.none)) }

// best is the delivery mode that costs least.
func (c *square) best() model.DeliveryMode {
	best := model.Bridge
	for r := range c.modes {
		if c.modes[r].cost < c.modes[best].cost || c.modes[r].cost == c.modes[best].cost && r < best {
			best = r
		}
	}
	return best
}

// replay plays every cell of one sample. fresh is how often the user wants
// something new, see [world.talk].
func replay(tb testing.TB, tools []tool, fresh int) (cells []*square) {
	w := newWorld(tb, tools)
	var table *model.Table
	for _, calls := range []int{3, 8} {
		var conversations [][]turn
		for seed := range uint64(talks) {
			conversations = append(conversations, w.talk(tb, calls, fresh, seed))
		}
		for _, f := range families() {
			row, ok := table.Find(f.wire, f.id)
			if !ok {
				tb.Fatalf("the table has no row for %s", f.id)
			}
			c := &square{family: f, tools: len(tools), calls: calls, modes: map[model.DeliveryMode]played{}}
			play := func(r model.DeliveryMode) (sum played) {
				for _, talk := range conversations {
					p := w.play(tb, row, r, talk, calls)
					sum.delivery, sum.why = p.delivery, p.why
					sum.cost += p.cost
					sum.searches += p.searches
					sum.largest = max(sum.largest, p.largest)
				}
				return sum
			}
			c.none = play(none).cost
			all := play(everything)
			c.all, c.doesNotFit = all.cost, all.largest > row.Window
			for _, r := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
				if row.Has(r) {
					c.modes[r] = play(r)
				}
			}
			auto := play(model.Auto)
			c.auto, c.why = auto.delivery, auto.why
			if math.Abs(auto.cost-c.modes[c.auto].cost) > 1e-9 {
				tb.Errorf("%s, %d tools: auto costs %v and %s, which it is, %v", f.name, len(tools), auto.cost, c.auto, c.modes[c.auto].cost)
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// line is a row of the table: what everything in the prompt adds to the bill,
// and how much less each delivery mode adds.
func (c *square) line() string {
	var b strings.Builder
	mark := " "
	if c.doesNotFit {
		mark = "*" // larger than the model's window: the price is what it would be
	}
	fmt.Fprintf(&b, "%5d tools %d calls %-12s without %7.3f all +%8.3f%s", c.tools, c.calls, c.family.name, c.none, c.all-c.none, mark)
	for _, r := range []model.DeliveryMode{model.Whole, model.Inline, model.Search, model.Bridge, model.Extend, model.PerTurn} {
		if p, ok := c.modes[r]; ok {
			fmt.Fprintf(&b, "  %s %.1f%% (%d)", r, c.cut(r), p.searches)
		}
	}
	fmt.Fprintf(&b, "  auto: %s %.1f%%", c.auto, c.cut(c.auto))
	return b.String()
}
