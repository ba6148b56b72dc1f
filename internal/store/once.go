package store

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An expected is what a group writes if all its preconditions hold. The versions
// of its writes count from the head, which only the server knows.
type expected struct {
	wants  []want
	caps   []atMost
	writes []write
	unsure []write // deletes of keys that may not be there
	steps  int64   // by which the head moves
}

// expect judges the requests before the store is asked, as if every precondition
// held. It returns false if that cannot be right, or nothing would be written.
func (g *group) expect() (e expected, ok bool) {
	have := map[string]int64{} // -1: written by this group
	at := map[string]int{}     // of a key in e.writes
	for _, r := range g.requests {
		if r.batch.past > 0 {
			return e, false // how far the head moves is not known
		}
		for _, w := range r.batch.wants {
			v, known := have[w.key]
			if !known {
				v, have[w.key] = w.version, w.version
				e.wants = append(e.wants, w)
			}
			if v != w.version {
				return e, false
			}
		}
		for _, m := range r.batch.caps {
			for _, w := range e.writes {
				if strings.HasPrefix(w.key, m.prefix) {
					return e, false
				}
			}
			e.caps = append(e.caps, m)
		}
		changed, sure := false, false
		for _, w := range r.batch.writes {
			v, known := have[w.key]
			switch {
			case w.drop && known && v == 0:
				continue
			case w.drop && !known && w.quiet: // it is deleted whether it is there or not
			case w.drop && !known:
				have[w.key], changed = 0, true
				w.version = e.steps + 1
				e.unsure = append(e.unsure, w)
				continue
			default:
				sure = true
			}
			changed = true
			w.version, have[w.key] = e.steps+1, -1
			if w.drop {
				have[w.key] = 0
			}
			if i, again := at[w.key]; again {
				e.writes[i] = w
			} else {
				at[w.key] = len(e.writes)
				e.writes = append(e.writes, w)
			}
		}
		if changed && !sure {
			return e, false // whether it changes anything is not known
		}
		if changed {
			e.steps++
		}
		r.version = e.steps // from the head, until that is known
	}
	for _, w := range e.unsure {
		if _, again := at[w.key]; again {
			return e, false
		}
	}
	return e, e.steps > 0
}

// settled sets what became of the requests, now that the head before them is known.
func (g *group) settled(e *expected, head int64) {
	for _, r := range g.requests {
		r.version, r.err = head+r.version, nil
	}
	g.writes = append(e.writes, e.unsure...)
	for i := range g.writes {
		g.writes[i].version += head
	}
	g.head = head + e.steps
}

// A receipt is a row that each commit in one trip writes. If the answer to the commit
// is lost, it tells whether the commit was made. No reader sees the row: it has
// expired when it is written, and its version is 0.
type receipt struct {
	key  string
	last []byte // as the row was left; nil: not written yet
}

// newReceipt names a row. A space is in no key of a batch.
func newReceipt() receipt { return receipt{key: " commit/" + rand.Text()} }

const (
	// onceWait is how long a commit in one trip waits for others. Then it takes the
	// longer way, on which a request can still be withdrawn.
	onceWait = "1s"
	// there is alive at the moment of the statement.
	there = "i.value IS NOT NULL AND (i.ends IS NULL OR i.ends > " + soon + ")"
	// alive is the condition that an item is there.
	alive  = "i.value IS NOT NULL AND (i.ends IS NULL OR i.ends > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
	micros = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
)

// once commits a group in one trip, if all its preconditions hold. It reports false
// if they do not, or if that could not be found out in time: nothing is written
// then, and the group is to be decided with the store locked. If the server refused
// a precondition, left is the connection, with a transaction that is to be rolled back.
func (s *postgres) once(ctx context.Context, g *group) (done bool, left *pgxpool.Conn, err error) {
	g.take()
	defer func() {
		if !done {
			g.untake()
		}
	}()
	e, ok := g.expect()
	if !ok {
		return false, nil, nil
	}
	acquiring, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	conn, err := s.pool.Acquire(acquiring)
	if err != nil {
		return false, nil, nil // the longer way says why
	}
	defer func() {
		if left == nil {
			conn.Release() // one in a transaction is thrown away, which rolls back
		}
	}()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.wait)
	defer cancel()
	sweep := s.sweeper.due(time.Now())
	token := rand.Text()
	head, swept, err := s.sendOnce(writing, conn.Conn(), &e, token, sweep)
	refused := new(pgconn.PgError)
	switch {
	case err == nil:
		s.receipt.last = receiptValue(token, head+e.steps)
		if sweep {
			s.sweeper.did(swept)
		}
		g.settled(&e, head)
		s.saw(g.head)
		return true, nil, nil
	case errors.As(err, &refused) && refused.Severity != "FATAL":
		switch refused.Code {
		case "22012", "55P03": // a precondition, or the lock
			return false, conn, nil
		}
		return true, nil, s.fail(err)
	case pgconn.SafeToRetry(err):
		return false, nil, nil
	}
	_ = conn.Conn().Close(writing) // it must not be used again
	head, err = s.fence(context.WithoutCancel(ctx), token, err)
	switch {
	case errors.Is(err, errNotCommitted):
		return false, nil, nil
	case err != nil:
		return true, nil, s.fail(err)
	}
	g.settled(&e, head-e.steps)
	s.saw(g.head)
	return true, nil, nil
}

