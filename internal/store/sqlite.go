package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
)

// An sqlite keeps the store in a file: one connection writes, others read
// beside it.
type sqlite struct {
	file    string
	info    os.FileInfo  // of the file that is open
	least   atomic.Int64 // size that the file had; it never shrinks
	known   int          // schema
	readers *sql.DB
	getting *sql.Stmt
	writer  *sqliteWriter
}

const (
	sqliteID      = 0x4b656e53 // application_id: KenS
	sqliteReaders = 8
	sqliteWait    = 10 * time.Second // how long others may hold the lock
	// sqlitePoll is how late another process's writes are noticed.
	sqlitePoll = 25 * time.Millisecond
	// sqliteSettled is how old the log's time must be to tell all writes apart.
	sqliteSettled = 100 * time.Millisecond
	// sqliteAsk is how late they are noticed where the log's time did not change.
	sqliteAsk = time.Second
)

func openSQLite(ctx context.Context, file string, steps []string) (*sqlite, error) {
	if err := makeFile(file); err != nil {
		return nil, err
	}
	if err := notEmpty(file); err != nil {
		return nil, err
	}
	s := &sqlite{file: file, known: len(steps)}
	writing, err := connect(file, 0, "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, err
	}
	writing.SetMaxOpenConns(1)
	if s.writer, err = newSQLiteWriter(ctx, writing, steps); err == nil {
		s.readers, err = connect(file, sqliteWait, "query_only(1)")
	}
	if err == nil {
		s.readers.SetMaxOpenConns(sqliteReaders)
		s.readers.SetMaxIdleConns(sqliteReaders)
		s.getting, err = s.readers.PrepareContext(ctx, "SELECT version, ends, value FROM ken_item WHERE key = ?1 AND value IS NOT NULL AND (ends IS NULL OR ends > ?2)")
	}
	if err == nil {
		if s.info, err = os.Stat(file); err == nil {
			s.least.Store(s.info.Size())
		}
	}
	if err != nil {
		if s.writer == nil {
			writing.Close()
		} else {
			s.close()
		}
		return nil, sqliteError(err)
	}
	return s, nil
}

// makeFile creates a database without tables that only its owner can read, if
// the file does not exist. (SQLite would let everybody read it.) The file gets its
// name after it is closed, because closing it would drop this process's locks
// on it. It is never empty under its name, so an empty file is one that was
// truncated.
func makeFile(file string) error {
	dir := filepath.Dir(file)
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return cause(ErrUnavailable, err, "name a directory that can be written")
	}
	f, err := os.CreateTemp(dir, ".ken-new-*") // mode 0600
	if err != nil {
		return cause(ErrReadOnly, err, "name a directory that can be written, or make this one so")
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return cause(ErrFull, err, "make room on the disk")
	}
	if err := writeHeader(f.Name()); err != nil {
		return sqliteError(err)
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, os.ErrExist) {
		return cause(ErrUnavailable, err, "use a disk of this machine that has hard links")
	}
	return nil
}

// writeHeader turns an empty file into one of our databases.
func writeHeader(file string) error {
	db, err := connect(file, sqliteWait)
	if err != nil {
		return err
	}
	_, err = db.Exec(fmt.Sprintf("PRAGMA application_id = %d", sqliteID))
	return errors.Join(err, db.Close())
}

// notEmpty rejects an empty file: its contents are lost, and starting from
// scratch would repeat calls that it had recorded. Contents in the write-ahead
// log count.
func notEmpty(file string) error {
	info, err := os.Stat(file)
	if err != nil || info.Size() > 0 {
		return nil // SQLite reports the error
	}
	if beside, err := os.Stat(file + "-wal"); err == nil && beside.Size() > 0 {
		return nil
	}
	return cause(ErrDamaged, errors.New("the file is empty, so what Ken kept in it is lost"),
		"put a backup in its place; to begin without it, remove the file")
}

