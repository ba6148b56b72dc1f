// Package door is the narrow waist of Ken: all that a surface may do. The
// command line, the HTTP API and the library see a [View], find in it and
// describe what is in it, and nothing below this package.
package door

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/discover"
	"ken/internal/find/show"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/run/runner"
	"ken/llm"
)

// The words that surfaces need of what lies below.
type (
	Entry       = catalog.Entry
	Listing     = catalog.Listing
	Stats       = catalog.Stats
	Change      = catalog.Change
	Unknown     = catalog.Unknown
	Query       = discover.Query
	Filter      = discover.Filter
	Override    = discover.Override
	Selection   = discover.Selection
	Message     = card.Message
	CardContext = card.Context
	Piece       = show.Piece
	Skip        = show.Skip
	Others      = show.List
	ToolAnswer  = discover.ToolAnswer
	Capability  = discover.Listed
	Searched    = discover.Capabilities
	Nearest     = discover.Nearest
	Reading     = discover.Reading
	Relation    = discover.Relation
	Question    = runner.Question
)

// The names of questions that a surface answers itself; see [Question].
const (
	AnswerConsent = runner.AnswerConsent
	AnswerAgain   = runner.AnswerAgain
)

// Config says what a Door gives access to. Recorder may be nil.
type Config struct {
	Catalog *catalog.Catalog

	// Own, if not nil, holds Ken's own tools. If Catalog contains them too,
	// they are found like any other tool; otherwise only by name.
	Own *catalog.Catalog

	Finder   *discover.Finder
	Find     func(capability.Scope) Settings // how to find for a message from somewhere
	Recorder *Recorder

	// Rules returns the rules in force: what they would refuse whatever the
	// arguments is not visible. If Rules is nil or returns nil, nothing is visible.
	Rules func() *policy.Rules

	// RulesFor returns the rules for a call that came in at a moment. They may have been
	// read at any time since. Nil stands for Rules.
	RulesFor func(arrived time.Time) *policy.Rules

	// NoRules, when not nil, says why there are no rules, as far as a principal
	// may know it. It is called when Rules returns nil.
	NoRules func(capability.Principal) error

	// Switches, when not nil, says what is switched off.
	Switches Switches

	// Starting, if not nil, returns one sentence about the sources that are not
	// known yet because they are starting, or "". Await waits for them briefly
	// and reports whether it waited.
	Starting func(capability.Principal) string
	Await    func(ctx context.Context, target capability.ID) bool

	// Absent, if not nil, returns why something of this id or name is not in the
	// catalog, such as a server that failed before it listed its tools, or nil.
	Absent func(p capability.Principal, name string) error

	// Runner carries out calls; it is asked for when the first one comes. Nil
	// refuses every call.
	Runner func(context.Context) (capability.Invoker, error)
}

// Switches says what people have switched off, or not yet on.
type Switches interface {
	// Off says why a capability is off, and what to do about it; both are
	// empty where it is on.
	Off(c *capability.Capability) (why, mend string)

	// Version grows with every change of what Off answers.
	Version() uint64
}

// Settings are how to find, and which experiment they belong to.
type Settings struct {
	discover.Config
	Experiment, Variant string
}

// A Door gives access to one catalog. It is safe for any number of goroutines.
type Door struct {
	cfg     Config
	catalog *catalog.Catalog
	finder  *discover.Finder
	dumps   dumps
}

// New makes a Door.
func New(cfg Config) *Door { return &Door{cfg: cfg, catalog: cfg.Catalog, finder: cfg.Finder} }

// Find picks what matters for a message. A message of a session is recorded,
// with all of [Found.Prompt] as what was sent.
func (d *Door) Find(ctx context.Context, v View, q Query) (Found, error) {
	found, p, err := d.Look(ctx, v, q)
	if err != nil {
		return found, err
	}
	found.Degraded = append(found.Degraded, p.Sent(found, whole(found), found.Tokens.Document+found.Tokens.Map)...)
	return found, nil
}

// Look is Find for a caller that decides which part of the selection is sent.
// Nothing is recorded until the caller reports that with [Pending.Sent].
func (d *Door) Look(ctx context.Context, v View, q Query) (Found, Pending, error) {
	if v.seen == nil {
		return Found{Selection: discover.Empty(q.Text)}, Pending{}, ctx.Err()
	}
	settings := d.settings(v, q.Scope)
	sel, err := d.finder.Find(ctx, v.seen, q, settings.Config)
	if err != nil {
		return Found{}, Pending{}, err
	}
	if note := d.Starting(v.viewer.Principal); note != "" {
		sel.Degraded = append(sel.Degraded, note)
	}
	found := d.cfg.Recorder.judged(q, settings, sel)
	return found, Pending{d, v, q}, nil
}

