package app

import (
	"context"
	"time"
)

const (
	machineEvery = 30 * time.Second // how often the catalog looks at the machine in any case
	secretsEvery = time.Second      // how often it is checked whether a secret was set
)

// watchMachine makes the catalog check again what this machine has: soon after
// any process set a secret, and at intervals for changes that are not announced,
// such as a program that was installed or a secret that was removed.
func (a *App) watchMachine(ctx context.Context, every time.Duration) {
	sealed, looked := a.secrets.Changes(), time.Now()
	a.catalog.LookAgain() // what came since it was loaded
	tick := time.NewTicker(min(every, secretsEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := a.secrets.Changes(); now != sealed || time.Since(looked) >= every {
			sealed, looked = now, time.Now()
			a.catalog.LookAgain()
		}
	}
}
