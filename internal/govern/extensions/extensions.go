// Package extensions lists the extensions of the catalog with their review state,
// and enables and disables them.
package extensions

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/review"
	"ken/internal/know/catalog"
	"ken/internal/lazy"
	"ken/internal/store"
)

// A Config says what a [Set] works with. All of it is needed.
type Config struct {
	Required  bool   // false: extensions are on without a review
	Tenant    string // whose extensions are switched
	Reviewers []string

	Catalog func() *catalog.Catalog
	Store   func() (*store.Store, error)
	Record  func(context.Context, audit.Record) error // appends to the audit log
	Stop    func(context.Context)                     // stops running calls of disabled extensions
	Log     *slog.Logger
}

// A Set is the extensions of the catalog. The store is opened when the first of
// them needs a review. Its methods are safe for concurrent use.
type Set struct {
	cfg   Config
	desk  lazy.Value[*review.Desk]
	panel lazy.Value[*review.Panel]

	mu   sync.Mutex
	of   *catalog.Snapshot // that book is of
	book *review.Book
	seen *review.Switches // at the last RenewIfSwitched
}

// New returns the extensions of a catalog.
func New(cfg Config) *Set {
	s := &Set{cfg: cfg}
	s.desk.Build = func() (*review.Desk, error) {
		db, err := cfg.Store()
		if err != nil {
			return nil, err
		}
		return review.New(db, review.Config{Reviewers: cfg.Reviewers, Log: cfg.Record})
	}
	s.panel.Build = func() (*review.Panel, error) {
		desk, err := s.desk.Get()
		if err != nil {
			return nil, err
		}
		return desk.Panel(cfg.Tenant, s.current), nil
	}
	return s
}

// Required reports whether extensions wait for a review.
func (s *Set) Required() bool { return s.cfg.Required }

// current returns the extensions of the current snapshot, made once for each.
func (s *Set) current() *review.Book {
	snapshot := s.cfg.Catalog().Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of != snapshot {
		var list []*capability.Capability
		for e := range snapshot.All() {
			list = append(list, e.Capability)
		}
		for e := range snapshot.Shadowed() {
			list = append(list, e.Capability)
		}
		s.book, s.of = review.NewBook(list), snapshot
	}
	return s.book
}

// An Extension is an extension with its review state.
type Extension struct {
	Manifest *review.Manifest `json:"manifest"`
	Status   review.Status    `json:"status"`

	// Unavailable lists its actions that cannot be used here even when it is
	// on.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
}

// An Unavailable is a capability that cannot be used here, and why.
type Unavailable struct {
	ID  capability.ID `json:"id"`
	Why string        `json:"why"`
}

// List returns all extensions.
func (s *Set) List(ctx context.Context) ([]Extension, error) {
	var out []Extension
	for _, m := range s.current().Manifests() {
		x, err := s.state(ctx, m)
		if err != nil {
			return out, err
		}
		out = append(out, x)
	}
	return out, nil
}

// Find returns an extension by its name, and by its place if several have the
// name.
func (s *Set) Find(ctx context.Context, name, place string) (Extension, error) {
	m, err := s.current().Find(name, place)
	if err != nil {
		return Extension{}, err
	}
	return s.state(ctx, m)
}

func (s *Set) state(ctx context.Context, m *review.Manifest) (Extension, error) {
	c := s.cfg.Catalog()
	texts := map[capability.ID]capability.Detail{}
	var unavailable []Unavailable
	for _, action := range append(slices.Clip(m.Actions), m.Package) {
		e, ok := c.Snapshot().Get(action.ID)
		if !ok || e.Capability != action {
			continue
		}
		if !e.Available && action != m.Package {
			unavailable = append(unavailable, Unavailable{action.ID, e.Missing.String()})
		}
		if d, err := c.Inspect(ctx, e); err == nil {
			texts[action.ID] = d
		}
	}
	m = m.With(texts)
	desk, err := s.desk.Get()
	if err != nil {
		return Extension{Manifest: m, Unavailable: unavailable}, err
	}
	status, err := desk.Status(ctx, s.cfg.Tenant, m)
	return Extension{m, status, unavailable}, err
}

