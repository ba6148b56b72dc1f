// Package door is the narrow waist of Ken: all that a surface may do. The
// command line, the HTTP API and the library see a [View], find in it and
// describe what is in it, and nothing below this package.
package door

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/discover"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/llm"
)

// The words that surfaces need of what lies below.
type (
	Entry       = catalog.Entry
	Listing     = catalog.Listing
	Stats       = catalog.Stats
	Change      = catalog.Change
	Query       = discover.Query
	Filter      = discover.Filter
	Override    = discover.Override
	Selection   = discover.Selection
	Message     = card.Message
	CardContext = card.Context
	Piece       = show.Piece
	Skip        = show.Skip
	ToolAnswer  = discover.ToolAnswer
	Relation    = discover.Relation
)

// Config says what a Door gives access to. Recorder may be nil.
type Config struct {
	Catalog  *catalog.Catalog
	Finder   *discover.Finder
	Find     func(capability.Scope) Settings // how to find for a message from somewhere
	Recorder *Recorder
}

// Settings are how to find, and which experiment they belong to.
type Settings struct {
	discover.Config
	Experiment, Variant string
}

// A Door gives access to one catalog. It is safe for any number of goroutines.
type Door struct {
	catalog  *catalog.Catalog
	finder   *discover.Finder
	find     func(capability.Scope) Settings
	recorder *Recorder
}

// New makes a Door.
func New(cfg Config) *Door { return &Door{cfg.Catalog, cfg.Finder, cfg.Find, cfg.Recorder} }

// A View is what one principal sees at one moment. It does not change. The
// zero View holds nothing.
type View struct {
	snapshot *catalog.Snapshot
	seen     *discover.View
}

// View takes the catalog as it stands. Nobody, the zero principal, sees
// nothing.
func (d *Door) View(p capability.Principal) View {
	if p.ID == "" {
		return View{}
	}
	return d.view(d.catalog.Snapshot())
}

// view narrows a snapshot. Until there are rules to tell principals apart,
// whoever is somebody sees all that is active.
func (d *Door) view(s *catalog.Snapshot) View { return View{s, d.finder.See(s, "", nil)} }

// Changes are what happened to the catalog since a version.
type Changes struct {
	View     View
	Changes  []Change
	Complete bool // false: too long ago to say; everything may be different
}

// Next waits until the catalog has a version above after and tells what is
// different.
func (d *Door) Next(ctx context.Context, p capability.Principal, after uint64) (Changes, error) {
	if p.ID == "" {
		return Changes{}, &capability.Error{Kind: capability.Denied, Op: "watch", Target: "the catalog", Err: fmt.Errorf("nobody asks")}
	}
	if _, err := d.catalog.Next(ctx, after); err != nil {
		return Changes{}, err
	}
	s, changes, complete := d.catalog.ChangesSince(after)
	return Changes{d.view(s), changes, complete}, nil
}

// List gives everything in the view.
func (v View) List() Listing {
	if v.snapshot == nil {
		return Listing{Capabilities: []*Entry{}, Problems: []capability.Problem{}}
	}
	return v.snapshot.Listing()
}

// All gives the entries of the view in the order of their ids, without what is
// wrong with them.
func (v View) All() iter.Seq[*Entry] {
	if v.snapshot == nil {
		return func(func(*Entry) bool) {}
	}
	return v.snapshot.All()
}

// Stats counts what is in the view.
func (v View) Stats() Stats {
	if v.snapshot == nil {
		return Stats{}
	}
	return v.snapshot.Stats()
}

// Lookup finds an entry by its id, or by a name that only one entry has.
func (v View) Lookup(name string) (*Entry, error) {
	if v.snapshot == nil {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "find", Target: name}
	}
	return v.snapshot.Lookup(name)
}

// Related gives what an entry has to do with others, the strongest first.
func (v View) Related(name string) ([]Relation, error) {
	e, err := v.Lookup(name)
	if err != nil {
		return nil, err
	}
	return v.seen.Related(e.ID), nil
}

// Find picks what matters for a message. A message of a session is recorded.
func (d *Door) Find(ctx context.Context, v View, q Query) (Found, error) {
	if v.seen == nil {
		return Found{Selection: discover.Empty(q.Text)}, ctx.Err()
	}
	settings := d.find(q.Scope)
	sel, err := d.finder.Find(ctx, v.seen, q, settings.Config)
	if err != nil {
		return Found{}, err
	}
	return d.recorder.selected(q, settings, sel), nil
}

// Call runs one of the tools by which a model looks further itself.
func (d *Door) Call(ctx context.Context, v View, scope capability.Scope, name string, args json.RawMessage) (ToolAnswer, error) {
	a, err := d.finder.Call(ctx, v.seen, name, args, d.find(scope).Config)
	if err == nil {
		d.recorder.called(scope, a)
	}
	return a, err
}

// Tools gives the tools that Call runs.
func (d *Door) Tools() []llm.Tool { return discover.Tools() }

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
		return Description{}, err
	}
	if e.State != catalog.Active {
		return Description{}, &capability.Error{
			Kind: capability.Denied, Op: "describe", Target: string(e.ID),
			Err: fmt.Errorf("it is %s", e.State), Fix: "see ken catalog why " + string(e.ID),
		}
	}
	detail, err := d.catalog.Detail(ctx, e)
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
	detail, err := d.catalog.Inspect(ctx, e)
	return Description{e, detail}, err
}
