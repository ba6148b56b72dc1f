package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Retire removes the files of chains that were closed before a time, and gives
// their names. A chain goes only if it verifies and only after a record in
// this log, durable and signed, says which one went and how long it was; its
// checkpoint stays. [Verify] then calls it retired. A chain that was never
// closed, or that is not in order, stays for someone to look at.
func (l *Log) Retire(ctx context.Context, before time.Time) ([]string, error) {
	rep, err := Verify(l.cfg.Dir, l.cfg.CheckpointDir, l.cfg.Key.public)
	if err != nil {
		return nil, fmt.Errorf("retire audit chains: %w", err)
	}
	known, err := verifiers(l.cfg.Key.public)
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, c := range rep.Chains {
		if c.State != Whole || ctx.Err() != nil {
			continue
		}
		hs, err := readSomeHeads(l.cfg.CheckpointDir, c.Chain, known, 1)
		if err != nil || hs.newest == nil || !hs.newest.closed || !hs.newest.time.Before(before) {
			continue
		}
		h := *hs.newest
		_, err = l.append(ctx, []Record{{Event: Retired, Chain: &ChainStart{
			Name: h.chain, Seen: []Witness{{Chain: h.chain, Size: h.size, Root: h.root.String()}},
		}}}, true)
		if err != nil {
			return gone, err
		}
		for n := 1; n <= h.segment; n++ {
			err = errors.Join(err, os.Remove(filepath.Join(l.cfg.Dir, segmentName(h.chain, n))))
		}
		if err != nil {
			return gone, fmt.Errorf("retire audit chain %s: %w", h.chain, err)
		}
		gone = append(gone, h.chain)
	}
	return gone, context.Cause(ctx)
}