// Enable switches an extension on as a person was shown it.
func (s *Set) Enable(ctx context.Context, by capability.Principal, x Extension, why string) error {
	desk, err := s.desk.Get()
	if err != nil {
		return err
	}
	s.RenewIfSwitched(ctx)
	defer s.RenewIfSwitched(ctx)
	_, err = desk.Enable(ctx, x.Manifest, x.Status.Shown, review.Word{By: by, Origin: capability.ByPerson, Why: why})
	return err
}

// Disable switches extensions of a name off, and stops their running calls. An
// empty place means everywhere.
func (s *Set) Disable(ctx context.Context, by capability.Principal, name, place, why string) ([]review.Switch, error) {
	desk, err := s.desk.Get()
	if err != nil {
		return nil, err
	}
	s.RenewIfSwitched(ctx)
	defer s.RenewIfSwitched(ctx)
	defer s.cfg.Stop(ctx)
	off, err := desk.Disable(ctx, review.Key{ID: name, Place: place}, review.Word{By: by, Origin: capability.ByPerson, Why: why})
	if capability.KindOf(err) == capability.NotFound {
		if _, missing := s.Find(ctx, name, place); missing != nil {
			return nil, missing
		}
		return nil, nil // it exists and was never enabled
	}
	return off, err
}

// storeTime is how long the store may take while a catalog is made.
const storeTime = 20 * time.Second

// Off returns which extensions are off and why, for a catalog that is being made
// of all these capabilities.
func (s *Set) Off(all []*capability.Capability) map[*capability.Capability]string {
	if !s.cfg.Required {
		return nil
	}
	on := map[*capability.Capability]bool{}
	if desk, err := s.desk.Get(); err == nil { // else nothing is on
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		defer cancel()
		switches := desk.Switches(ctx, s.cfg.Tenant)
		for _, m := range review.NewBook(all).Manifests() {
			on[m.Package] = switches.State(m) == review.Enabled
		}
	}
	out := map[*capability.Capability]string{}
	for _, c := range all {
		if name, packaged := c.Extension(); packaged && c.Kind == capability.KindExtension && c.Trust != capability.TrustBuiltin && !on[c] {
			out[c] = "disabled; enable with `ken extension enable " + name + "`"
		}
	}
	return out
}

// Check returns why the extension of a capability may not be used now, or nil. It
// asks the store.
func (s *Set) Check(ctx context.Context, target capability.ID) error {
	e, ok := s.cfg.Catalog().Snapshot().Get(target)
	if !ok {
		return nil
	}
	if _, needs := review.Owner(e.Capability); !needs {
		return nil
	}
	panel, err := s.panel.Get()
	if err != nil {
		return err
	}
	return panel.Check(ctx, e.Capability)
}

// Switches returns what is off, for the door. Without an extension in the catalog
// it does not open the store.
func (s *Set) Switches() Switches { return Switches{s} }

// Switches are a [Set] as the door asks it.
type Switches struct{ set *Set }

// Off returns why the extension of a capability is off and how to change that, or
// "" if it is on.
func (s Switches) Off(c *capability.Capability) (why, fix string) {
	if _, needs := review.Owner(c); !needs {
		return "", ""
	}
	panel, err := s.set.panel.Get()
	if err != nil {
		return "cannot read whether its extension was reviewed: " + err.Error(), "see ken doctor"
	}
	return panel.Off(c)
}

// Version returns another number after an extension was switched.
func (s Switches) Version() uint64 {
	if len(s.set.current().Manifests()) == 0 {
		return 0
	}
	panel, err := s.set.panel.Get()
	if err != nil {
		return 0 // all of it is off
	}
	return panel.Version()
}
