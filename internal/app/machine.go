package app

import (
	"context"
	"time"
)

const (
	machineEvery = 30 * time.Second // how often the catalog looks at the machine in any case
	secretsEvery = time.Second      // how often it is checked whether a secret was set
)

// watchMachine lets the catalog look again at what is here: soon after a secret
// was set, by whichever process, and every so often for what nobody tells, a
// program that was installed or a secret that was removed.
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