func connect(file string, wait time.Duration, pragmas ...string) (*sql.DB, error) {
	pragmas = append([]string{fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()), "trusted_schema(0)", "cell_size_check(1)"}, pragmas...)
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": pragmas, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"},
	}.Encode()}
	if filepath.VolumeName(file) != "" {
		u.Path = "/" + u.Path
	}
	c, err := driver.NewConnector(u.String())
	if err != nil {
		return nil, sqliteError(err)
	}
	return sql.OpenDB(c), nil
}

func (s *sqlite) snapshot(ctx context.Context, file string) (err error) {
	db, err := connect(s.file, sqliteWait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?1", file); err != nil {
		return sqliteError(err)
	}
	return nil
}

// there rejects writes to a file that lost its name or was truncated, because
// what is written there could not be found again.
func (s *sqlite) there() error {
	info, err := os.Stat(s.file)
	if err == nil && os.SameFile(info, s.info) {
		if least := s.least.Load(); info.Size() < least {
			return cause(ErrDamaged, fmt.Errorf("the file was cut off while it was open: it has %d bytes and had %d", info.Size(), least),
				"stop Ken, and put a backup in its place")
		}
		s.least.Store(info.Size()) // the file never shrinks by itself
		return nil
	}
	return cause(ErrUnavailable, errors.New("the file was removed or replaced while it was open"), "put it back, or start again")
}

func (s *sqlite) close() error {
	var errs []error
	if s.getting != nil {
		errs = append(errs, s.getting.Close())
	}
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	return errors.Join(append(errs, s.writer.close())...)
}

func (s *sqlite) get(ctx context.Context, key string) (Item, bool, error) {
	item := Item{Key: key}
	var ends sql.NullInt64
	// One row is read in microseconds; a context that could interrupt it
	// would cost a goroutine.
	err := s.getting.QueryRowContext(context.WithoutCancel(ctx), key, time.Now().UnixMicro()).Scan(&item.Version, &ends, &item.Value)
	if errors.Is(err, sql.ErrNoRows) {
		return Item{}, false, nil
	}
	item.Expires = expiry(ends)
	return item, err == nil, sqliteError(err)
}

func expiry(ends sql.NullInt64) time.Time {
	if !ends.Valid {
		return time.Time{}
	}
	return time.UnixMicro(ends.Int64)
}

func (s *sqlite) getAll(ctx context.Context, keys []string) (map[string]Item, error) {
	out := map[string]Item{}
	for _, key := range keys {
		item, there, err := s.get(ctx, key)
		if err != nil {
			return nil, err
		}
		if there {
			out[key] = item
		}
	}
	return out, nil
}

func (s *sqlite) page(ctx context.Context, from, before string, limit int) ([]Item, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT key, version, ends, value FROM ken_item
		WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL AND (ends IS NULL OR ends > ?3) ORDER BY key LIMIT ?4`, from, before, time.Now().UnixMicro(), limit)
	if err != nil {
		return nil, sqliteError(err)
	}
	defer rows.Close()
	var items []Item
	for size := 0; size < pageBytes && rows.Next(); {
		var item Item
		var ends sql.NullInt64
		if err := rows.Scan(&item.Key, &item.Version, &ends, &item.Value); err != nil {
			return nil, sqliteError(err)
		}
		item.Expires = expiry(ends)
		items = append(items, item)
		size += len(item.Value)
	}
	return items, sqliteError(rows.Err())
}

func (s *sqlite) head(ctx context.Context) (int64, error) {
	var head int64
	err := s.readers.QueryRowContext(ctx, "SELECT version FROM ken_head").Scan(&head)
	return head, sqliteError(err)
}

// changes asks in one statement, which sees one moment.
func (s *sqlite) changes(ctx context.Context, after mark, prefix string, limit int) (news, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT h.version, h.swept, i.key, i.version, i.ends, i.value, i.value IS NULL
		FROM ken_head AS h LEFT JOIN ken_item AS i INDEXED BY ken_item_version
		ON (i.version, i.key) > (?1, ?2) AND i.key >= ?3 AND i.key < ?4
		ORDER BY i.version, i.key LIMIT ?5`, after.version, after.key, prefix, past(prefix), limit)
	if err != nil {
		return news{}, sqliteError(err)
	}
	defer rows.Close()
	var n news
	now := time.Now()
	for size := 0; size < pageBytes && rows.Next(); {
		var c Change
		var key sql.NullString
		var version, ends sql.NullInt64
		var deleted bool
		if err := rows.Scan(&n.head, &n.swept, &key, &version, &ends, &c.Value, &deleted); err != nil {
			return news{}, sqliteError(err)
		}
		if !key.Valid {
			continue
		}
		n.add(Item{Key: key.String, Version: version.Int64, Expires: expiry(ends), Value: c.Value}, deleted, now)
		size += len(c.Value)
	}
	return n, sqliteError(rows.Err())
}

