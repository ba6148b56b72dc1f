package door

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/untrusted"
)

// A Viewer is who looks, and from where.
type Viewer = policy.Viewer

// A View is what one viewer sees at one moment. It does not change. The zero
// View holds nothing.
type View struct {
	viewer   Viewer
	snapshot *catalog.Snapshot
	seen     *discover.View
	own      *catalog.Snapshot // nil: there is none
	allows   func(*Entry) bool

	// noRules is set when no rules are loaded, and says why. Then nothing is
	// visible, and a lookup fails with this reason instead of not found.
	noRules string

	// reveal is set in the operator's view: it returns an entry with what the
	// rules say about it.
	reveal func(*Entry) *Entry
}

// View returns the current catalog as a model that works for a principal sees it.
// The zero principal sees nothing.
func (d *Door) View(p capability.Principal) View { return d.ViewFor(Viewer{Principal: p}) }

// ViewFor is View for a mode, a surface and a person.
func (d *Door) ViewFor(v Viewer) View { return d.view(d.catalog.Snapshot(), d.rules(), v) }

// viewOf is ViewFor for a call that came in at a moment.
func (d *Door) viewOf(arrived time.Time, v Viewer) View {
	if d.cfg.RulesFor == nil {
		return d.ViewFor(v)
	}
	return d.view(d.catalog.Snapshot(), d.cfg.RulesFor(arrived), v)
}

// OperatorView returns the operator's view: it lists hidden entries too, and says why
// they are hidden. Finding in it finds what View has. It must not reach a model.
func (d *Door) OperatorView(p capability.Principal) View { return d.operatorView(d.View(p), p) }

func (d *Door) operatorView(v View, p capability.Principal) View {
	if v.snapshot == nil {
		return v
	}
	rules := d.rules()
	v.reveal = func(e *Entry) *Entry {
		i, ok := v.snapshot.Ordinal(e.ID)
		if e.State == catalog.Shadowed || ok && v.seen.Knows(i) || !ok && v.allows(e) {
			return e
		}
		known := d.known(e)
		reason := rules.HiddenBecause(p, known)
		if v.noRules != "" {
			reason.Text = v.noRules
		}
		shown := *e
		shown.Available, shown.Hidden = false, sentence(reason)
		shown.Missing = append(slices.Clip(e.Missing), catalog.Reason{Kind: catalog.HiddenByPolicy, Text: shown.Hidden})
		return &shown
	}
	return v
}

func sentence(r policy.Reason) string {
	text := r.Text
	if r.Knob != "" && !strings.Contains(text, r.Knob) {
		text += " (" + r.Knob + ")"
	}
	return text
}

func (d *Door) rules() *policy.Rules {
	if d.cfg.Rules == nil {
		return nil
	}
	return d.cfg.Rules()
}

// known returns what the rules may know of an entry.
func (d *Door) known(e *Entry) policy.Capability {
	c := policy.Of(e.Capability)
	if d.cfg.Switches != nil {
		c.Disabled, c.Fix = d.cfg.Switches.Off(e.Capability)
	}
	return c
}

// view narrows a snapshot to what the rules may let a viewer call.
func (d *Door) view(s *catalog.Snapshot, rules *policy.Rules, v Viewer) View {
	if v.Principal.ID == "" {
		return View{}
	}
	out := View{viewer: v, snapshot: s, allows: func(e *Entry) bool {
		c := d.known(e)
		return rules.Visible(&v, &c)
	}}
	out.seen = d.finder.See(s, d.class(rules, v), d.seeing(rules, v))
	if d.cfg.Own != nil {
		out.own = d.cfg.Own.Snapshot()
	}
	if rules == nil {
		out.noRules = d.noRules(v.Principal)
	}
	return out
}

// seeing returns View.allows for one who looks at all entries in turn.
func (d *Door) seeing(rules *policy.Rules, v Viewer) func(*Entry) bool {
	var l *looking // made for the first entry: most views are kept and ask about none
	return func(e *Entry) bool {
		if l == nil {
			l = &looking{visible: rules.Viewing(&v)}
		}
		l.at = d.known(e)
		return l.visible(&l.at)
	}
}

