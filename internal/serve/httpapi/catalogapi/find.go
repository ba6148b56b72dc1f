package catalogapi

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/serve/httpapi/wire"
)

// Examples are things that a new user could ask for.
type Examples struct {
	Examples []discover.Example `json:"examples"`
}

// examplesKey is that of all examples of a view.
type examplesKey struct{}

const (
	usualExamples = 3
	mostExamples  = 50
)

func (s *server) examples(r *wire.Request) (any, error) {
	limit := r.Whole("limit", usualExamples)
	if limit < 1 || limit > mostExamples {
		return nil, wire.Bad("limit is " + strconv.Itoa(limit) + "; it is within 1 to " + strconv.Itoa(mostExamples))
	}
	v := s.view(r)
	all := v.Keep(examplesKey{}, func() any { return discover.Examples(seconds(v.Shown()), mostExamples) }).([]discover.Example)
	return Examples{all[:min(limit, len(all))]}, nil
}

// seconds leaves the first of each pair out.
func seconds[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}

func (s *server) discover(r *wire.Request) (any, error) {
	if strings.TrimSpace(r.Text("q")) == "" {
		return nil, wire.Bad("q is empty; say what is wanted, as in ?q=search+the+web")
	}
	q := door.Query{Text: r.Text("q"), Now: time.Now(), Scope: capability.Scope{
		Session: r.Text("session"), SessionType: r.Text("sessionType"), Agent: r.Text("agent"),
	}}
	q.Filter = door.Filter{Category: r.Text("category"), OnlyAvailable: r.Yes("available"), Kinds: kinds(r)}
	for _, id := range r.Texts("exclude") {
		q.Filter.Exclude = append(q.Filter.Exclude, capability.ID(id))
	}
	for _, text := range r.Texts("before") {
		q.Before = append(q.Before, door.Message{Role: "user", Text: text})
	}
	for name, into := range map[string]**int{"top": &q.Override.TopK, "full": &q.Override.FullK, "budget": &q.Override.TotalTokens} {
		if r.Has(name) {
			n := r.Whole(name, 0)
			if n > mostNumber {
				return nil, wire.Bad(fmt.Sprintf("%s is %d; it is at most %d", name, n, mostNumber))
			}
			*into = &n
		}
	}
	if r.Has("minRelevance") {
		chance := r.Number("minRelevance", 0)
		if !(chance >= 0 && chance <= 1) {
			return nil, wire.Bad(fmt.Sprintf("minRelevance is %s; it is a number within 0 to 1", r.Text("minRelevance")))
		}
		q.Override.MinRelevance = &chance
	}
	found, err := s.Door.Find(r.Context(), s.Door.View(r.Who.Principal), q)
	if err != nil {
		return nil, err
	}
	return found, nil
}

func kinds(r *wire.Request) []capability.Kind {
	var out []capability.Kind
	for _, kind := range r.Texts("kind") {
		if kind != "" {
			out = append(out, capability.Kind(kind))
		}
	}
	return out
}

// What a message to play with may have.
const (
	mostNumber = 1_000_000
	mostText   = 64 << 10
	mostBefore = 20
)

// A PlayRequest is a message and what to change for it.
type PlayRequest struct {
	Text     string           `json:"q"`
	Before   []Said           `json:"before,omitempty"` // the oldest first
	Override door.Override    `json:"override"`
	Filter   PlayFilter       `json:"filter"`
	Scope    capability.Scope `json:"scope"`
}

// Said is an earlier message.
type Said struct {
	Role string `json:"role"` // user or assistant
	Text string `json:"text"`
}

// A PlayFilter narrows what is found.
type PlayFilter struct {
	Kinds     []capability.Kind `json:"kinds,omitempty"`
	Category  string            `json:"category,omitempty"`
	Available bool              `json:"available,omitempty"`
	Exclude   []capability.ID   `json:"exclude,omitempty"`
}

// A Play is what a message finds, and by which numbers.
type Play struct {
	Found    door.Found    `json:"found"`
	Ranking  []Place       `json:"ranking"` // best first, whatever the floor
	Settings door.Override `json:"settings"`
	Defaults door.Override `json:"defaults"`
}

