package session

import (
	"context"
	"errors"
	"strings"

	"ken/capability"
	"ken/internal/store"
)

// Delete takes a session away, for good. One whose turn runs is [ErrBusy].
func (s *Store) Delete(ctx context.Context, who capability.Principal, id string) error {
	for {
		r, version, err := s.head(ctx, "delete", who, id)
		if err != nil {
			return err
		}
		err = s.remove(ctx, keysOf(who, id), r, version)
		if c, ok := errors.AsType[*store.Conflict](err); ok {
			if k := keysOf(who, id); c.Key == k.lock {
				return s.busy(ctx, "delete", k)
			}
			continue // the session changed meanwhile: look again
		}
		return err
	}
}

// remove first makes a session one that is not there, in one commit, and then
// takes its entries away. Should that be interrupted, a sweep goes on with it.
func (s *Store) remove(ctx context.Context, k keys, r record, version int64) error {
	if !r.Gone {
		r.Gone = true
		data, err := encodeHead(r)
		if err != nil {
			return err
		}
		var b store.Batch
		b.At(k.head, version)
		b.Absent(k.lock)
		b.Put(k.head, data)
		b.Put(k.list(r.Place), []byte(gone))
		if _, err := s.db.Apply(ctx, &b); err != nil {
			return err
		}
	}
	s.recent.drop(k.head)
	for {
		var b store.Batch
		n := 0
		for item, err := range s.db.Scan(ctx, k.entries(), store.Range{Limit: store.MaxWrites / 2}) {
			if err != nil {
				return err
			}
			b.Delete(item.Key)
			n++
		}
		if n < store.MaxWrites/2 {
			b.Delete(k.head)
			b.Delete(k.list(r.Place))
		}
		if _, err := s.db.Apply(ctx, &b); err != nil || n < store.MaxWrites/2 {
			return err
		}
	}
}

// Sweep deletes what is no longer kept, of everybody, and finishes deletions
// that were interrupted. It gives how many sessions it deleted. Without
// [Config.Keep] only the latter is left to do.
func (s *Store) Sweep(ctx context.Context) (int, error) { return s.sweep(ctx, listPrefix, 0) }

// sweep looks at the sessions of a part of the list, and deletes at most limit;
// 0: all.
func (s *Store) sweep(ctx context.Context, prefix string, limit int) (n int, err error) {
	var after string
	if prefix != listPrefix {
		// Of one owner the list is in order: what is over stands at its end.
		after = prefix + placeAt(s.now().Add(-s.cfg.Keep))
	}
	for item, err := range s.db.Scan(ctx, prefix, store.Range{After: after}) {
		if err != nil {
			return n, err
		}
		parts := strings.Split(item.Key, "/")
		if len(parts) != 4 {
			continue
		}
		ended, err := s.ended(ctx, keysUnder(parts[1], parts[3]), item)
		if err != nil {
			return n, err
		}
		if ended {
			n++
		}
		if limit > 0 && n == limit {
			break
		}
	}
	return n, nil
}

// ended deletes the session of an item of the list if its time is over.
func (s *Store) ended(ctx context.Context, k keys, item store.Item) (bool, error) {
	if string(item.Value) == listed && s.cfg.Keep <= 0 {
		return false, nil
	}
	head, there, err := s.db.Get(ctx, k.head)
	if err != nil || !there {
		return false, err
	}
	r, err := decodeHead(head)
	if err != nil {
		return false, nil // not ours to judge, and not ours to delete
	}
	if !r.Gone && !s.over(r.Head.Updated) {
		return false, nil
	}
	err = s.remove(ctx, k, r, head.Version)
	if errors.Is(err, store.ErrConflict) {
		return false, nil // a turn runs
	}
	return err == nil, err
}
