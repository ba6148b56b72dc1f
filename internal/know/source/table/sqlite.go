package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// An sqlite reads a table of an SQLite file, which it opens for reading only.
type sqlite struct {
	file, table string

	mu    sync.Mutex
	db    *sql.DB
	info  os.FileInfo // of the file that is open
	watch *sql.Conn   // data_version compares only within one connection
	opens int         // how often a file was opened: another one is a change
}

func newSQLite(p place) *sqlite { return &sqlite{file: p.file, table: p.table} }

func (s *sqlite) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closeLocked()
}

func (s *sqlite) closeLocked() error {
	if s.db == nil {
		return nil
	}
	if s.watch != nil {
		_ = s.watch.Close() // the database goes next
	}
	err := s.db.Close()
	s.db, s.watch, s.info = nil, nil, nil
	return err
}

// open returns the database of the file that is there now; if the file was
// replaced, it opens the new one.
func (s *sqlite) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("the file is not there")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	if s.db != nil && os.SameFile(info, s.info) {
		return s.db, nil
	}
	if err := s.closeLocked(); err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: s.file, RawQuery: url.Values{
		"mode":    {"ro"},
		"_pragma": {"busy_timeout(5000)", "query_only(1)", "trusted_schema(0)", "cell_size_check(1)"},
	}.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(2)
	s.db, s.info, s.opens = db, info, s.opens+1
	return db, nil
}

func (s *sqlite) columns(ctx context.Context) ([]string, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+s.table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	return columns, rows.Err()
}

func (s *sqlite) scan(ctx context.Context, shape shape, which selection, f func(row) bool) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	cast := func(column string) string { return "CAST(" + column + " AS TEXT)" }
	sizes, picks := make([]string, len(shape.columns)), make([]string, len(shape.columns))
	for i, c := range shape.columns {
		sizes[i] = "IFNULL(LENGTH(CAST(" + quote(c) + " AS BLOB)), 0)"
		picks[i] = fmt.Sprintf("CASE WHEN ken_size <= %d THEN %s END", maxRowBytes, quote(c))
	}
	query := fmt.Sprintf("SELECT ken_size, CASE WHEN ken_size <= %d THEN ken_key ELSE SUBSTR(ken_key, 1, 200) END, %s FROM (SELECT *, %s AS ken_size, %s AS ken_key FROM %s)",
		maxRowBytes, strings.Join(picks, ", "), strings.Join(sizes, " + "), shape.keyExpression(cast), s.table)
	var args []any
	if which.key != "" {
		query += " WHERE ken_key = ?"
		args = append(args, which.key)
	}
	rows, err := db.QueryContext(ctx, query+fmt.Sprintf(" ORDER BY ken_key LIMIT %d", which.limit), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scanRow(rows, len(shape.columns))
		if err != nil {
			return err
		}
		if !f(one) {
			return nil
		}
	}
	return rows.Err()
}

func scanRow(rows *sql.Rows, n int) (row, error) {
	var size int64
	var key sql.NullString
	values := make([]any, n)
	into := []any{&size, &key}
	for i := range values {
		into = append(into, &values[i])
	}
	if err := rows.Scan(into...); err != nil {
		return row{}, err
	}
	one := row{key: key.String, size: size}
	if size > maxRowBytes {
		return one, nil
	}
	one.values = values
	for i, v := range values {
		switch v := v.(type) {
		case []byte:
			if utf8.Valid(v) {
				values[i] = string(v)
			} // otherwise it stays bytes, which the row is told for
		case string:
			if !utf8.ValidString(v) {
				values[i] = []byte(v)
			}
		case time.Time:
			values[i] = v.Format(time.RFC3339Nano)
		}
	}
	return one, nil
}

// state asks for the version that SQLite counts up whenever another connection
// commits.
func (s *sqlite) state(ctx context.Context) (string, error) {
	db, err := s.open()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch == nil {
		if s.watch, err = db.Conn(ctx); err != nil {
			return "", err
		}
	}
	var version int64
	if err := s.watch.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", s.opens, version), nil
}
