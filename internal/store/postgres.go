package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A postgres keeps the store in tables of a PostgreSQL server. All time is the
// server's, so that replicas need not agree on theirs.
type postgres struct {
	pool    *pgxpool.Pool
	place   place
	name    string        // of this store among all that write there
	known   int           // schema
	wait    time.Duration // for an answer
	sweeper sweeper
	receipt receipt      // of the last commit in one trip
	top     atomic.Int64 // the newest version that was seen
	mail    atomic.Bool  // its table is there
	made    atomic.Int64 // how many connections were
}

// saw notes how far the store has come.
func (s *postgres) saw(head int64) {
	for {
		top := s.top.Load()
		if head <= top || s.top.CompareAndSwap(top, head) {
			return
		}
	}
}

const (
	postgresWait = 10 * time.Second // for a lock, for a connection
	channel      = "ken_store"
	lockID       = 0x4b656e53 // apart from other programs' advisory locks
	// soon is when what is read is judged: one moment for a statement.
	soon = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
)

func openPostgres(ctx context.Context, p place, steps []string) (*postgres, error) {
	cfg := p.postgres.Copy()
	cfg.MaxConns = max(4, min(cfg.MaxConns, 16))
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = "ken"
	params["timezone"] = "UTC"
	// A process that was stopped while it held the lock loses it. The address
	// may set both otherwise.
	for _, limit := range []string{"lock_timeout", "idle_in_transaction_session_timeout"} {
		if params[limit] == "" {
			params[limit] = fmt.Sprint(postgresWait.Milliseconds())
		}
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = postgresWait
	}
	// The driver asks the server whether a connection works that was idle for a second.
	cfg.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return !silent(p.Conn.PgConn().Conn()) }
	s := &postgres{place: p, name: rand.Text(), known: len(steps), wait: 3 * postgresWait, sweeper: sweeper{keep: keepGone}, receipt: newReceipt()}
	cfg.AfterConnect = func(context.Context, *pgx.Conn) error {
		s.made.Add(1)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, postgresError(err)
	}
	s.pool = pool
	if err := s.migrate(ctx, steps); err != nil {
		pool.Close()
		return nil, postgresError(err)
	}
	return s, nil
}

// migrate takes the steps that are missing, all in one transaction: processes
// take turns by an advisory lock, and after a crash there is nothing half done.
func (s *postgres) migrate(ctx context.Context, steps []string) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass('ken_schema') IS NOT NULL").Scan(&there); err != nil {
			return err
		}
		if there { // most often there is nothing to do, which takes no right to write
			var have, least int
			if err := tx.QueryRow(ctx, schemaNow).Scan(&have, &least); err != nil {
				return err
			}
			if err := newer(have, least, len(steps)); err != nil || have >= len(steps) {
				return err
			}
		}
		have, err := lockSchema(ctx, tx)
		if err != nil || have >= len(steps) { // another process was faster
			return err
		}
		return takeSteps(ctx, tx, have, steps)
	})
}

func (s *postgres) snapshot(context.Context, string) error {
	return cause(ErrInvalid, errors.New("the store is a PostgreSQL server"), "copy it with pg_dump")
}

func (s *postgres) close() error {
	s.pool.Close()
	return nil
}

