package catalog

import (
	"context"
	"slices"
	"time"
)

// changesEvery is how often WatchMachine checks whether something has changed.
const changesEvery = 200 * time.Millisecond

// WatchMachine calls LookAgain until ctx ends: soon after changes returns another
// number, as when any process set a secret, and at intervals for what it does not
// count, such as a program that was installed or a secret that was removed.
func (c *Catalog) WatchMachine(ctx context.Context, every time.Duration, changes func() uint64) {
	counted, looked := changes(), time.Now()
	c.LookAgain() // what came since it was loaded
	tick := time.NewTicker(min(every, changesEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := changes(); now != counted || time.Since(looked) >= every {
			counted, looked = now, time.Now()
			c.LookAgain()
		}
	}
}

// answersLocked reports whether the machine is certain to answer all that a snapshot
// was made from as it did. That is looked at every few seconds, and takes a small
// part of the time that a new snapshot takes.
func (c *Catalog) answersLocked(s *Snapshot) bool {
	if c.hasPackages(s) {
		return false // they may have been enabled or disabled
	}
	machine, _ := c.cfg.Machine.remember()
	for name, was := range c.bins {
		if machine.HasBin(name) != was {
			return false
		}
	}
	for _, list := range [][]*Entry{s.entries, s.shadowed} {
		for _, e := range list {
			if !slices.Equal(machine.missing(e.Capability), e.Missing.here()) {
				return false
			}
		}
	}
	return true
}

// here returns the reasons that lie in the machine. They come before those that lie in
// other capabilities.
func (rs Reasons) here() Reasons {
	for i, reason := range rs {
		if reason.Kind == NeedsUnknown || reason.Kind == NeedsUnavailable {
			return rs[:i]
		}
	}
	return rs
}
