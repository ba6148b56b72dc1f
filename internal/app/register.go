package app

import (
	"context"
	"errors"

	"ken/internal/govern/audit"
	"ken/internal/store"
)

// The store is a third place, besides the chains of the trail and their signed
// heads, that remembers how far each chain had come: so a chain that is removed
// or put back to an earlier state together with its head is missed.
const chainPrefix = "audit/chain/"

// register keeps the newest signed head of the trail.
func (a *App) register(log *audit.Log) error {
	s, err := a.store.Get()
	if err != nil {
		return err
	}
	var b store.Batch
	b.Put(store.Key("audit", "chain", log.Chain()), log.Head())
	ctx, cancel := context.WithTimeout(context.Background(), openStore)
	defer cancel()
	_, err = s.Apply(ctx, &b)
	return err
}

// closeTrail ends the chain of this process and keeps its closing head.
func (a *App) closeTrail(log *audit.Log) error {
	return errors.Join(log.Close(), a.register(log))
}

// heads returns what the store remembers of all chains.
func (a *App) heads(ctx context.Context) ([][]byte, error) {
	s, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for item, err := range s.Scan(ctx, chainPrefix, store.Range{}) {
		if err != nil {
			return out, err
		}
		out = append(out, item.Value)
	}
	return out, nil
}
