package outcome

import (
	"cmp"
	"time"

	"ken/internal/coldsort"
)

// pricing prices turns. See [Insights] for what it takes for granted.
type pricing struct {
	of     func(model string) (Price, bool)
	known  map[string]priced
	warm   map[schemas]time.Time
	search map[sessionKey]int // searches since the session's last turn
}

// A priced model has its price where ok.
type priced struct {
	Price
	ok bool
}

// schemas are all of them as one provider caches them for one tenant: another
// size is another list.
type schemas struct {
	tenant, model string
	size          int
}

type sessionKey struct{ tenant, session string }

func newPricing(of func(string) (Price, bool)) pricing {
	return pricing{of: of, known: map[string]priced{}, warm: map[schemas]time.Time{}, search: map[sessionKey]int{}}
}

func (u Usage) plain() int { return max(0, u.Input-u.CachedRead-u.CachedWrite) }

// looked records that a model searched or read the description of a tool.
// Reading a text such as a skill does not count: it would have been read
// without Ken too.
func (m *pricing) looked(e *Event) {
	if e.Kind == Described && e.Detail == ReadText {
		return
	}
	m.search[sessionKey{e.Tenant, e.Session}]++
}

// looks returns how many requests of a turn were there only for searches, at
// most: with all schemas at hand they would not have been.
func (m *pricing) looks(e *Event) int {
	k := sessionKey{e.Tenant, e.Session}
	n := m.search[k]
	delete(m.search, k)
	return max(0, min(n, e.Requests-1))
}

// warmed notes that a provider would have all schemas in its cache when a turn
// ends, and reports whether it had them when the turn began.
func (m *pricing) warmed(e *Event) (before bool) {
	if e.AllToolTokens <= 0 || e.Requests <= 0 {
		return false
	}
	k := schemas{e.Tenant, e.Model, e.AllToolTokens}
	last, ok := m.warm[k]
	if e.Time.After(last) {
		m.warm[k] = e.Time
	}
	if !ok {
		return false
	}
	life := m.lookup(e.Model).Life
	began := e.Time.Add(-time.Duration(e.TookUS) * time.Microsecond)
	return life <= 0 || began.Sub(last) <= life
}

func (m *pricing) lookup(model string) priced {
	p, seen := m.known[model]
	if seen {
		return p
	}
	if m.of != nil && model != "" {
		p.Price, p.ok = m.of(model)
		p.Model = cmp.Or(p.Model, model)
	}
	m.known[model] = p
	return p
}

// fits returns how much of all schemas the model's window has room for beside
// the rest of a turn's requests. More could not have been sent.
func (m *pricing) fits(e *Event) int {
	window := m.lookup(e.Model).Window
	if window <= 0 {
		return e.AllToolTokens
	}
	rest := max(0, e.Usage.Input/e.Requests-e.Shown)
	return max(0, min(e.AllToolTokens, window-rest))
}

// used returns the prices of the models that were asked about.
func (m *pricing) used() []Price {
	out := []Price{}
	for _, p := range m.known {
		if p.ok {
			out = append(out, p.Price)
		}
	}
	coldsort.By(out, func(a, b Price) int { return cmp.Compare(a.Model, b.Model) })
	return out
}

// price returns what capabilities cost in a turn, and what as many schemas as fit
// would have cost, in dollars.
func (m *pricing) price(e *Event, fits, looks int) (paid, all float64, ok bool) {
	warm := m.warmed(e)
	p := m.lookup(e.Model)
	if !p.ok {
		return 0, 0, false
	}
	u, requests := e.Usage, float64(e.Requests)
	input := float64(u.plain())*p.Input + float64(u.CachedRead)*p.CachedRead + float64(u.CachedWrite)*p.CacheWrite
	mean := input / float64(max(1, u.Input))
	added := float64(min(e.Added, e.Shown))
	shown := added*max(p.Input, p.CacheWrite) + (float64(e.Shown)*requests-added)*mean
	shown = min(shown, input) // a part costs no more than the whole
	searching := float64(looks) / requests * (input - shown + float64(u.Output)*p.Output)

	first := p.CacheWrite
	if warm {
		first = p.CachedRead
	}
	dump := float64(fits) * (first + (requests-float64(looks)-1)*p.CachedRead)
	return (shown + searching) / 1e6, dump / 1e6, true
}
