package prompt

import (
	"fmt"

	"ken/internal/talk/session"
)

// A Do is what a plan does.
type Do string

const (
	None     Do = ""
	Condense Do = "condense" // a model sums up what is hidden
	Truncate Do = "truncate" // a marker stands for it
)

// Numbers say how much room there is. The zero values of all but Window are
// their defaults.
type Numbers struct {
	Window  int // tokens of the model in all; 0: there is no limit
	Reserve int // tokens kept for the answer; 0: 8192

	// Buffer is the part of the window that stays free, because counts differ
	// from the provider's; 0: 0.10.
	Buffer float64

	// Condense is how full the window may be before the conversation is summed
	// up, from 0.05 to 1; 0: 1. A profile that says -1 has the default. Whatever
	// it says, it is summed up when it no longer fits.
	Condense float64

	// NoModel means that no model can sum up the history: it is cut instead.
	NoModel bool
}

const (
	defaultReserve = 8192
	defaultBuffer  = 0.10
	leastCondense  = 0.05
)

// full returns the numbers with their defaults.
func (n Numbers) full() Numbers {
	if n.Reserve <= 0 {
		n.Reserve = defaultReserve
	}
	if n.Buffer <= 0 || n.Buffer >= 1 {
		n.Buffer = defaultBuffer
	}
	if n.Condense <= 0 || n.Condense > 1 {
		n.Condense = 1
	}
	n.Condense = max(n.Condense, leastCondense)
	return n
}

// Allowed is how many tokens a request may have.
func (n Numbers) Allowed() int {
	n = n.full()
	return int(float64(n.Window)*(1-n.Buffer)) - n.Reserve
}

// A Plan says what of a conversation is to be hidden so that it fits. It is
// carried out by one entry: that of [Summary] or [Marker].
type Plan struct {
	Do       Do
	From, To int    // the first and last entry to hide, by Seq
	Hidden   int    // messages that will be hidden
	Before   int    // tokens of the request as it is
	After    int    // at most, when the plan is carried out
	Room     int    // tokens for what stands in the place of what is hidden
	Over     int    // tokens by which it is still too long, even then
	Why      string // for people
}

// Fit says whether the next request fits, and if not, what to hide, with the
// numbers of [Numbers]: it must be no more than [Numbers.Allowed], and is summed
// up when it fills Condense of the window. prefix is what system prompt and
// tools take, next what is about to be added to what is live.
//
// A plan is one large step: it hides at least half of the messages, an even
// number where that is possible, and as many more as it takes to come to half
// the window. The first message of the person is always kept, and so is the
// newest exchange. A call and its result stay together. The rest is hidden, not
// deleted: a rewind brings it back.
func Fit(live []session.Entry, prefix, next int, n Numbers) Plan {
	n = n.full()
	p := Plan{Before: prefix + next + sizes(live)}
	p.After = p.Before
	if n.Window <= 0 {
		return p
	}
	allowed := n.Allowed()
	switch {
	case p.Before > allowed:
		p.Why = fmt.Sprintf("the conversation has %d tokens; of the window of %d, %d are left for it", p.Before, n.Window, max(allowed, 0))
	case float64(p.Before) >= n.Condense*float64(n.Window) && !n.NoModel:
		p.Why = fmt.Sprintf("the conversation has %d tokens, which is %d%% of the window of %d; chat.condenseAt is %.0f%%", p.Before, p.Before*100/n.Window, n.Window, n.Condense*100)
	default:
		return p
	}
	p.cut(live, target{keep: 0.5, tokens: min(n.Window/2, max(allowed, 0)), room: room(p.Before), model: !n.NoModel})
	p.Over = max(0, p.After-allowed)
	return p
}

// Most is how often a request is made again after the provider found it too
// long.
const Most = 3

// Overflow is the plan after a provider refused a request as too long: the
// counts were wrong, so it hides a quarter of what there is, whatever the
// window. try counts from 1; after [Most] there is no plan.
func Overflow(live []session.Entry, prefix, next, try int, n Numbers) Plan {
	n = n.full()
	p := Plan{Before: prefix + next + sizes(live)}
	p.After = p.Before
	if try > Most {
		p.Why = fmt.Sprintf("the provider found it too long %d times", Most)
		return p
	}
	p.Why = fmt.Sprintf("the provider found %d tokens too long; try %d of %d keeps three quarters", p.Before, try, Most)
	p.cut(live, target{keep: 0.75, tokens: p.Before * 3 / 4, room: room(p.Before), model: !n.NoModel})
	return p
}

