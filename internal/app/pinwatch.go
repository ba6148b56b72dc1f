package app

import (
	"context"
	"time"

	"ken/internal/govern/pin"
	"ken/internal/run/mcpservers"
)

// pinsAnyway is after how many looks tools that wait are judged again although
// nothing was written about them: the store may have failed the last time.
const pinsAnyway = 30

// watchPins asks again about tools that wait for a person, since the word may be
// given in another process, until ctx ends.
func (a *App) watchPins(ctx context.Context) {
	if a.gateway == nil || a.Servers.Shared() {
		return
	}
	seen := map[string]int64{} // by server: what was written when it was judged last
	rules := mcpservers.PinPolicy(a.effective().MCP)
	tick := time.NewTicker(mcpservers.Every)
	defer tick.Stop()
	for turn := 1; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := mcpservers.PinPolicy(a.effective().MCP)
		if turn%pinsAnyway == 0 || now != rules {
			clear(seen)
		}
		rules = now
		for _, s := range a.gateway.Status() {
			if s.Quarantined+s.Barred == 0 {
				continue
			}
			if err := a.reviewAgain(ctx, s.Name, seen); err != nil && ctx.Err() == nil {
				a.log.Warn("whether tools that wait were accepted cannot be seen", "server", s.Name, "error", err)
			}
		}
	}
}

// reviewAgain has the tools of a server judged where something was written about
// them since.
func (a *App) reviewAgain(ctx context.Context, name string, seen map[string]int64) error {
	key := a.Servers.PinKey(name)
	desk, err := a.serving.pins.Get()
	if err != nil {
		return err
	}
	now, err := desk.Revision(ctx, key)
	if err != nil {
		return err
	}
	others, err := desk.Revision(ctx, pin.OffersKey(key))
	if err != nil {
		return err
	}
	now = max(now, others) // revisions of one store only grow
	if was, ok := seen[name]; ok && was == now {
		return nil
	}
	if err := a.gateway.Review(ctx, name); err != nil {
		return err
	}
	seen[name] = now
	return nil
}
