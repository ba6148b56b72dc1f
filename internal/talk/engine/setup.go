package engine

import (
	"maps"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// A setup is what is fixed for a turn.
type setup struct {
	in    event.Input // with the mode and agent of the session
	title string      // of a session that begins, if it is not what was said
	terms Terms       // as they were when the turn began
	view  door.View   // what exists for the model
	model Model       // no Model: none was asked yet
	rules IntentRules
}

// scope returns where a message of the turn comes from.
func (s setup) scope() capability.Scope {
	scope := s.in.Scope
	scope.Session, scope.Mode, scope.Agent, scope.User = s.in.Session, s.in.Mode, s.in.Agent, s.in.Principal.ID
	return scope
}

// takes reports whether the model takes tools by a delivery mode.
func (s setup) takes(p progress, r model.DeliveryMode) bool {
	return deliver.Lower(p.refused, s.model.Row, r) == r
}

// wanted returns the delivery mode that was asked for.
func (s setup) wanted() model.DeliveryMode {
	if s.in.Delivery != "" {
		return s.in.Delivery
	}
	return s.terms.Delivery
}

// numbers say how much room the model has.
func (s setup) numbers() prompt.Numbers {
	n := s.terms.Fit
	if n.Window == 0 {
		n.Window = s.model.Row.Window
	}
	if n.Reserve == 0 {
		n.Reserve = s.model.MaxTokens
	}
	n.NoModel = n.NoModel || s.model.Condenser == nil
	return n
}

// nearlyFull reports whether a history takes three quarters of what a request
// may have.
func (s setup) nearlyFull(h history) bool {
	n := s.numbers()
	return n.Window > 0 && 4*prompt.Fit(h.live, h.prefix.Tokens, 0, prompt.Numbers{}).Before >= 3*n.Allowed()
}

// A progress is what a turn has come to so far. It is a value: each step returns
// a new one, and the maps and slices in it are never changed.
type progress struct {
	tally
	faults
	intents intents

	delivery model.DeliveryMode          // how found tools become callable
	refused  map[model.DeliveryMode]bool // by the provider
	sent     llm.Request                 // the last one; zero: the next may begin otherwise
	found    door.Found                  // for the message
	allowed  Limits                      // with what a person agreed to
}

// A tally is what a turn has used.
type tally struct {
	steps, calls int
	usage        llm.Usage
	cost         float64
	text         string // the answer
}

// faults count what goes wrong one after another.
type faults struct {
	mistakes  int    // of the model
	same      string // the last call
	repeats   int    // of it
	looping   bool   // the last call was one repetition too many
	overflows int    // of the window
	retried   bool   // this request was tried before
}

// spend counts a request to the model.
func (p progress) spend(u llm.Usage, dollars float64) progress {
	p.usage.Add(u)
	p.cost += dollars
	return p
}

// beforeRequest counts a request that is made now, and tells if it does not begin
// as the one before it.
func (p progress) beforeRequest(t turn, req llm.Request) progress {
	if p.sent.Messages != nil {
		if why := prompt.Broke(p.sent, req); why != "" {
			t.out.notice("prefix", why)
		}
	}
	p.intents = p.intents.newRequest(t.rules)
	p.steps++
	p.sent = req
	return p
}

// refuse remembers that the provider refused a delivery mode.
func (p progress) refuse(r model.DeliveryMode) progress {
	p.refused = maps.Clone(p.refused)
	p.refused[r] = true
	return p
}

// recall returns what the earlier part of a turn came to.
func (p progress) recall(entries []session.Entry, number int) progress {
	for i := range entries {
		e := &entries[i]
		if e.Turn != number {
			continue
		}
		if e.Kind == session.Assistant {
			p.steps++
			p.calls += len(callsOf(e.Blocks))
		}
		if e.Usage != nil {
			p = p.spend(*e.Usage, e.Cost)
		}
	}
	return p
}

// recallIntent returns the progress with the intents that were declared in a
// turn. If an intent holds for one request, those of earlier requests do not
// count.
func (p progress) recallIntent(rules IntentRules, entries []session.Entry, number int) progress {
	for i := range entries {
		e := &entries[i]
		if e.Turn != number {
			continue
		}
		if e.Kind == session.Assistant {
			p.intents = p.intents.newRequest(rules)
		}
		switch n := session.ReadNote(e).(type) {
		case session.Unanswered:
			p.intents = p.intents.newRequest(rules)
		case session.Intended:
			p.intents = p.intents.take(n.Intent)
		}
	}
	return p
}

// refusedModes returns the delivery modes that the provider refused for a model.
func refusedModes(entries []session.Entry, name string) map[model.DeliveryMode]bool {
	refused := map[model.DeliveryMode]bool{}
	for i := range entries {
		if n, ok := session.ReadNote(&entries[i]).(session.DeliveryRefused); ok && n.Model == name {
			refused[model.DeliveryMode(n.Mode)] = true
		}
	}
	return refused
}
