package catalog

import (
	"context"
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