func (s *postgres) get(ctx context.Context, key string) (Item, bool, error) {
	item := Item{Key: key}
	var ends sql.NullInt64
	err := s.retried(ctx, func() error {
		return s.pool.QueryRow(ctx, "SELECT version, ends, value FROM ken_item WHERE key = $1 AND value IS NOT NULL AND (ends IS NULL OR ends > "+soon+")", key).
			Scan(&item.Version, &ends, &item.Value)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Item{}, false, nil
	}
	item.Expires = expiry(ends)
	return item, err == nil, s.fail(err)
}

func (s *postgres) getAll(ctx context.Context, keys []string) (map[string]Item, error) {
	out := map[string]Item{}
	err := s.retried(ctx, func() error {
		clear(out)
		rows, err := s.pool.Query(ctx, "SELECT key, version, ends, value FROM ken_item WHERE key = ANY ($1) AND value IS NOT NULL AND (ends IS NULL OR ends > "+soon+")", keys)
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

func readItem(row pgx.CollectableRow) (item Item, err error) {
	var ends sql.NullInt64
	err = row.Scan(&item.Key, &item.Version, &ends, &item.Value)
	item.Expires = expiry(ends)
	return item, err
}

// page has the server keep back what is beyond pageBytes: the driver would
// read it all.
func (s *postgres) page(ctx context.Context, from, before string, limit int) (items []Item, err error) {
	err = s.retried(ctx, func() error {
		rows, err := s.pool.Query(ctx, `SELECT key, version, ends, value FROM (
				SELECT *, sum(octet_length(value)) OVER (ORDER BY key) - octet_length(value) AS before FROM ken_item
				WHERE key >= $1 AND key < $2 AND value IS NOT NULL AND (ends IS NULL OR ends > `+soon+`) ORDER BY key LIMIT $3) AS page
			WHERE before < $4 ORDER BY key`, from, before, limit, pageBytes)
		if err != nil {
			return err
		}
		items, err = pgx.CollectRows(rows, readItem)
		return err
	})
	return items, s.fail(err)
}

func (s *postgres) head(ctx context.Context) (int64, error) {
	var head int64
	err := s.retried(ctx, func() error { return s.pool.QueryRow(ctx, "SELECT version FROM ken_head").Scan(&head) })
	return head, s.fail(err)
}

// retried does something that changes nothing, and once more where the connection
// that it was given had been broken: those that wait in the pool do not notice
// that the server was away.
func (s *postgres) retried(ctx context.Context, do func() error) error {
	err := do()
	if ctx.Err() != nil || !broken(err) {
		return err
	}
	s.pool.Reset() // the others there are broken too
	return do()
}

// broken says that a connection has ended which had been made.
func broken(err error) bool {
	var e *pgconn.PgError
	var connecting *pgconn.ConnectError
	var network *net.OpError
	switch {
	case err == nil || errors.As(err, &connecting):
		return false
	case errors.As(err, &e):
		return e.Severity == "FATAL" && (e.Code[:2] == "57" || e.Code[:2] == "08")
	}
	return errors.As(err, &network) && !network.Timeout() || pgconn.SafeToRetry(err) || isEOF(err)
}

// changes asks in one statement, which sees one moment.
func (s *postgres) changes(ctx context.Context, after mark, prefix string, limit int) (news, error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT `+soon+`, h.version, h.swept, i.key, i.version, i.ends, i.value, i.value IS NULL FROM ken_head AS h LEFT JOIN (
			SELECT *, sum(octet_length(coalesce(value, ''))) OVER (ORDER BY version, key) - octet_length(coalesce(value, '')) AS before FROM ken_item
			WHERE (version, key) > ($1, $2) AND key >= $3 AND key < $4 ORDER BY version, key LIMIT $5) AS i ON i.before < $6
		ORDER BY i.version, i.key`, after.version, after.key, prefix, past(prefix), limit, pageBytes)
	if err != nil {
		return news{}, s.fail(err)
	}
	var n news
	var now int64
	var key sql.NullString
	var version, ends sql.NullInt64
	var value []byte
	var deleted bool
	_, err = pgx.ForEachRow(rows, []any{&now, &n.head, &n.swept, &key, &version, &ends, &value, &deleted}, func() error {
		if key.Valid {
			n.add(Item{Key: key.String, Version: version.Int64, Expires: expiry(ends), Value: value}, deleted, time.UnixMicro(now))
		}
		value = nil // the next row's is its own
		return nil
	})
	s.saw(n.head)
	return n, s.fail(err)
}

// listen has a connection of its own.
func (s *postgres) listen(ctx context.Context, wake func([]string)) {
	for wait := listenAgain; ctx.Err() == nil; {
		if heard := s.hear(ctx, wake); heard {
			wait = listenAgain
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, longestAway)
		case <-ctx.Done():
		}
	}
}

const (
	// listenAgain is how long after a lost connection another one is tried, and
	// longestAway how long at most, when none could be had.
	listenAgain = 100 * time.Millisecond
	longestAway = time.Second

	// askAnyway is how often those who watch look whether something changed of which
	// no notice came.
	askAnyway = 5 * time.Second
)

// hear listens until the connection breaks, and reports whether there was one. When
// the connection is new, and every askAnyway, there may be a change that was not
// reported.
func (s *postgres) hear(ctx context.Context, wake func([]string)) bool {
	cfg := s.pool.Config().ConnConfig
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false
	}
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bye)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false
	}
	for asked := (time.Time{}); ; {
		if time.Since(asked) >= askAnyway {
			asked = time.Now()
			wake(nil)
		}
		quiet, cancel := context.WithDeadline(ctx, asked.Add(askAnyway))
		n, err := conn.WaitForNotification(quiet)
		cancel()
		if err != nil && (ctx.Err() != nil || !pgconn.Timeout(err) || conn.IsClosed()) {
			return true
		}
		if err == nil {
			if by, keys, _ := strings.Cut(n.Payload, " "); by != s.name { // our own writes rang already
				wake(strings.Fields(keys))
			}
		}
	}
}

func (s *postgres) fail(err error) error {
	if err = postgresError(err); err != nil {
		return s.place.scrub(err)
	}
	return nil
}

// postgresError returns an error of the driver or the server with its kind.
func postgresError(err error) error {
	var e *pgconn.PgError
	var network net.Error
	var connecting *pgconn.ConnectError
	away := func() error {
		return cause(ErrUnavailable, ConnectError(err), "look whether the server runs and can be reached at this address")
	}
	switch {
	case err == nil || hasKind(err):
		return err
	case PoolerError(err) != nil:
		return cause(ErrUnavailable, nil, PoolerError(err).Error())
	case errors.As(err, &e):
		return serverError(e)
	case errors.As(err, &connecting):
		return away()
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case err.Error() == "closed pool":
		return cause(ErrClosed, nil, "open it again")
	case errors.As(err, &network), pgconn.SafeToRetry(err), isEOF(err):
		return away()
	}
	return err
}

func serverError(e *pgconn.PgError) error {
	switch e.Code {
	case "55P03", "40P01", "40001", "25P03": // lock timeout, deadlock, serialization, idle too long
		return cause(ErrBusy, e, "try again; if it lasts, look for a session that holds a lock on ken_head")
	case "25006": // a standby, or default_transaction_read_only
		return cause(ErrReadOnly, e, "use the primary server, or a user that may write")
	case "42501":
		return cause(ErrReadOnly, e, "grant the user the tables ken_item, ken_head, ken_schema and ken_mail, and CREATE on their schema the first time")
	case "53100":
		return cause(ErrFull, e, "make room on the server's disk, then try again")
	case "XX001", "XX002", "42P01", "42703": // corrupted; a table or column is gone
		return cause(ErrDamaged, e, "restore a backup, or name another database or search_path")
	}
	switch e.Code[:2] {
	case "08", "53", "57", "58": // connection, resources, operator, system
		return cause(ErrUnavailable, e, "look at the server and at its log")
	case "28", "3D", "3F": // user, database, schema
		return cause(ErrUnavailable, e, "fix user, password, database or search_path in the address")
	}
	return e
}
