package app

import (
	"context"
	"errors"

	"ken/internal/govern/audit"
	"ken/internal/store"
)

// mostDied is how many chains of dead processes are examined.
const mostDied = 64

// closeOrphans writes a closing record for every call that was running when its
// process died. Each chain is examined once, by one process.
func (a *App) closeOrphans(ctx context.Context, log *audit.Log, db *store.Store) {
	chains, err := log.Died(mostDied)
	for _, chain := range chains {
		err = errors.Join(err, a.closeOrphansOf(ctx, log, db, chain))
	}
	if err != nil {
		a.log.Warn("calls of a process that died are not closed in the audit log", "error", err)
	}
}

func (a *App) closeOrphansOf(ctx context.Context, log *audit.Log, db *store.Store, chain string) error {
	key := store.Key("audit-orphans", chain)
	if _, there, err := db.Get(ctx, key); err != nil || there {
		return err
	}
	orphans, err := audit.Orphans(a.Places.Audit, chain)
	if err != nil {
		return err
	}
	var claim store.Batch
	claim.At(key, 0)
	claim.Put(key, []byte("1"))
	version, err := db.Apply(ctx, &claim)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process is doing it
	}
	if err != nil || len(orphans) == 0 {
		return err
	}
	records := make([]audit.Record, len(orphans))
	for i, r := range orphans {
		records[i] = r.AsLost(chain)
	}
	if _, err = log.Append(ctx, records...); err != nil {
		var undo store.Batch
		undo.At(key, version)
		undo.Delete(key)
		_, unclaimed := db.Apply(ctx, &undo)
		return errors.Join(err, unclaimed)
	}
	return nil
}
