// Package runtest opens a real door over made-up capabilities: with rules, and
// with a runner that makes calls under them and puts them on record.
package runtest

import (
	"context"
	"errors"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// A Door is what tests ask, with what is behind it.
type Door struct {
	*door.Door
	Catalog *catalog.Catalog
	Rules   func() *policy.Rules

	// These are there after [Door.Run].
	Store *store.Store
	Desk  *approval.Desk
	Kept  *result.Store
	Log   *audit.Log
	Audit audit.Config

	runner *runner.Runner
}

// Load returns a catalog of what sources have.
func Load(t testing.TB, sources ...capability.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.Config{Sources: sources, Machine: catalog.ThisMachine()})
	if err == nil {
		err = c.Load(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Open makes a door to a catalog and to Ken's own tools, which may be nil. The
// rules are those of a person who has configured nothing but what change does,
// which may be nil too. Without [Door.Run] nothing can be called.
func Open(t testing.TB, c, own *catalog.Catalog, change func(*policy.Settings)) *Door {
	t.Helper()
	settings := policy.Defaults(policy.Personal)
	if change != nil {
		change(&settings)
	}
	rules, err := policy.Compile(settings)
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{Catalog: c, Rules: func() *policy.Rules { return rules }}
	d.Door = door.New(door.Config{
		Catalog: c, Own: own, Rules: d.Rules, Finder: discover.NewFinder(discover.Parts{Source: c}),
		Find:   func(capability.Scope) door.Settings { return door.Settings{Config: discover.Defaults()} },
		Runner: func(context.Context) (capability.Invoker, error) { return d.runner, nil },
	})
	return d
}

// Run has calls made by executors, with a store at address, a desk whose approvers
// have these roles, and kept results. executors is called when those are there.
func (d *Door) Run(t testing.TB, address string, limits func() runner.Limits, executors func() runner.Executors, approvers ...string) {
	t.Helper()
	var errs []error
	check := func(err error) { errs = append(errs, err) }
	dir := t.TempDir()
	key, err := audit.LoadKey(dir + "/key")
	check(err)
	d.Audit = audit.Config{Dir: dir + "/audit", CheckpointDir: dir + "/heads", Key: key}
	d.Log, err = audit.Open(d.Audit)
	check(err)
	d.Store = storetest.Open(t, address)
	d.Desk, err = approval.New(d.Store, approval.Config{Approvers: approvers})
	check(err)
	d.Kept, err = result.Open(result.Config{Dir: dir + "/results"})
	check(err)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	d.runner, err = runner.New(runner.Config{
		Resolve: d.Resolve, Log: d.Log, Rules: d.Rules, Desk: d.Desk, Effects: d.Store, Results: d.Kept, Limits: limits, Executors: executors(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.runner.Close(context.Background()), d.Log.Close(), d.Kept.Close()); err != nil {
			t.Error(err)
		}
	})
}
