package outcome

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ken/capability"
)

// A pair is a capability within a session. Sessions of two tenants are two,
// whatever they are called.
type pair struct {
	tenant, session string
	id              capability.ID
}

// A showing is one selection of one capability, whatever its tiers.
type showing struct {
	at     time.Time
	tokens int  // of what was sent
	sent   bool // it went into the prompt
	used   bool // a call followed
	worked bool // a call followed and did not fail

	text  bool            // it is something to read
	line  bool            // of which only a line was selected
	names []capability.ID // the tools that a text names
}

// judged reports whether it can be told if it was of use.
func (s *showing) judged() bool { return !s.text || s.line || s.used || len(s.names) > 0 }

// A ledger joins selections with the outcomes that follow them. It is fed in
// the order of events and closed at the end; the functions are called as things
// become known, and each may be nil.
type ledger struct {
	settled  func(pair, showing)                           // each showing, once
	searched func(p pair, at time.Time, missed bool)       // missed: not selected before in that session
	called   func(p pair, worked, selected, searched bool) // selected, searched: before, in that session

	last  map[pair]showing
	found map[pair]bool
	turn  map[capability.ID]showing // of the event at hand
	texts map[talk][]pair           // selected for the last message of a session
}

// A talk is a session of a tenant.
type talk struct{ tenant, session string }

func (l *ledger) add(e Event) {
	if l.last == nil {
		l.last, l.found, l.turn, l.texts = map[pair]showing{}, map[pair]bool{}, map[capability.ID]showing{}, map[talk][]pair{}
	}
	p := pair{e.Tenant, e.Session, e.ID}
	switch e.Kind {
	case Selected:
		l.selected(e)
	case Searched:
		_, selected := l.last[p]
		if l.searched != nil {
			l.searched(p, e.Time, !selected && e.ID != "")
		}
		l.found[p] = true
	case Described:
		if l.last[p].text {
			l.use(p, true)
		}
	case Used, Failed:
		_, selected := l.last[p]
		if selected {
			l.use(p, e.Kind == Used)
		}
		for _, text := range l.texts[talk{e.Tenant, e.Session}] {
			if slices.Contains(l.last[text].names, e.ID) {
				l.use(text, e.Kind == Used)
			}
		}
		if l.called != nil {
			l.called(p, e.Kind == Used, selected, l.found[p])
		}
	}
}

// use notes that something selected was of use.
func (l *ledger) use(p pair, worked bool) {
	s := l.last[p]
	s.used = true
	s.worked = s.worked || worked
	l.last[p] = s
}

func (l *ledger) selected(e Event) {
	clear(l.turn)
	of := talk{e.Tenant, e.Session}
	delete(l.texts, of)
	for _, it := range e.Items {
		if it.Tier == TierMap {
			continue
		}
		s, again := l.turn[it.ID]
		s.at = e.Time
		if it.isText() {
			s.text = true
			s.line = it.Tier == TierBrief && (s.line || !again)
			s.names = append(s.names, it.Names...)
		}
		if e.Injected && !it.Held && !it.There {
			s.sent = true
			s.tokens += it.Tokens
		}
		l.turn[it.ID] = s
	}
	for id, s := range l.turn {
		p := pair{e.Tenant, e.Session, id}
		if before, ok := l.last[p]; ok && l.settled != nil {
			l.settled(p, before)
		}
		l.last[p] = s
		if len(s.names) > 0 {
			l.texts[of] = append(l.texts[of], p)
		}
	}
}

func (l *ledger) close() {
	if l.settled == nil {
		return
	}
	keys := slices.SortedFunc(maps.Keys(l.last), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.session, b.session), cmp.Compare(a.id, b.id))
	})
	for _, p := range keys { // sums depend on the order
		l.settled(p, l.last[p])
	}
}