// looking is a look at all entries in turn.
type looking struct {
	visible func(*policy.Capability) bool
	at      policy.Capability // one for all: there may be a hundred thousand
}

// noRules says that there are no rules, and why, in one line.
func (d *Door) noRules(p capability.Principal) string {
	const text = "No rules are loaded, so nothing is allowed"
	if d.cfg.NoRules != nil {
		if why := d.cfg.NoRules(p); why != nil { // nil: they were mended since
			return text + ": " + untrusted.Line(why.Error(), longestWhy)
		}
	}
	return text
}

const longestWhy = 500 // bytes of why there are no rules

// errNoRules returns the error for every name while no rules are loaded. It is the
// same whether the name exists or not, so it reveals nothing.
func (v View) errNoRules(op, name string) error {
	return &capability.Error{Kind: capability.Denied, Op: op, Target: name, Rule: "no-rules", Err: errors.New(v.noRules), Fix: "ken doctor says where"}
}

// of returns the catalog that an entry of a view is from.
func (d *Door) of(v View, e *Entry) *catalog.Catalog {
	if _, ok := v.snapshot.Get(e.ID); !ok && d.cfg.Own != nil {
		return d.cfg.Own
	}
	return d.catalog
}

// Own returns the tools that are part of the program and that the viewer may
// use.
func (v View) Own() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if v.own == nil {
			return
		}
		for e := range v.own.All() {
			if v.allows(e) && !yield(e) {
				return
			}
		}
	}
}

// class names all viewers who see the same. Of a principal the rules know the
// name too, so it is part of it.
func (d *Door) class(rules *policy.Rules, v Viewer) string {
	var room [256]byte
	b := strconv.AppendQuote(room[:0], rules.Version())
	if d.cfg.Switches != nil {
		b = strconv.AppendUint(append(b, ' '), d.cfg.Switches.Version(), 10)
	}
	for _, part := range [...]string{v.Principal.Tenant, v.Principal.ID, rules.AgentOf(v.Principal), v.Mode, string(v.Origin), string(v.Surface)} {
		b = strconv.AppendQuote(append(b, ' '), part)
	}
	for _, role := range v.Principal.Roles {
		b = strconv.AppendQuote(append(b, ' '), role)
	}
	return string(b)
}

// Changes are what happened to the catalog since a version.
type Changes struct {
	View     View
	Changes  []Change
	Complete bool // false: too long ago to say; everything may be different
}

// Next waits until the catalog has a version above after and tells what is
// different, as far as the principal may know.
func (d *Door) Next(ctx context.Context, p capability.Principal, after uint64) (Changes, error) {
	return d.next(ctx, after, p, func(v View) View { return v })
}

// NextOverseen is Next for the operator: it reports changes of hidden entries too,
// and its view is that of [Door.OperatorView].
func (d *Door) NextOverseen(ctx context.Context, p capability.Principal, after uint64) (Changes, error) {
	return d.next(ctx, after, p, func(v View) View { return d.operatorView(v, p) })
}

func (d *Door) next(ctx context.Context, after uint64, p capability.Principal, as func(View) View) (Changes, error) {
	if p.ID == "" {
		return Changes{}, &capability.Error{Kind: capability.Denied, Op: "watch", Target: "the catalog", Err: errors.New("missing principal")}
	}
	if _, err := d.catalog.Next(ctx, after); err != nil {
		return Changes{}, err
	}
	s, changes, complete := d.catalog.ChangesSince(after)
	v := as(d.view(s, d.rules(), Viewer{Principal: p}))
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		i, there := s.Ordinal(c.ID)
		return there && !v.sees(i)
	})
	return Changes{v, changes, complete}, nil
}

// sees reports whether an entry is in the view.
func (v View) sees(ordinal int) bool { return v.reveal != nil || v.seen.Knows(ordinal) }

