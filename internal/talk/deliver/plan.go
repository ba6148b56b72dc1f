package deliver

import (
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// PlanInput is what a session begins with.
type PlanInput struct {
	Want model.DeliveryMode // empty means [model.Auto]
	Row  model.Row

	Core []Offer // in the prefix whatever the delivery mode
	All  []Offer // everything that may be called, Core too or not; nil: too much to be shown whole

	// Last stands at the end of the tools, in this order: Ken's own.
	Last []llm.Tool

	Refused map[model.DeliveryMode]bool // what the provider would not take before
	Count   tokenizer.Counter           // nil: exact

	// List describes everything that is not in All, for a session that gets all
	// tools. Its text replaces the map. It is empty if the catalog contains
	// only tools.
	List door.Others

	// Turns is how long sessions like this one are, and Steps how many requests
	// a turn of theirs has. Zero means 30 and 5.
	Turns, Steps int
}

// A Plan is how the tools of a session are delivered.
type Plan struct {
	Delivery model.DeliveryMode
	Why      string // the choice in one line, with its numbers
	Tools    []llm.Tool
	Offers   []session.Offer // which of Tools are capabilities

	// Map says that the system text needs the map of what there is: not all of
	// it is in Tools. Otherwise it needs List instead.
	Map  bool
	List door.Others
}

// Begin plans a session. A delivery mode that was asked for is taken where the model has
// it, else the next lower one.
func Begin(in PlanInput) Plan {
	in.Count = counter(in.Count)
	if in.Want == "" {
		in.Want = model.Auto
	}
	p := Plan{Delivery: in.Want}
	if in.Want == model.Auto {
		p.Delivery, p.Why = cheapest(in)
	} else {
		p.Delivery, p.Why = asked(in)
	}
	offers, last := in.Core, in.Last
	p.Map = p.Delivery != model.Whole
	if p.Delivery == model.Whole {
		p.List = in.List
		offers, last = in.All, in.last()
		for _, o := range in.Core {
			if !slices.ContainsFunc(in.All, func(a Offer) bool { return a.Tool.Name == o.Tool.Name }) {
				offers = append(slices.Clip(offers), o)
			}
		}
	}
	p.Tools, p.Offers = prefix(offers, last)
	return p
}

// last returns the tools of Ken that a session with all tools needs. There is
// nothing to search for and nothing to call by id. The reading tool stays, so
// that texts and the reference can be read on every delivery mode.
func (in *PlanInput) last() []llm.Tool {
	return slices.DeleteFunc(slices.Clone(in.Last), func(t llm.Tool) bool {
		return t.Name == capability.ToolDiscover || t.Name == capability.ToolList || t.Name == capability.ToolInvoke
	})
}

// prefix sorts offers and puts Ken's own tools after them.
func prefix(offers []Offer, last []llm.Tool) ([]llm.Tool, []session.Offer) {
	sorted := slices.Clone(offers)
	coldsort.By(sorted, func(a, b Offer) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	tools := make([]llm.Tool, 0, len(sorted)+len(last))
	entries := make([]session.Offer, 0, len(sorted))
	for i := range sorted {
		tools, entries = append(tools, sorted[i].tool()), append(entries, sorted[i].entry())
	}
	return append(tools, last...), entries
}

func asked(in PlanInput) (model.DeliveryMode, string) {
	why := "toolDelivery " + string(in.Want)
	r := in.Want
	if r == model.Whole && in.All == nil {
		return Lower(in.Refused, in.Row, model.Inline), why + ": there are too many tools to show them whole"
	}
	if got := Lower(in.Refused, in.Row, r); got != r {
		return got, why + ": the model has none, " + string(got) + " instead"
	}
	return r, why
}

// Lower returns r where the model has it and has not refused it, else the next
// delivery mode below that it has. Bridge, whole, extend and per_turn need nothing of a
// model.
func Lower(refused map[model.DeliveryMode]bool, row model.Row, r model.DeliveryMode) model.DeliveryMode {
	ladder := []model.DeliveryMode{model.Inline, model.Search}
	from := slices.Index(ladder, r)
	if from < 0 {
		if r == model.Auto || r == "" {
			return model.Bridge
		}
		return r
	}
	for _, r := range ladder[from:] {
		if slices.Contains(row.DeliveryModes, r) && !refused[r] {
			return r
		}
	}
	return model.Bridge
}

// Weights returns relative prices for a model that has none, such as one on the
// user's own machine: it does not cost dollars, but a cached read is still cheaper
// than reading input again, and output is dearer than both.
func Weights() model.Price {
	return model.Price{Input: 1, CachedRead: 0.1, CacheWrite: 1, Output: 5}
}
