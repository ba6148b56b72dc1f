package catalog

import (
	"context"
	"time"
)

// secretsEvery is how often WatchMachine checks whether a secret was set.
const secretsEvery = time.Second

// WatchMachine calls LookAgain until ctx ends: soon after any process set a
// secret, as secretChanges counts them, and at intervals for changes that are not
// announced, such as a program that was installed or a secret that was removed.
func (c *Catalog) WatchMachine(ctx context.Context, every time.Duration, secretChanges func() uint64) {
	counted, looked := secretChanges(), time.Now()
	c.LookAgain() // what came since it was loaded
	tick := time.NewTicker(min(every, secretsEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := secretChanges(); now != counted || time.Since(looked) >= every {
			counted, looked = now, time.Now()
			c.LookAgain()
		}
	}
}