// room is how many tokens may stand in the place of what is hidden, of so many
// in all.
func room(before int) int { return min(max(before/16, 300), 4000) }

// A target is where a cut is to lead.
type target struct {
	keep   float64 // the part of the messages that may stay
	tokens int
	room   int
	model  bool
}

// cut plans what to hide. Where nothing can be hidden, or hiding would gain
// nothing, it says so and does nothing.
func (p *Plan) cut(live []session.Entry, t target) {
	units := split(live)
	first := keptFirst(units)
	most := len(units) - 1 // the newest exchange stays
	all := 0
	for _, u := range units[min(first+1, len(units)):] {
		all += u.messages
	}
	least := int(float64(all) * (1 - t.keep))
	least -= least % 2
	var hidden, messages, to int
	end := -1
	for i := first + 1; i < most; i++ {
		u := &units[i]
		hidden += u.tokens
		messages += u.messages
		to = max(to, u.to)
		if messages == 0 || messages < least || p.Before-hidden+t.room > t.tokens {
			continue
		}
		if end = i; messages%2 == 0 {
			break
		}
		// One more makes it even, if there is one more.
		if i+1 >= most || (messages+units[i+1].messages)%2 != 0 {
			break
		}
	}
	if end < 0 {
		end = most - 1
	}
	if end <= first || hidden <= t.room {
		p.Why += "; nothing can be hidden: what is left is the first message, the newest exchange and the prefix"
		return
	}
	p.Do = Truncate
	if t.model {
		p.Do = Condense
	}
	p.From, p.To, p.Hidden, p.Room = units[first+1].from, to, messages, t.room
	p.After = p.Before - hidden + t.room
	p.Why += fmt.Sprintf("; %d messages are hidden", messages)
}

func sizes(live []session.Entry) int {
	n := 0
	for i := range live {
		n += size(&live[i])
	}
	return n
}

// A unit is what is kept or hidden together: what the person said with what was
// put beside it, or an answer with the results of its calls.
type unit struct {
	from, to int // Seq, of what stands for others the first that it hides
	messages int
	tokens   int
	person   bool
}

// split cuts what is live into units.
func split(live []session.Entry) []unit {
	var units []unit
	calls := map[string]int{} // the unit of a call that waits for its result
	turn := 0
	last := session.Kind("")
	for i := range live {
		e := &live[i]
		if e.Kind == session.Prefix || e.Kind == session.Note || e.Kind == session.Rewound {
			continue
		}
		joins := len(units) > 0 && e.Turn == turn && (e.Kind == session.Added || e.Kind == session.User) && (last == session.Added || last == session.User)
		joins = joins || len(units) > 0 && (e.Kind == session.Results || e.Kind == session.Added && e.Turn == turn && last != session.Assistant)
		side := e.Kind != session.Assistant
		if !joins {
			units = append(units, unit{from: e.Seq})
		}
		u := &units[len(units)-1]
		if !joins || side && last == session.Assistant {
			u.messages++
		}
		from, to := e.Seq, e.Seq
		if (e.Kind == session.Summary || e.Kind == session.Marker) && e.To > 0 {
			from, to = e.From, e.To
		}
		u.from, u.to = min(u.from, from), max(u.to, to)
		u.tokens += size(e)
		u.person = u.person || e.Kind == session.User
		units = paired(units, calls, e)
		turn, last = e.Turn, e.Kind
	}
	return units
}

// paired joins units until the results of an entry stand with their calls.
func paired(units []unit, calls map[string]int, e *session.Entry) []unit {
	at := len(units) - 1
	for i := range e.Blocks {
		switch b := &e.Blocks[i]; {
		case b.Call != nil:
			calls[b.Call.ID] = at
		case b.Result != nil:
			if of, ok := calls[b.Result.ID]; ok && of < at {
				for _, u := range units[of+1:] {
					w := &units[of]
					w.from, w.to = min(w.from, u.from), max(w.to, u.to)
					w.messages += u.messages
					w.tokens += u.tokens
					w.person = w.person || u.person
				}
				units, at = units[:of+1], of
			}
		}
	}
	return units
}

// keptFirst is the unit with the first message of the person; the first one of
// all where there is none.
func keptFirst(units []unit) int {
	for i := range units {
		if units[i].person {
			return i
		}
	}
	return 0
}
