package app

import (
	"context"
	"slices"
	"time"

	"ken/internal/config"
	"ken/internal/run/executors"
)

// databases are those that ken.yaml names now.
func (a *App) databases() []config.Database { return a.effective().Databases }

// databasesEvery is how often ken.yaml is asked for other databases. It is only
// read again if it has changed.
const databasesEvery = 500 * time.Millisecond

// watchDatabases keeps the tools of databases as ken.yaml has them, until ctx ends.
func watchDatabases(ctx context.Context, a *App) {
	m, known := a.ofDatabases, a.Settings.Databases
	if m == nil {
		return
	}
	listed := len(known) > 0
	tick := time.NewTicker(databasesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := a.databases()
		if slices.Equal(now, known) {
			continue
		}
		known = now
		executors.Refill(ctx, m, executors.DatabaseTools(now))
		if !listed {
			listed = true
			if err := a.Catalog.Add(ctx, m); err != nil && ctx.Err() == nil {
				a.log.Warn("the tools of databases cannot be listed", "error", err)
			}
			continue
		}
		batch, _ := m.Load(ctx) // a memory can always be read
		a.Catalog.Replace(m.Name(), batch)
	}
}
