package health

import (
	"context"
	"sync"

	"ken/internal/config"
	"ken/internal/run/executors"
	"ken/internal/serve/doctor"
)

// Databases opens every database of ken.yaml once.
func (c *Collector) Databases(ctx context.Context) []doctor.Database {
	list := c.cfg.Databases()
	out := make([]doctor.Database, len(list))
	var all sync.WaitGroup
	for i, d := range list {
		out[i] = doctor.Database{Name: d.Name, Engine: string(d.Engine), Write: d.Access == config.AccessWrite}
		all.Go(func() { out[i].Rights, out[i].Err = executors.CheckDatabase(ctx, d, c.cfg.Resolve) })
	}
	all.Wait()
	return out
}