// A Place is one of a ranking.
type Place struct {
	ID    capability.ID   `json:"id"`
	Name  string          `json:"name"`
	Kind  capability.Kind `json:"kind"`
	Score float64         `json:"score"`
	Shown bool            `json:"shown"`
	Why   []string        `json:"why"` // it is shown, or not
}

func (s *server) play(r *wire.Request) (any, error) {
	var in PlayRequest
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	v := s.Door.View(r.Who.Principal)
	q := door.Query{Text: in.Text, Now: time.Now(), Scope: in.Scope, Override: in.Override, Filter: door.Filter{
		Kinds: in.Filter.Kinds, Category: in.Filter.Category, OnlyAvailable: in.Filter.Available, Exclude: in.Filter.Exclude,
	}}
	for _, m := range in.Before {
		q.Before = append(q.Before, door.Message{Role: m.Role, Text: m.Text})
	}
	found, err := s.Door.Preview(r.Context(), v, q)
	if err != nil {
		return nil, err
	}
	defaults := s.Door.Settings(v, in.Scope).Numbers()
	settings := in.Override.Over(defaults)
	return Play{Found: found, Ranking: places(v, found, *settings.TailRelevance), Settings: settings, Defaults: defaults}, nil
}

func (p *PlayRequest) check() error {
	if strings.TrimSpace(p.Text) == "" {
		return wire.Bad("q is empty; say what is wanted")
	}
	if err := checkSaid(p.Text, p.Before); err != nil {
		return err
	}
	if err := p.Override.Check(); err != nil {
		return wire.Bad("override." + err.Error())
	}
	return nil
}

func checkSaid(text string, before []Said) error {
	if len(text) > mostText {
		return wire.Bad(fmt.Sprintf("the message has %d bytes; %d are taken", len(text), mostText))
	}
	if len(before) > mostBefore {
		return wire.Bad(fmt.Sprintf("before has %d messages; %d are taken, and four count", len(before), mostBefore))
	}
	for _, m := range before {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return wire.Bad(fmt.Sprintf("a message before is of %q; it is of user or assistant", m.Role))
		case len(m.Text) > mostText:
			return wire.Bad(fmt.Sprintf("a message before has %d bytes; %d are taken", len(m.Text), mostText))
		}
	}
	return nil
}

// places explains a ranking. What goes together with a hit has the score that it
// has by that, but was weighed against tail, discovery.tier1TailRelevance, by what
// the message alone gives it.
func places(v door.View, found door.Found, tail float64) []Place {
	shown := map[capability.ID][]string{}
	for _, pieces := range [][]door.Piece{found.Fulls, found.Cards, found.Briefs} {
		for _, p := range pieces {
			shown[p.ID] = p.Why
		}
	}
	score := map[capability.ID]float64{}
	for _, n := range found.Ranking {
		score[n.ID] = n.Score
	}
	skipped := map[capability.ID][]string{}
	for _, k := range found.Skipped {
		reason := k.Reason
		if k.Weak && score[k.ID] >= tail {
			reason = fmt.Sprintf("its score of %.3f is that of going together with a better one; its own relevance is below discovery.tier1TailRelevance %.3f", score[k.ID], tail)
		}
		skipped[k.ID] = append(skipped[k.ID], fmt.Sprintf("%s: %s", k.Tier, reason))
	}
	out := []Place{}
	for _, n := range found.Ranking {
		p := Place{ID: n.ID, Score: n.Score}
		if e, err := v.Lookup(string(n.ID)); err == nil {
			p.Name, p.Kind = e.Name, e.Kind
		}
		why, isShown := shown[n.ID]
		p.Shown, p.Why = isShown, append(append([]string{}, why...), skipped[n.ID]...)
		if len(p.Why) == 0 && !isShown {
			p.Why = []string{"briefs: the message did not find it; it only goes together with what was found"}
		}
		out = append(out, p)
	}
	return out
}
