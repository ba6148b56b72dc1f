package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	driver "modernc.org/sqlite"
)

// A sqliteWriter is the one connection of this process that writes. Only the
// queue uses it, one group at a time.
type sqliteWriter struct {
	db    *sql.DB
	conn  *sql.Conn
	known int
	wait  time.Duration // for the lock

	head, load, count, put, remove, move *sql.Stmt
	begin, end                           *sql.Stmt // nil while the tables are made
	sweeper                              sweeper
	held                                 time.Duration // the lock, since others last could take it
	released                             time.Time
}

func newSQLiteWriter(ctx context.Context, db *sql.DB, steps []string) (*sqliteWriter, error) {
	w := &sqliteWriter{db: db, known: len(steps), wait: sqliteWait, sweeper: sweeper{keep: keepGone}}
	err := w.patiently(ctx, func() (err error) { // the change to WAL wants the file for itself
		w.conn, err = db.Conn(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err = w.migrate(ctx, steps); err == nil {
		err = w.prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *sqliteWriter) prepare(ctx context.Context) (err error) {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.begin, beginText},
		{&w.end, endText},
		{&w.head, "SELECT version, (SELECT user_version FROM pragma_user_version) FROM ken_head"},
		{&w.load, "SELECT version FROM ken_item WHERE key = ?1 AND value IS NOT NULL AND (ends IS NULL OR ends > ?2)"},
		{&w.count, "SELECT count(*) FROM ken_item WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL AND (ends IS NULL OR ends > ?3)"},
		{&w.put, `INSERT INTO ken_item (key, version, ends, value) VALUES (?1, ?2, ?3, ?4)
			ON CONFLICT (key) DO UPDATE SET version = excluded.version, ends = excluded.ends, value = excluded.value`},
		{&w.remove, "DELETE FROM ken_item WHERE key = ?1"},
		{&w.move, "UPDATE ken_head SET version = ?1"},
	} {
		if *p.stmt, err = w.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// close ends the statements first: SQLite keeps a connection open, and the log
// beside the file, while one is left.
func (w *sqliteWriter) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{w.begin, w.end, w.head, w.load, w.count, w.put, w.remove, w.move} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}

// patiently does something again while others hold the lock, for a while. We
// look more often than SQLite would by itself, whose pauses grow until those
// who write without end have all the luck; and closing can interrupt us.
func (w *sqliteWriter) patiently(ctx context.Context, do func() error) error {
	for until := time.Now().Add(w.wait); ; {
		err := do()
		var e *driver.Error
		if !errors.As(err, &e) || e.Code()&0xff != 5 || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return err
		}
	}
}

// migrate takes the steps that are missing, all in one transaction: two
// processes take turns, and after a crash there is nothing half done.
func (w *sqliteWriter) migrate(ctx context.Context, steps []string) error {
	return w.transaction(ctx, func(ctx context.Context) error {
		var id, have, tables int
		if err := w.conn.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
			(SELECT count(*) FROM sqlite_schema)`).Scan(&id, &have, &tables); err != nil {
			return err
		}
		if id != sqliteID && (id != 0 || have != 0 || tables != 0) {
			return cause(ErrDamaged, errors.New("the file is another program's database"), "name another file")
		}
		if err := newer(have, have, len(steps)); err != nil || have == len(steps) {
			return err
		}
		for i, step := range steps[have:] {
			if _, err := w.conn.ExecContext(ctx, step); err != nil {
				return fmt.Errorf("change the tables to schema %d: %w", have+i+1, err)
			}
		}
		_, err := w.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", sqliteID, len(steps)))
		return err
	})
}

const (
	beginText = "BEGIN IMMEDIATE"
	endText   = "COMMIT"
)

// exec runs a statement that was prepared, or its text before it was.
func (w *sqliteWriter) exec(ctx context.Context, stmt *sql.Stmt, text string) (err error) {
	if stmt != nil {
		_, err = stmt.ExecContext(ctx)
	} else {
		_, err = w.conn.ExecContext(ctx, text)
	}
	return err
}

// transaction does something with the file locked for writing. Once it is
// locked, no context interrupts it.
func (w *sqliteWriter) transaction(ctx context.Context, do func(context.Context) error) error {
	free := context.WithoutCancel(ctx)
	if err := w.patiently(ctx, func() error { return w.exec(free, w.begin, beginText) }); err != nil {
		return err
	}
	locked := time.Now()
	defer func() {
		w.released = time.Now()
		w.held += w.released.Sub(locked)
	}()
	err := do(free)
	if err == nil {
		err = w.exec(free, w.end, endText)
		if code := new(driver.Error); errors.As(err, &code) && code.Code()&0xff == 10 {
			err = cause(ErrUncertain, err, "look at the disk and at the system's log, then read the keys")
		}
	}
	if err != nil {
		_, _ = w.conn.ExecContext(free, "ROLLBACK") // SQLite may have done it: then this has nothing to do
	}
	return err
}

func (s *sqlite) commit(ctx context.Context, g *group) error {
	err := s.there()
	if err == nil {
		s.writer.pause()
		err = s.writer.transaction(ctx, func(ctx context.Context) error { return s.writer.write(ctx, g) })
	}
	if errors.Is(err, errNothing) {
		return nil
	}
	return sqliteError(err)
}

// errNothing ends a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

func (w *sqliteWriter) write(ctx context.Context, g *group) error {
	start := time.Now()
	var head int64
	var schema int
	if err := w.head.QueryRowContext(ctx).Scan(&head, &schema); err != nil {
		return err
	}
	if err := newer(schema, schema, w.known); err != nil {
		return err
	}
	now := start.UnixMicro()
	have := map[string]int64{}
	for _, key := range g.keys() {
		var version int64
		switch err := w.load.QueryRowContext(ctx, key, now).Scan(&version); {
		case err == nil:
			have[key] = version
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	counts := map[string]int{}
	for _, prefix := range g.caps() {
		var n int
		if err := w.count.QueryRowContext(ctx, prefix, past(prefix), now).Scan(&n); err != nil {
			return err
		}
		counts[prefix] = n
	}
	g.decide(head, have, counts)
	if len(g.writes) == 0 {
		return errNothing
	}
	for _, x := range g.writes {
		if x.quiet {
			if _, err := w.remove.ExecContext(ctx, x.key); err != nil {
				return err
			}
			continue
		}
		ends, value := x.stored(now)
		if _, err := w.put.ExecContext(ctx, x.key, x.version, ends, value); err != nil {
			return err
		}
	}
	if _, err := w.move.ExecContext(ctx, g.head); err != nil {
		return err
	}
	return w.sweep(ctx, start)
}

// stored is how a write stands in the table.
func (w write) stored(now int64) (ends *int64, value []byte) {
	switch {
	case w.drop:
		return &now, nil
	case w.ttl > 0:
		end := now + w.ttl.Microseconds()
		ends = &end
	}
	if w.value == nil {
		return ends, []byte{}
	}
	return ends, w.value
}

func (w *sqliteWriter) sweep(ctx context.Context, now time.Time) error {
	if !w.sweeper.due(now) {
		return nil
	}
	rows, err := w.conn.QueryContext(ctx, `DELETE FROM ken_item WHERE rowid IN
		(SELECT rowid FROM ken_item WHERE ends < ?1 ORDER BY ends LIMIT ?2) RETURNING version`, now.Add(-w.sweeper.keep).UnixMicro(), sweepItems)
	if err != nil {
		return err
	}
	defer rows.Close()
	n, newest := 0, int64(0)
	for ; rows.Next(); n++ {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return err
		}
		newest = max(newest, version)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	w.sweeper.did(n)
	_, err = w.conn.ExecContext(ctx, "UPDATE ken_head SET swept = max(swept, ?1)", newest)
	return err
}

const lockPoll = time.Millisecond

// pause lets other processes in, which look for the lock every lockPoll: who
// writes without end would leave them no moment to find it.
func (w *sqliteWriter) pause() {
	const moment = 2 * lockPoll
	if time.Since(w.released) > moment {
		w.held = 0
	}
	if w.held > 10*moment {
		w.held = 0
		time.Sleep(moment)
	}
}

const (
	keepGone   = 10 * time.Minute // what is gone, for those who watch
	sweepItems = 256
	sweepEvery = time.Second
)

// A sweeper says when to take away what has long been gone: a little with a
// write now and then, and with every write while there is more than a little.
type sweeper struct {
	keep time.Duration // how long after it was gone
	last time.Time
	more bool
}

func (s *sweeper) due(now time.Time) bool {
	return s.more || now.Sub(s.last) >= sweepEvery || now.Before(s.last)
}

func (s *sweeper) did(n int) { s.last, s.more = time.Now(), n == sweepItems }
