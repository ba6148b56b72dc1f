package store

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commit goes to the server once where all preconditions hold, as they mostly do.
// Otherwise it goes there twice more: to lock and read, and to write.
func (s *postgres) commit(ctx context.Context, g *group) error {
	done, left, err := s.once(ctx, g)
	if done {
		return err
	}
	err = s.decided(ctx, g, left)
	if err == nil && left != nil && !slices.ContainsFunc(g.requests, func(r *request) bool { return r.err != nil }) {
		s.receipt = newReceipt() // the server may not have the last one: a backup was restored
	}
	return err
}

// decided commits a group that is decided with the store locked. It may be given a
// connection whose transaction has failed.
func (s *postgres) decided(ctx context.Context, g *group, left *pgxpool.Conn) error {
	reading, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	t := &postgresTx{known: s.known, name: s.name, conn: left}
	g.top = s.top.Load()
	defer func() {
		if t.conn != nil {
			t.conn.Release() // one in a transaction is thrown away, which rolls back
		}
	}()
	err := s.retried(reading, func() (err error) { // until it has decided it can begin again
		failed := left != nil
		if !failed {
			if t.conn != nil {
				t.conn.Release()
			}
			if t.conn, err = s.pool.Acquire(reading); err != nil {
				return err
			}
		}
		left = nil
		if failed {
			if _, err := t.conn.Exec(reading, "ROLLBACK"); err != nil {
				return err
			}
		}
		return t.lock(reading, g)
	})
	if err != nil {
		return s.waited(ctx, err)
	}
	if len(g.writes) == 0 {
		_, err := t.conn.Exec(reading, "ROLLBACK")
		return s.fail(err)
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.wait)
	defer cancel()
	sweep := s.sweeper.due(time.Now())
	n, err := t.write(writing, g, sweep, s.sweeper.keep)
	if lost := new(pgconn.PgError); err != nil && (!errors.As(err, &lost) || lost.Severity == "FATAL") {
		err = s.outcome(context.WithoutCancel(ctx), t, g.head, err)
	}
	if err == nil {
		s.saw(g.head)
	}
	if err == nil && sweep {
		s.sweeper.did(n)
	}
	return s.fail(err)
}

// waited names why waiting for the lock ended: by closing, not by anybody's
// context, for it is not theirs.
func (s *postgres) waited(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cause(ErrClosed, nil, "open it again")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return s.fail(cause(ErrUnavailable, err, "look whether the server runs and can be reached at this address"))
	}
	return s.fail(err)
}

// A postgresTx is one transaction that writes.
type postgresTx struct {
	conn  *pgxpool.Conn
	known int
	name  string // of the store: see [postgres.name]
	now   int64
	xid   string
	life  *time.Time // of the server: see theLife
}

// theLife is when the server last crashed, was made, or was promoted: at each
// it resets its statistics, and it keeps them over a shutdown. A crash
// loses the numbers of transactions that were not yet in its log, and they are
// given again; so a number means something in one life only.
const theLife = "pg_stat_get_bgwriter_stat_reset_time()"

// lock takes the head, reads what the group depends on, and decides. Each
// statement sees what was committed before it began, so those after the first
// see the store as it stays until the end.
func (t *postgresTx) lock(ctx context.Context, g *group) error {
	var head int64
	var schema, least int
	have := map[string]int64{}
	counts := map[string]int{}
	b := &pgx.Batch{}
	// Not READ WRITE: a server that its operator made read-only is not to be overruled,
	// and a standby refuses the words with an error that does not say why.
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	// Those who wait for this lock get it in turn; a row goes to the one that comes
	// just when it is free, which is most often who had it last.
	b.Queue("SELECT pg_advisory_xact_lock($1, 'ken_head'::regclass::oid::integer)", lockID)
	b.Queue("SELECT version FROM ken_head FOR UPDATE").QueryRow(func(row pgx.Row) error { return row.Scan(&head) })
	b.Queue("SELECT schema.*, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text, " + theLife + " FROM (" + schemaNow + ") AS schema (version, least)").
		QueryRow(func(row pgx.Row) error { return row.Scan(&schema, &least, &t.now, &t.xid, &t.life) })
	if keys := g.keys(); len(keys) > 0 {
		b.Queue("SELECT key, version FROM ken_item WHERE key = ANY ($1) AND value IS NOT NULL AND (ends IS NULL OR ends > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)", keys).
			Query(func(rows pgx.Rows) error {
				var key string
				var version int64
				_, err := pgx.ForEachRow(rows, []any{&key, &version}, func() error { have[key] = version; return nil })
				return err
			})
	}
	for _, m := range g.caps() {
		b.Queue("SELECT count(*) FROM ken_item AS i WHERE i.key >= $1 AND i.key < $2 AND "+alive, m, past(m)).
			QueryRow(func(row pgx.Row) error {
				var n int
				err := row.Scan(&n)
				counts[m] = n
				return err
			})
	}
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if err := newer(schema, least, t.known); err != nil {
		return err
	}
	g.decide(head, have, counts)
	return nil
}

