package app

import (
	"context"
	"time"
)

// watchPins asks again about tools that wait for a person, since the word may be
// given in another process, until ctx ends.
func (a *App) watchPins(ctx context.Context) {
	if a.gateway == nil || a.shared {
		return
	}
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range a.gateway.Status() {
			if s.Quarantined == 0 {
				continue
			}
			if err := a.gateway.Review(ctx, s.Name); err != nil && ctx.Err() == nil {
				a.log.Warn("whether tools that wait were accepted cannot be seen", "server", s.Name, "error", err)
			}
		}
	}
}
