package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/review"
	"ken/internal/know/catalog"
	"ken/internal/lazy"
	"ken/internal/run/runner"
)

// reviewing keeps extensions off until a person has seen what they ask for.
type reviewing struct {
	desk  lazy.Value[*review.Desk]
	panel lazy.Value[*review.Panel]

	mu   sync.Mutex
	of   *catalog.Snapshot
	book *review.Book
	seen *review.Switches // at the last look; see switched
}

func (a *App) prepareReview() {
	a.reviewing.desk.Build = func() (*review.Desk, error) {
		s, err := a.store.Get()
		if err != nil {
			return nil, err
		}
		return review.New(s, review.Config{Reviewers: a.Settings.Approval.Approvers, Log: func(ctx context.Context, r audit.Record) error {
			log, err := a.trail.Get()
			if err == nil {
				_, err = log.Append(ctx, r)
			}
			return err
		}})
	}
	a.reviewing.panel.Build = func() (*review.Panel, error) {
		desk, err := a.reviewing.desk.Get()
		if err != nil {
			return nil, err
		}
		return desk.Panel(a.Principal.Tenant, a.book), nil
	}
}

// book returns the extensions of the catalog as it stands, made once for each
// snapshot.
func (a *App) book() *review.Book {
	s := a.catalog.Snapshot()
	r := &a.reviewing
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of != s {
		var list []*capability.Capability
		for e := range s.All() {
			list = append(list, e.Capability)
		}
		for e := range s.Shadowed() {
			list = append(list, e.Capability)
		}
		r.book, r.of = review.NewBook(list), s
	}
	return r.book
}

// packagesOff returns which packages are off, for the catalog that is being
// built from all of these capabilities.
func (a *App) packagesOff(all []*capability.Capability) map[*capability.Capability]string {
	if !a.reviewRequired() {
		return nil
	}
	on := map[*capability.Capability]bool{}
	if desk, err := a.reviewing.desk.Get(); err == nil { // else nothing is on
		ctx, cancel := context.WithTimeout(context.Background(), openStore)
		defer cancel()
		switches := desk.Switches(ctx, a.Principal.Tenant)
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

// switches say what is off, for the door. Where no catalog brings an extension
// the store is not opened.
type switches struct{ app *App }

func (s switches) Off(c *capability.Capability) (why, mend string) {
	if _, needs := review.Owner(c); !needs {
		return "", ""
	}
	panel, err := s.app.reviewing.panel.Get()
	if err != nil {
		return "nobody can tell whether its extension was reviewed: " + err.Error(), "see ken doctor"
	}
	return panel.Off(c)
}

func (s switches) Version() uint64 {
	if len(s.app.book().Manifests()) == 0 {
		return 0
	}
	panel, err := s.app.reviewing.panel.Get()
	if err != nil {
		return 0 // all of it is off
	}
	return panel.Version()
}

// A reviewed executor asks once more, directly before the effect, whether an
// extension is on: calls may have waited since.
type reviewed struct {
	runner.Executor
	app *App
}

func (r reviewed) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	if err := r.on(ctx, call); err != nil {
		return capability.Result{}, err
	}
	return runner.Check(ctx, r.Executor, call)
}

func (r reviewed) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	if err := r.on(ctx, call); err != nil {
		return capability.Result{}, err
	}
	return r.Executor.Invoke(ctx, call)
}

// on says why a call's extension may not be used now, or nil.
func (r reviewed) on(ctx context.Context, call capability.Call) error {
	e, ok := r.app.catalog.Snapshot().Get(call.Target)
	if !ok {
		return nil
	}
	if _, needs := review.Owner(e.Capability); !needs {
		return nil
	}
	panel, err := r.app.reviewing.panel.Get()
	if err != nil {
		return err
	}
	return panel.Check(ctx, e.Capability)
}

// reviewRequired reports whether extensions wait for a person.
func (a *App) reviewRequired() bool { return a.Settings.Extensions.Review != config.ReviewOff }

// An Extension is a package with how it stands.
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

// Extensions lists the packages of the catalog.
func (a *App) Extensions(ctx context.Context) ([]Extension, error) {
	book := a.book()
	var out []Extension
	for _, m := range book.Manifests() {
		x, err := a.standing(ctx, m)
		if err != nil {
			return out, err
		}
		out = append(out, x)
	}
	return out, nil
}

// Extension finds a package by its name, and by its place where several have
// that.
func (a *App) Extension(ctx context.Context, name, place string) (Extension, error) {
	m, err := a.book().Find(name, place)
	if err != nil {
		return Extension{}, err
	}
	return a.standing(ctx, m)
}

