package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A Query is what [Store.Read] reads at once: keys, and the first keys of some groups.
type Query struct {
	Keys   []string
	Groups []Group
}

// A Group is the keys that begin with Prefix, at most Limit of them, in order. If Names
// is not empty, each value is the rest of the name of another key, which begins with
// Names, and that key is read as well if its value is not larger than [LargestNamed].
type Group struct {
	Prefix string
	Limit  int
	Names  string
}

// LargestNamed is the most bytes of a value that is read because another value names
// its key.
const LargestNamed = 64 << 10

// Read reads all that a query asks for in one trip to the store, at one moment where
// that is PostgreSQL. What is not there, or has expired, is left out.
func (s *Store) Read(ctx context.Context, q Query) (map[string]Item, error) {
	err := s.ready(ctx)
	for _, key := range q.Keys {
		if err == nil {
			err = checkKey(key)
		}
	}
	for _, g := range q.Groups {
		for _, prefix := range []string{g.Prefix, g.Names} {
			if err == nil {
				err = checkPrefix(prefix)
			}
		}
		if err == nil && (g.Limit < 1 || g.Limit > pageItems) {
			err = fmt.Errorf("%w: the limit for keys that begin with %s is %d; use 1 to %d", ErrInvalid, g.Prefix, g.Limit, pageItems)
		}
	}
	var items map[string]Item
	if err == nil {
		items, err = s.db.read(ctx, q)
	}
	if err != nil {
		return nil, s.fail("read from", err)
	}
	return items, nil
}

func (s *sqlite) read(ctx context.Context, q Query) (map[string]Item, error) {
	out, err := s.getAll(ctx, q.Keys)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, g := range q.Groups {
		items, err := s.page(ctx, g.Prefix, past(g.Prefix), g.Limit)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			out[item.Key] = item
			if g.Names != "" {
				named = append(named, g.Names+string(item.Value))
			}
		}
	}
	more, err := s.getAll(ctx, named)
	for key, item := range more {
		if _, asked := out[key]; !asked && len(item.Value) <= LargestNamed {
			out[key] = item
		}
	}
	return out, err
}

// read asks in one statement, which sees one moment.
func (s *postgres) read(ctx context.Context, q Query) (map[string]Item, error) {
	var from, before, names []string
	var limits []int64
	for _, g := range q.Groups {
		from, before, names, limits = append(from, g.Prefix), append(before, past(g.Prefix)), append(names, g.Names), append(limits, int64(g.Limit))
	}
	out := map[string]Item{}
	err := s.retried(ctx, func() error {
		clear(out)
		rows, err := s.pool.Query(ctx, `WITH asked AS (
				SELECT i.key, i.version, i.ends, i.value, '' AS names FROM ken_item AS i WHERE i.key = ANY ($1) AND `+there+`
				UNION ALL SELECT i.key, i.version, i.ends, i.value, g.names FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS g(first, past, names, most),
					LATERAL (SELECT * FROM ken_item AS i WHERE i.key >= g.first AND i.key < g.past AND `+there+` ORDER BY i.key LIMIT g.most) AS i)
			SELECT key, version, ends, value FROM asked
			UNION ALL SELECT i.key, i.version, i.ends, i.value FROM asked AS a JOIN ken_item AS i ON i.key = a.names || encode(a.value, 'escape')
				WHERE a.names <> '' AND octet_length(i.value) <= $6 AND `+there, q.Keys, from, before, names, limits, LargestNamed)
		if err != nil {
			return err
		}
		items, err := pgx.CollectRows(rows, readItem)
		for _, item := range items {
			out[item.Key] = item
		}
		return err
	})
	return out, s.fail(err)
}
