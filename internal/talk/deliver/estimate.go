package deliver

import (
	"fmt"
	"math"
	"strings"

	"ken/internal/talk/model"
	"ken/llm"
)

// Assumptions about a session of which nothing is known: numbers of tokens, and
// how often things happen. They are round numbers of the size that the replay in
// package bill measures.
const (
	usualTurns = 30
	usualSteps = 5 // requests of a turn: four calls and the answer

	systemTokens  = 600
	mapTokens     = 200
	messageTokens = 50
	answerTokens  = 120
	callTokens    = 50
	resultTokens  = 270

	needs     = 0.5  // tools that a turn wants and the turn before did not
	waste     = 1.1  // tools given for one that is needed
	missed    = 0.2  // of what is needed, what must be searched for
	lineToken = 15   // of lines about the rest, in a turn
	asText    = 0.75 // of a tool's tokens, what the text about it has
	envelope  = 14   // tokens that a call through the bridge has more
	looking   = 30   // tokens of a call that searches
	told      = 250  // tokens of the answer to it where that is text
	mostText  = 1500 // tokens of what is shown in full

	manyTools = 1000 // if the number is unknown
	toolSize  = 250
)

// cheapest chooses among the delivery modes that a model has by what a usual session
// would cost with each.
func cheapest(in PlanInput) (model.DeliveryMode, string) {
	e := newEstimate(in)
	modes := []model.DeliveryMode{model.Bridge}
	for _, r := range []model.DeliveryMode{model.Search, model.Inline} {
		if Lower(in.Refused, in.Row, r) == r {
			modes = append(modes, r)
		}
	}
	fits := "too many to be shown whole"
	if in.All != nil {
		fits = fmt.Sprintf("%d tools of %d tokens", len(in.All), e.total)
		switch window := in.Row.Window; {
		case window > 0 && e.total+in.List.Tokens > window/2:
			fits += " do not fit into a window of " + fmt.Sprint(window)
		default:
			modes = append(modes, model.Whole)
		}
	}
	least := math.Inf(1)
	var best model.DeliveryMode
	var all []string
	for i := len(modes) - 1; i >= 0; i-- { // of equals the one that a model knows best
		cost := e.cost(modes[i])
		all = append(all, string(modes[i])+" "+e.money(cost))
		if cost < least {
			best, least = modes[i], cost
		}
	}
	return best, fmt.Sprintf("auto: %s; %s; %d turns would cost %s", best, fits, e.turns, strings.Join(all, ", "))
}

// An estimate prices a usual session.
type estimate struct {
	row   model.Row
	price model.Price

	turns, steps int
	tools        float64 // how many there are
	total        int     // their tokens
	mean         float64 // tokens of one, as far as it is shown
	own          float64 // tokens of Ken's own, Core too
	whole        float64 // of these, what a list of everything needs
}

func newEstimate(in PlanInput) *estimate {
	e := &estimate{row: in.Row, price: in.Row.Price, turns: in.Turns, steps: in.Steps, tools: manyTools, mean: toolSize}
	if !e.price.Known() {
		e.price = Weights()
	}
	if e.turns <= 0 {
		e.turns = usualTurns
	}
	if e.steps <= 0 {
		e.steps = usualSteps
	}
	shown := 0
	for i := range in.All {
		n := in.All[i].tokens(in.Count)
		e.total += n
		shown += min(n, mostText)
	}
	if len(in.All) > 0 {
		e.tools, e.mean = float64(len(in.All)), float64(shown)/float64(len(in.All))
	}
	for i := range in.Core {
		n := float64(in.Core[i].tokens(in.Count))
		e.own += n
		e.whole += n
	}
	for _, t := range in.Last {
		e.own += float64(ToolTokens(t, in.Count))
	}
	for _, t := range in.last() {
		e.whole += float64(ToolTokens(t, in.Count))
	}
	e.whole += float64(in.List.Tokens)
	return e
}

// A way is what a delivery mode does to a session: tokens before it, tokens that a new
// tool adds, requests more for one and what their answers hold, and tokens that
// each turn and each call have more.
type way struct {
	prefix, tool, requests, answer, turn, call float64
}

func (e *estimate) way(r model.DeliveryMode) way {
	ken := e.own + mapTokens
	switch r {
	case model.Whole:
		return way{prefix: float64(e.total) + e.whole}
	case model.Inline:
		return way{prefix: ken, tool: e.mean * waste, requests: missed, answer: looking, turn: lineToken}
	case model.Search:
		return way{prefix: ken, tool: e.mean, requests: 1, answer: looking, turn: 2 * lineToken}
	}
	return way{prefix: ken, tool: e.mean * asText * waste, requests: 1.3 * missed, answer: told, turn: lineToken, call: envelope}
}

// cost plays a usual session. Every request finds what the one before it sent in
// the cache, if that is enough to be kept.
func (e *estimate) cost(r model.DeliveryMode) float64 {
	w := e.way(r)
	size, before, sum, used := systemTokens+w.prefix, 0.0, 0.0, 0.0
	request := func(output, share float64) {
		sum += share * e.price.Cost(e.usage(size, before, output))
		before = size
	}
	for turn := range e.turns {
		seen := e.tools * (1 - math.Pow(1-1/e.tools, needs*float64(turn+1)))
		fresh := seen - used
		used = seen
		size += messageTokens + w.turn + fresh*w.tool
		if fresh > 0 && w.requests > 0 {
			share := fresh * w.requests
			request(looking, share)
			size += share * (looking + w.answer)
		}
		for range e.steps - 1 {
			request(callTokens+w.call, 1)
			size += callTokens + w.call + resultTokens
		}
		request(answerTokens, 1)
		size += answerTokens
	}
	return sum
}

// usage is what a request of some size is billed after one of another size.
func (e *estimate) usage(size, before, output float64) llm.Usage {
	rule := e.row.Cache
	u := llm.Usage{Input: int(size), Output: int(output)}
	read := int(before)
	if rule.Step > 1 {
		read -= read % rule.Step
	}
	if read >= rule.Least && (rule.Marked || rule.Life > 0) {
		u.CachedRead = read
	}
	if rule.Marked && u.Input >= rule.Least {
		u.CachedWrite = u.Input - u.CachedRead
	}
	return u
}

// money writes a cost, or where there is no price how it compares.
func (e *estimate) money(cost float64) string {
	if e.row.Price.Known() {
		return fmt.Sprintf("$%.2f", cost)
	}
	return fmt.Sprintf("%.2f", cost)
}
