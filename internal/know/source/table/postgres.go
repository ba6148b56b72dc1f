package table

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// A postgres reads a table of a PostgreSQL server, in transactions that may
// only read.
type postgres struct {
	config *pgx.ConnConfig
	table  string

	mu sync.Mutex
	db *sql.DB
}

func newPostgres(p place) *postgres { return &postgres{config: p.postgres, table: p.table} }

func (p *postgres) open() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		p.db = stdlib.OpenDB(*p.config)
		p.db.SetMaxOpenConns(4)
		p.db.SetMaxIdleConns(1)
	}
	return p.db
}

func (p *postgres) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.db == nil {
		return nil
	}
	err := p.db.Close()
	p.db = nil
	return err
}

func (p *postgres) columns(ctx context.Context) ([]string, error) {
	rows, err := p.open().QueryContext(ctx, "SELECT * FROM "+p.table+" LIMIT 0")
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

// scan asks for rows as JSON, so that arrays, jsonb and every other type come
// in one form. The server keeps back what is too large.
func (p *postgres) scan(ctx context.Context, shape shape, which selection, f func(row) bool) error {
	cast := func(column string) string { return "t." + column + "::text" }
	query := fmt.Sprintf(`SELECT octet_length(j), CASE WHEN octet_length(j) <= %d THEN k ELSE left(k, 200) END, CASE WHEN octet_length(j) <= %[1]d THEN j END
		FROM (SELECT row_to_json(t)::text AS j, %s AS k FROM %s AS t) AS r`, maxRowBytes, shape.keyExpression(cast), p.table)
	var args []any
	if which.key != "" {
		query += " WHERE k = $1"
		args = append(args, which.key)
	}
	rows, err := p.open().QueryContext(ctx, query+fmt.Sprintf(" ORDER BY k LIMIT %d", which.limit), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var one row
		var k, text sql.NullString
		if err := rows.Scan(&one.size, &k, &text); err != nil {
			return err
		}
		one.key = k.String
		if text.Valid {
			if one.values, err = fields([]byte(text.String), shape.columns); err != nil {
				return err
			}
		}
		if !f(one) {
			return nil
		}
	}
	return rows.Err()
}

// fields takes a row apart that came as a JSON object, in the order of the
// columns.
func fields(object []byte, columns []string) ([]any, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("a row did not come as an object")
	}
	values := make([]any, len(columns))
	for i := range columns {
		if _, err := dec.Token(); err != nil { // the column's name; the order is the table's
			return nil, fmt.Errorf("a row did not come whole: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("a row did not come whole: %w", err)
		}
		values[i] = plain(raw)
	}
	return values, nil
}

// plain returns scalars as Go values and leaves lists and objects as JSON.
func plain(raw json.RawMessage) any {
	switch raw[0] {
	case '[', '{':
		return raw
	case 'n':
		return nil
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the decoder has just read it
		return s
	case 't', 'f':
		return raw[0] == 't'
	}
	n := json.Number(raw)
	if i, err := n.Int64(); err == nil {
		return i
	}
	if x, err := n.Float64(); err == nil {
		return x
	}
	return string(raw)
}

// state sums up which versions of which rows are visible. A plain table tells
// by its system columns; anything else, such as a view, by its content.
func (p *postgres) state(ctx context.Context) (string, error) {
	db := p.open()
	var kind sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT relkind::text FROM pg_class WHERE oid = to_regclass($1)", p.table).Scan(&kind); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	version := "row_to_json(t)::text"
	if kind.String == "r" {
		version = "t.ctid::text || ' ' || t.xmin::text"
	}
	var state string
	err := db.QueryRowContext(ctx, "SELECT count(*)::text || ' ' || COALESCE(sum(hashtextextended("+version+", 0)::numeric), 0)::text FROM "+p.table+" AS t").Scan(&state)
	return state, err
}