// Call runs one of the tools by which a model looks further itself.
func (d *Door) Call(ctx context.Context, v View, scope capability.Scope, name string, args json.RawMessage) (ToolAnswer, error) {
	a, err := d.finder.Call(ctx, v.seen, name, args, d.settings(v, scope).Config)
	if why := d.absentOf(v, name, args); why != nil && err == nil && a.Failed {
		a.Text = why.Error()
	}
	if note := d.Starting(v.viewer.Principal); note != "" && err == nil {
		a.Text += "\n(" + note + ")"
		if data, ok := a.Data.(discover.Capabilities); ok {
			data.Degraded = append(slices.Clip(data.Degraded), note)
			a.Data = data
		}
	}
	if err == nil {
		d.cfg.Recorder.called(v, scope, a)
	}
	return a, err
}

// Whole returns everything at once, for a model that sees all of it: the
// entries that tool accepts, and a list of the others. It returns false if
// there are more than most of either. The tools of [View.Own] are in neither.
func (d *Door) Whole(v View, scope capability.Scope, tool func(*Entry) bool, most int) (tools []*Entry, others Others, ok bool) {
	if v.seen == nil {
		return nil, Others{}, true
	}
	without := slices.Clone(d.settings(v, scope).Exclude)
	for e := range v.Own() {
		without = append(without, e.ID)
	}
	return v.seen.Whole(without, tool, most)
}

// absentOf returns why what a call wants described is not in the catalog, or nil.
func (d *Door) absentOf(v View, tool string, args json.RawMessage) error {
	var in struct{ ID, Capability, Name string }
	if d.cfg.Absent == nil || tool != discover.ToolDescribe || json.Unmarshal(args, &in) != nil {
		return nil
	}
	return d.cfg.Absent(v.viewer.Principal, cmp.Or(in.ID, in.Capability, in.Name))
}

// Starting returns which sources are not known yet; see [Config].
func (d *Door) Starting(p capability.Principal) string {
	if d.cfg.Starting == nil {
		return ""
	}
	return d.cfg.Starting(p)
}

// Await waits briefly for sources that are starting, and reports whether it
// waited: then a new view may have more.
func (d *Door) Await(ctx context.Context, target capability.ID) bool {
	return d.cfg.Await != nil && d.cfg.Await(ctx, target)
}

// notFoundYet adds to a not-found error which sources are still starting,
// because the capability may appear in a moment. If it belongs to a source that
// failed, the error is that failure.
func (d *Door) notFoundYet(p capability.Principal, err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || e.Kind != capability.NotFound {
		return err
	}
	if d.cfg.Absent != nil {
		if why := d.cfg.Absent(p, e.Target); why != nil {
			return why
		}
	}
	note := d.Starting(p)
	if note == "" {
		return err
	}
	out := *e
	out.Fix = note
	return &out
}

// Tools returns the tools that Call runs.
func (d *Door) Tools() []llm.Tool { return discover.Tools() }

// OutputSchema returns the JSON Schema of the data of a tool's answers.
func (d *Door) OutputSchema(tool string) json.RawMessage { return discover.OutputSchema(tool) }

// A Description is an entry with what it holds beyond its description.
type Description struct {
	*Entry
	Detail capability.Detail `json:"detail"`
}

// Describe reads an entry's schema and body as they may be shown to a model.
// What is quarantined is not described.
func (d *Door) Describe(ctx context.Context, v View, name string) (Description, error) {
	e, err := v.Lookup(name)
	if err != nil {
		return Description{}, d.notFoundYet(v.viewer.Principal, err)
	}
	if e.State != catalog.Active {
		return Description{}, &capability.Error{
			Kind: capability.Denied, Op: "describe", Target: string(e.ID),
			Err: fmt.Errorf("capability is %s", e.State), Fix: "see ken catalog why " + string(e.ID),
		}
	}
	detail, err := d.of(v, e).Detail(ctx, e)
	return Description{e, detail}, err
}

// Reference reads the deep reference of the instance, for a tool that asks.
func (d *Door) Reference(v View) (string, error) {
	if v.snapshot == nil {
		return "", &capability.Error{Kind: capability.NotFound, Op: "read", Target: "the reference"}
	}
	return d.catalog.Reference()
}

// Inspect is Describe for the person who runs Ken: it also reads what is
// quarantined or withheld. Its result must not reach a model.
func (d *Door) Inspect(ctx context.Context, v View, name string) (Description, error) {
	e, err := v.Lookup(name)
	if err != nil {
		return Description{}, err
	}
	detail, err := d.of(v, e).Inspect(ctx, e)
	return Description{e, detail}, err
}

// Warm searches every version of the catalog once, until ctx ends, so that the
// first message does not wait for the index. It records nothing.
func (d *Door) Warm(ctx context.Context, who capability.Principal) {
	for version := uint64(0); ; {
		s, err := d.catalog.Next(ctx, version)
		if err != nil {
			return
		}
		version = s.Version()
		_, _, _ = d.Look(ctx, d.View(who), Query{Text: "search"}) // the next search reports the error
	}
}