func (a *App) standing(ctx context.Context, m *review.Manifest) (Extension, error) {
	texts := map[capability.ID]capability.Detail{}
	var lacking []Unavailable
	for _, c := range append(slices.Clip(m.Actions), m.Package) {
		if e, ok := a.catalog.Snapshot().Get(c.ID); ok && e.Capability == c {
			if !e.Available && c != m.Package {
				lacking = append(lacking, Unavailable{c.ID, strings.Join(e.Missing, "; ")})
			}
			if d, err := a.catalog.Inspect(ctx, e); err == nil {
				texts[c.ID] = d
			}
		}
	}
	m = m.With(texts)
	desk, err := a.reviewing.desk.Get()
	if err != nil {
		return Extension{Manifest: m, Unavailable: lacking}, err
	}
	status, err := desk.Status(ctx, a.Principal.Tenant, m)
	return Extension{m, status, lacking}, err
}

// switched makes a new version of the catalog where a package was switched on or
// off since it last looked, by whichever process: models see another catalog
// then, and whoever keeps a list of it learns of that by its version.
func (a *App) switched(ctx context.Context) {
	book := a.book()
	if !a.reviewRequired() || len(book.Manifests()) == 0 {
		return
	}
	desk, err := a.reviewing.desk.Get()
	if err != nil {
		return // everything is off, and was
	}
	now := desk.Switches(ctx, a.Principal.Tenant)
	if ctx.Err() != nil { // a caller who gave up says nothing about the store
		return
	}
	r := &a.reviewing
	r.mu.Lock()
	was := r.seen
	r.seen = now
	r.mu.Unlock()
	if was == nil || was == now {
		return
	}
	if slices.ContainsFunc(book.Manifests(), func(m *review.Manifest) bool {
		return (was.State(m) == review.Enabled) != (now.State(m) == review.Enabled)
	}) {
		a.catalog.Renew()
	}
}

// stopDisabled stops running calls of packages that were disabled meanwhile, by
// this process or another. While the store cannot be read they continue: they
// were accepted, and no new call starts.
func (a *App) stopDisabled(ctx context.Context) {
	r, made := a.runner.Peek()
	if !made || !a.reviewRequired() || r.Load().Running == 0 {
		return
	}
	book := a.book()
	if len(book.Manifests()) == 0 {
		return
	}
	desk, err := a.reviewing.desk.Get()
	if err != nil {
		return
	}
	now, view := desk.Switches(ctx, a.Principal.Tenant), a.Oversee()
	n := r.Stop(errors.New("its extension was switched off"), func(run runner.Running) bool {
		e, err := view.Lookup(string(run.Target))
		if err != nil {
			return false
		}
		m, ok := book.Of(e.Capability)
		return ok && now.State(m) == review.Disabled
	})
	if n > 0 {
		a.log.Warn("calls were stopped whose extension was switched off", "calls", n)
	}
}

// sightEvery is how often it is looked whether models see another catalog.
const sightEvery = time.Second

// watchSight makes a new version of the catalog where something beside it decides
// anew what models see of it, until ctx ends: packages are switched by other
// processes too, and rules are files. That look also tells soon of a file that
// cannot be followed, while nobody asks for anything.
func (a *App) watchSight(ctx context.Context) {
	tick := time.NewTicker(sightEvery)
	defer tick.Stop()
	for rules := a.Rules(); ; {
		a.switched(ctx)
		if now := a.Rules(); now != rules {
			rules = now
			a.catalog.Renew()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Enable switches a package on as a person was shown it.
func (a *App) Enable(ctx context.Context, by capability.Principal, x Extension, why string) error {
	desk, err := a.reviewing.desk.Get()
	if err != nil {
		return err
	}
	a.switched(ctx)
	defer a.switched(ctx)
	_, err = desk.Enable(ctx, x.Manifest, x.Status.Shown, review.Word{By: by, Origin: capability.ByPerson, Why: why})
	return err
}

// Disable switches packages of a name off; an empty place means everywhere.
func (a *App) Disable(ctx context.Context, by capability.Principal, name, place, why string) ([]review.Switch, error) {
	desk, err := a.reviewing.desk.Get()
	if err != nil {
		return nil, err
	}
	a.switched(ctx)
	defer a.switched(ctx)
	defer a.stopDisabled(ctx)
	return desk.Disable(ctx, review.Key{ID: name, Place: place}, review.Word{By: by, Origin: capability.ByPerson, Why: why})
}