func (s *postgres) sendOnce(ctx context.Context, conn *pgx.Conn, e *expected, token string, sweep bool) (head int64, swept int, err error) {
	var wanted, prefixes, ends, keys, removed, unsure []string
	var versions, most, offsets, unsureOffsets []int64
	var lives []*int64
	var values [][]byte
	for _, w := range e.wants {
		wanted, versions = append(wanted, w.key), append(versions, w.version)
	}
	for _, m := range e.caps {
		prefixes, ends, most = append(prefixes, m.prefix), append(ends, past(m.prefix)), append(most, int64(m.most))
	}
	for _, w := range e.writes {
		if w.quiet {
			removed = append(removed, w.key)
			continue
		}
		life, value := w.stored(0)
		keys, offsets, lives, values = append(keys, w.key), append(offsets, w.version), append(lives, life), append(values, value)
	}
	for _, w := range e.unsure {
		unsure, unsureOffsets = append(unsure, w.key), append(unsureOffsets, w.version)
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED") // not READ WRITE: see [postgresTx.lock]
	b.Queue("SET LOCAL lock_timeout = '" + onceWait + "'")
	b.Queue("SELECT pg_advisory_xact_lock($1, 'ken_head'::regclass::oid::integer)", lockID)
	b.Queue("SELECT version FROM ken_head FOR UPDATE").QueryRow(func(row pgx.Row) error { return row.Scan(&head) })
	// A division by zero ends the transaction.
	b.Queue(`SELECT 1 / (CASE WHEN EXISTS (SELECT FROM (`+schemaNow+`) AS schema (version, least) WHERE schema.version <= $1 OR schema.least <= $1)
			AND (SELECT version FROM ken_head) >= $9
			AND NOT EXISTS (SELECT FROM ken_item WHERE key = $2 AND value IS DISTINCT FROM $3)
			AND NOT EXISTS (SELECT FROM unnest($4::text[], $5::bigint[]) AS w(key, version) LEFT JOIN ken_item AS i ON i.key = w.key AND `+alive+`
				WHERE coalesce(i.version, 0) <> w.version)
			AND NOT EXISTS (SELECT FROM unnest($6::text[], $7::text[], $8::bigint[]) AS m(first, past, most)
				WHERE (SELECT count(*) FROM (SELECT FROM ken_item AS i WHERE i.key >= m.first AND i.key < m.past AND `+alive+` LIMIT m.most + 1) AS those) > m.most)
		THEN 1 ELSE 0 END)`, s.known, s.receipt.key, s.receipt.last, wanted, versions, prefixes, ends, most, s.top.Load())
	if len(removed) > 0 {
		b.Queue("DELETE FROM ken_item WHERE key = ANY ($1)", removed)
	}
	if len(keys) > 0 {
		b.Queue(`INSERT INTO ken_item (key, version, ends, value) SELECT w.key, h.version + w.step, `+micros+` + w.life, w.value
			FROM ken_head AS h, unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[]) AS w(key, step, life, value)
			ON CONFLICT (key) DO UPDATE SET version = excluded.version, ends = excluded.ends, value = excluded.value`, keys, offsets, lives, values)
	}
	if len(unsure) > 0 {
		b.Queue(`UPDATE ken_item AS i SET version = h.version + w.step, ends = `+micros+`, value = NULL
			FROM ken_head AS h, unnest($1::text[], $2::bigint[]) AS w(key, step) WHERE i.key = w.key AND `+alive, unsure, unsureOffsets)
	}
	if sweep {
		b.Queue(sweepText, s.sweeper.keep.Microseconds(), sweepItems).QueryRow(func(row pgx.Row) error { return row.Scan(&swept) })
	}
	b.Queue("UPDATE ken_head SET version = version + $1", e.steps)
	b.Queue(`INSERT INTO ken_item (key, version, ends, value) SELECT $1, 0, `+micros+` - 1000000, convert_to($2 || ' ' || version, 'UTF8') FROM ken_head
		ON CONFLICT (key) DO UPDATE SET ends = excluded.ends, value = excluded.value`, s.receipt.key, token)
	names := make([]string, 0, len(e.writes)+len(e.unsure))
	for _, w := range append(e.writes[:len(e.writes):len(e.writes)], e.unsure...) {
		names = append(names, w.key)
	}
	b.Queue("SELECT pg_notify('"+channel+"', $1)", notice(s.name, names))
	b.Queue("COMMIT")
	return head, swept, conn.SendBatch(ctx, b).Close()
}

var errNotCommitted = errors.New("the transaction was not committed")

// fence finds out whether a commit was made whose answer was lost, and returns the
// head that it made. If it was not made by now, it never will be: fence changes the
// row that the commit expects. The error is then errNotCommitted; if the server
// cannot be asked, it is uncertain, with the error that broke the connection.
func (s *postgres) fence(ctx context.Context, token string, lost error) (head int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		var found []byte
		b := &pgx.Batch{}
		b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED") // not READ WRITE: see [postgresTx.lock]
		b.Queue("SELECT pg_advisory_xact_lock($1, 'ken_head'::regclass::oid::integer)", lockID)
		b.Queue(`INSERT INTO ken_item AS i (key, version, ends, value) VALUES ($1, 0, `+micros+` - 1000000, $3)
			ON CONFLICT (key) DO UPDATE SET ends = excluded.ends, value = CASE WHEN substring(i.value FROM 1 FOR length($2::bytea)) = $2::bytea THEN i.value ELSE excluded.value END
			RETURNING value`, s.receipt.key, []byte(token+" "), []byte("fence "+rand.Text())).
			QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
		b.Queue("COMMIT")
		if err := s.pool.SendBatch(ctx, b).Close(); err == nil {
			s.receipt.last = found
			number, made := strings.CutPrefix(string(found), token+" ")
			if !made {
				return 0, errNotCommitted
			}
			return strconv.ParseInt(number, 10, 64)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, cause(ErrUncertain, lost, "read the keys when the server is back")
		}
	}
}

func receiptValue(token string, head int64) []byte {
	return strconv.AppendInt([]byte(token+" "), head, 10)
}
