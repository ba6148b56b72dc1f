package extensions

import (
	"context"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/govern/review"
)

// RecordChanged records that an extension is no longer what a person accepted,
// whenever the catalog changes, until ctx ends.
func (s *Set) RecordChanged(ctx context.Context) {
	for version := uint64(0); ; {
		snapshot, err := s.cfg.Catalog().Next(ctx, version)
		if err != nil {
			return
		}
		version = snapshot.Version()
		for _, m := range s.current().Manifests() {
			desk, err := s.desk.Get()
			if err == nil {
				_, err = desk.Notice(ctx, s.cfg.Tenant, m)
			}
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("note a changed extension", "extension", m.ID, "error", err)
			}
		}
	}
}

// RenewIfSwitched makes a new version of the catalog if any process has switched
// an extension on or off since the last call. Models see another catalog then,
// and callers that cache it learn of the change by the version.
func (s *Set) RenewIfSwitched(ctx context.Context) {
	book := s.current()
	if !s.cfg.Required || len(book.Manifests()) == 0 {
		return
	}
	desk, err := s.desk.Get()
	if err != nil {
		return // everything is off, and was
	}
	now := desk.Switches(ctx, s.cfg.Tenant)
	if ctx.Err() != nil { // a caller who gave up says nothing about the store
		return
	}
	s.mu.Lock()
	was := s.seen
	s.seen = now
	s.mu.Unlock()
	if was == nil || was == now {
		return
	}
	if slices.ContainsFunc(book.Manifests(), func(m *review.Manifest) bool {
		return (was.State(m) == review.Enabled) != (now.State(m) == review.Enabled)
	}) {
		s.cfg.Catalog().Renew()
	}
}

// Disabled returns a function that reports whether the extension of a capability
// is disabled, by this process or another. It returns nil if none can be. While
// the store cannot be read none is disabled: running calls were accepted, and no
// new call starts.
func (s *Set) Disabled(ctx context.Context) func(*capability.Capability) bool {
	book := s.current()
	if !s.cfg.Required || len(book.Manifests()) == 0 {
		return nil
	}
	desk, err := s.desk.Get()
	if err != nil {
		return nil
	}
	now := desk.Switches(ctx, s.cfg.Tenant)
	return func(c *capability.Capability) bool {
		m, ok := book.Of(c)
		return ok && now.State(m) == review.Disabled
	}
}

// visibilityEvery is how often WatchVisibility looks.
const visibilityEvery = time.Second

// WatchVisibility makes a new version of the catalog when something outside of it
// changes what models see, until ctx ends: other processes switch extensions too,
// and rules are files. A file of rules that cannot be used is noticed soon, even
// without any request.
func (s *Set) WatchVisibility(ctx context.Context, rules func() *policy.Rules) {
	tick := time.NewTicker(visibilityEvery)
	defer tick.Stop()
	for was := rules(); ; {
		s.RenewIfSwitched(ctx)
		if now := rules(); now != was {
			was = now
			s.cfg.Catalog().Renew()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