// write writes and commits, and returns the number of items swept away.
func (t *postgresTx) write(ctx context.Context, g *group, sweep bool, keep time.Duration) (swept int, err error) {
	var keys, removed []string
	var versions []int64
	var ends []*int64
	var values [][]byte
	for _, w := range g.writes {
		if w.quiet {
			removed = append(removed, w.key)
			continue
		}
		end, value := w.stored(t.now)
		keys, versions, ends, values = append(keys, w.key), append(versions, w.version), append(ends, end), append(values, value)
	}
	b := &pgx.Batch{}
	if len(removed) > 0 {
		b.Queue("DELETE FROM ken_item WHERE key = ANY ($1)", removed)
	}
	b.Queue(`INSERT INTO ken_item (key, version, ends, value) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[])
		ON CONFLICT (key) DO UPDATE SET version = excluded.version, ends = excluded.ends, value = excluded.value`, keys, versions, ends, values)
	if sweep {
		b.Queue(sweepText, keep.Microseconds(), sweepItems).QueryRow(func(row pgx.Row) error { return row.Scan(&swept) })
	}
	b.Queue("UPDATE ken_head SET version = $1", g.head)
	b.Queue("SELECT pg_notify('"+channel+"', $1)", notice(t.name, g.written()))
	b.Queue("COMMIT")
	return swept, t.conn.SendBatch(ctx, b).Close()
}

// sweepText deletes some items that ended longer ago than a given time.
const sweepText = `WITH gone AS (DELETE FROM ken_item WHERE key IN (SELECT key FROM ken_item WHERE ends < ` + micros + ` - $1 ORDER BY ends LIMIT $2) RETURNING version)
	UPDATE ken_head SET swept = greatest(swept, (SELECT max(version) FROM gone)) RETURNING (SELECT count(*) FROM gone)`

// longestNotice is how long a notice may be: the server takes less than 8,000 bytes.
const longestNotice = 4000

// notice says who wrote which keys, or, where those are many, which groups of keys:
// the first part of each. Without keys it says that anything may have changed.
func notice(name string, keys []string) string {
	length := 0
	for _, key := range keys {
		length += len(key) + 1
	}
	if length > longestNotice {
		for i, key := range keys {
			first, _, more := strings.Cut(key, "/")
			if more {
				first += "/"
			}
			keys[i] = first
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	out := name + " " + strings.Join(keys, " ")
	if len(out) > 2*longestNotice-100 {
		return name
	}
	return out
}

// outcome finds out whether a transaction was committed whose connection broke
// before the answer came. head is the head of the store if it was. outcome
// returns nil then, and otherwise lost, the error that broke the connection, as
// unavailable or uncertain.
func (s *postgres) outcome(ctx context.Context, t *postgresTx, head int64, lost error) error {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		// What the server does not remember it cannot be asked about.
		var same bool
		var now int64
		var status string
		err := s.pool.QueryRow(ctx, `SELECT same, version, coalesce(CASE WHEN same THEN pg_xact_status($1::text::xid8) END, '')
			FROM ken_head, (SELECT $2::timestamptz IS NOT DISTINCT FROM `+theLife+` AS same) AS life`, t.xid, t.life).Scan(&same, &now, &status)
		switch {
		case err == nil && same && status == "committed":
			return nil
		case err == nil && same && status == "aborted", err == nil && !same && now < head:
			return cause(ErrUnavailable, lost, "try again")
		case err == nil && !same: // others have written since, or we had
			return cause(ErrUncertain, lost, "the server has crashed: read the keys")
		}
		select { // the server is away, or has not yet noticed that we were
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return cause(ErrUncertain, lost, "read the keys when the server is back")
		}
	}
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