// add takes an item as it is stored.
func (n *news) add(item Item, deleted bool, now time.Time) {
	c := Change{Item: item}
	// The time of a deleted key may still lie ahead of now: the one who deleted
	// it has another clock, or looked at it later.
	if deleted || !c.Expires.IsZero() && !c.Expires.After(now) {
		c.Gone, c.Value, c.Expires = true, nil, time.Time{}
	}
	n.changes = append(n.changes, c)
}

// listen looks for writes: at the log beside the file, which changes with each of
// them. It asks for the store's version only if the log has changed, or changed so
// recently that another write may have left the same time. A file of another
// system may keep no such time, so it also asks now and then.
func (s *sqlite) listen(ctx context.Context, wake func([]string)) {
	tick := time.NewTicker(sqlitePoll)
	defer tick.Stop()
	var seen logState
	var asked time.Time
	for last := int64(-1); ; {
		if now := s.logState(); now == (logState{}) || now != seen || time.Since(asked) >= sqliteAsk {
			seen, asked = now, time.Now()
			if asked.Sub(time.Unix(0, now.changed)).Abs() < sqliteSettled {
				seen = logState{}
			}
			if head, err := s.head(ctx); err != nil || head != last {
				last = head
				wake(nil) // after an error too: watchers get it
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// logState is what the write-ahead log looks like from outside. The zero value
// means that there is none.
type logState struct{ size, changed int64 }

func (s *sqlite) logState() logState {
	info, err := os.Stat(s.file + "-wal")
	if err != nil {
		return logState{}
	}
	return logState{info.Size(), info.ModTime().UnixNano()}
}

// sqliteError returns an error of the driver with its kind.
func sqliteError(err error) error {
	var e *driver.Error
	switch {
	case err == nil || hasKind(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case err.Error() == "sql: database is closed" || err.Error() == "sql: statement is closed" || errors.Is(err, sql.ErrConnDone):
		return cause(ErrClosed, nil, "open it again")
	case !errors.As(err, &e):
		return err
	}
	switch e.Code() & 0xff {
	case 5, 6: // BUSY, LOCKED
		return cause(ErrBusy, err, "try again; if it lasts, look for a process that is stopped or holds a backup open")
	case 3, 8, 23: // PERM, READONLY, AUTH
		return cause(ErrReadOnly, err, "make the file and its directory writable for this user, or name another place")
	case 13: // FULL
		return cause(ErrFull, err, "make room on the disk, then try again")
	case 10: // IOERR
		return cause(ErrUnavailable, err, "look at the disk and at the system's log")
	case 14: // CANTOPEN
		return cause(ErrUnavailable, err, "look whether the directory is there and this user may write in it")
	case 11, 26: // CORRUPT, NOTADB
		return cause(ErrDamaged, err, "keep the file for a look, and put a backup in its place or start with an empty one")
	}
	return err
}