// List returns everything in the view.
func (v View) List() Listing {
	if v.snapshot == nil {
		return Listing{Capabilities: []*Entry{}, Problems: []capability.Problem{}}
	}
	list := v.snapshot.Listing()
	list.Problems = append(slices.Clip(list.Problems), v.seen.CardProblems()...)
	if v.reveal != nil {
		for i, e := range list.Capabilities {
			list.Capabilities[i] = v.reveal(e)
		}
		list.Stats = v.Stats()
		return list
	}
	hidden := func(id capability.ID) bool {
		i, there := v.snapshot.Ordinal(id)
		return there && !v.sees(i)
	}
	list.Capabilities = slices.DeleteFunc(list.Capabilities, func(e *Entry) bool { return hidden(e.ID) })
	list.Problems = slices.DeleteFunc(list.Problems, func(p capability.Problem) bool { return hidden(p.Subject) })
	list.Stats = v.Stats()
	return list
}

// All returns the entries of the view in the order of their ids, without what is
// wrong with them.
func (v View) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, e := range v.Numbered() {
			if !yield(e) {
				return
			}
		}
	}
}

// Stats counts what is in the view.
func (v View) Stats() Stats {
	if v.snapshot == nil {
		return Stats{}
	}
	all := v.snapshot.Stats()
	if v.reveal != nil {
		// What is hidden from models is counted, but cannot be used.
		all.Available = v.Keep(operatorStatsKey{}, func() any {
			n := 0
			for i, e := range v.snapshot.Entries() {
				if e.Ready() && v.seen.Knows(i) {
					n++
				}
			}
			return n
		}).(int)
		return all
	}
	st := Stats{Shadowed: all.Shadowed, Errors: all.Errors, GraphEdges: all.GraphEdges, Version: all.Version}
	for e := range v.All() {
		st.Capabilities++
		if e.Ready() {
			st.Available++
		}
		switch e.State {
		case catalog.Active:
			st.Active++
		case catalog.Quarantined:
			st.Quarantined++
		}
	}
	st.GraphNodes = st.Capabilities
	return st
}

// Lookup finds an entry by its id, or by a name that only one entry has. A hidden
// entry is not found, as if it did not exist. While no rules are loaded, Lookup
// is denied with the reason.
func (v View) Lookup(name string) (*Entry, error) {
	switch {
	case v.snapshot == nil:
		return nil, &capability.Error{Kind: capability.NotFound, Op: "find", Target: name}
	case v.noRules != "" && v.reveal == nil:
		return nil, v.errNoRules("find", name)
	}
	e, err := v.lookup(name)
	if err == nil && v.reveal != nil {
		e = v.reveal(e)
	}
	return e, err
}

// lookup asks the catalog first, and the tools of the program where it has
// nothing. A catalog that is asked for what it does not have looks for names
// that are near, which takes long and is for nothing where the program has it.
func (v View) lookup(name string) (*Entry, error) {
	there := v.has(name)
	if !there {
		if own := v.ownCalled(name); own != nil {
			return own, nil
		}
	}
	e, err := v.snapshot.LookupAmong(name, v.sees)
	if err != nil && there { // several have this name
		if own := v.ownCalled(name); own != nil {
			return own, nil
		}
	}
	return e, err
}

// has reports whether something in the catalog has this id or name.
func (v View) has(name string) bool {
	if i, ok := v.snapshot.Ordinal(capability.ID(name)); ok && v.sees(i) {
		return true
	}
	return slices.ContainsFunc(v.snapshot.Named(name), v.sees)
}

// ownCalled finds a tool of the program by its id, name or alias. Nil: there is
// none that the viewer may know.
func (v View) ownCalled(name string) *Entry {
	if v.own == nil {
		return nil
	}
	own, err := v.own.Lookup(name)
	if err != nil {
		own = v.ownAlias(name)
	}
	if own == nil || v.reveal == nil && !v.allows(own) {
		return nil
	}
	return own
}

func (v View) ownAlias(name string) *Entry {
	for e := range v.own.All() {
		for _, alias := range e.Aliases {
			if name == alias || name == string(capability.MakeID(e.Kind, alias)) {
				return e
			}
		}
	}
	return nil
}

// Related returns what an entry has to do with others, the strongest first.
func (v View) Related(name string) ([]Relation, error) {
	e, err := v.Lookup(name)
	if err != nil {
		return nil, err
	}
	return v.seen.Related(e.ID), nil
}
