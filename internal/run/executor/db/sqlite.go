package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	lib "modernc.org/sqlite/lib"
)

// A sqlite is an SQLite file while one call runs.
type sqlite struct {
	file *sqliteFile
	stop func()

	// commits is asked before a change is committed; false means that it is too
	// late. Nil means that it never is.
	commits func() bool
}

func newSQLite(ctx context.Context, c Connection, write bool) (*sqlite, error) {
	f, err := openSQLite(c.Path, write)
	if err != nil {
		return nil, err
	}
	return &sqlite{file: f, stop: f.stopWith(ctx)}, nil
}

func (s *sqlite) close() {
	s.stop()
	s.file.close()
}

func (s *sqlite) query(ctx context.Context, sql string, values []any, into *sheet) error {
	return s.told(s.rows(ctx, sql, values, into))
}

// rows runs a statement. It stops when the sheet is full.
func (s *sqlite) rows(ctx context.Context, sql string, values []any, into *sheet) error {
	st, err := s.file.prepare(sql)
	if err != nil {
		return err
	}
	defer st.close()
	if err := st.bind(values); err != nil {
		return err
	}
	into.begin(st.columns())
	row := make([]any, st.n)
	for {
		more, err := st.step()
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		st.row(row, into.cell)
		if !into.add(row) {
			return nil
		}
	}
}

func (s *sqlite) explain(ctx context.Context, sql string, values []any, into *sheet) error {
	st, err := s.file.prepare("EXPLAIN QUERY PLAN " + sql)
	if err != nil {
		return s.told(err)
	}
	defer st.close()
	if len(values) > 0 { // a plan needs none
		if err := st.bind(values); err != nil {
			return err
		}
	}
	into.begin([]string{"plan"})
	depth := map[int64]int{}
	row := make([]any, st.n)
	for {
		more, err := st.step()
		if err != nil || !more {
			return err
		}
		st.row(row, longestWord)
		id, parent, detail := asInt(row[0]), asInt(row[1]), fmt.Sprint(row[len(row)-1])
		depth[id] = depth[parent] + 1
		if !into.add([]any{strings.Repeat("  ", depth[id]-1) + detail}) {
			return nil
		}
	}
}

func asInt(v any) int64 {
	n, _ := v.(int64) // zero where it is something else
	return n
}

// execute runs a statement that may change something: all of it, or nothing.
func (s *sqlite) execute(ctx context.Context, sql string, values []any, into *sheet) (int64, error) {
	if err := s.file.transaction("BEGIN IMMEDIATE"); err != nil {
		return 0, s.told(err)
	}
	before := lib.Xsqlite3_total_changes64(s.file.tls, s.file.db)
	err := s.rows(ctx, sql, values, into)
	changed := lib.Xsqlite3_total_changes64(s.file.tls, s.file.db) - before
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && s.commits != nil && !s.commits() {
		err = context.Canceled
	}
	if err == nil {
		err = s.file.transaction("COMMIT")
	}
	if err != nil {
		_ = s.file.transaction("ROLLBACK") // closing the file does the same
		return 0, s.told(err)
	}
	return int64(changed), nil
}

// told marks what SQLite refused as such, and says how long values may be.
func (s *sqlite) told(err error) error {
	if e, ok := errors.AsType[*sqliteError](err); ok && e.code == lib.SQLITE_TOOBIG {
		return fmt.Errorf("%s: a value in this statement may have at most %d bytes. Read fewer columns, or parts of them with substr", e.text, s.file.longest)
	}
	if e, ok := errors.AsType[*sqliteError](err); ok && e.code == lib.SQLITE_NOMEM {
		return &memoryError{}
	}
	if e, ok := errors.AsType[*sqliteError](err); ok && (e.code == lib.SQLITE_AUTH || e.code == lib.SQLITE_READONLY) {
		return &readOnlyError{"the database refused it: " + e.text}
	}
	return err
}

// mostCounted is up to where rows are counted for a description.
const mostCounted = 10_000

func (s *sqlite) inspect(ctx context.Context, table string) (outline, error) {
	o := outline{engine: "SQLite"}
	find, args := "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND substr(name, 1, 7) <> 'sqlite_' AND type <> 'shadow'", []any(nil)
	if table != "" {
		find, args = find+" AND name = ? COLLATE NOCASE", []any{table}
	}
	list, err := s.texts(ctx, find+" ORDER BY name", args...)
	if err != nil {
		return o, err
	}
	for i, one := range list {
		t := tableOutline{name: one[0], kind: one[1]}
		if i < mostDescribed {
			if err := s.describe(ctx, &t, table != ""); err != nil {
				if ctx.Err() != nil {
					return o, err
				}
				t.comment = "it cannot be described: " + err.Error()
			}
		}
		o.tables = append(o.tables, t)
	}
	return o, nil
}

// describe fills in what is known of a table.
func (s *sqlite) describe(ctx context.Context, t *tableOutline, whole bool) error {
	columns, err := s.texts(ctx, `SELECT name, type, "notnull", ifnull(dflt_value, ''), pk, hidden FROM pragma_table_xinfo(?)`, t.name)
	if err != nil {
		return err
	}
	foreign, err := s.texts(ctx, `SELECT "from", "table", ifnull("to", '') FROM pragma_foreign_key_list(?)`, t.name)
	if err != nil {
		return err
	}
	indexes, err := s.texts(ctx, `SELECT l.name, l."unique", l.origin, ifnull((SELECT group_concat(ifnull(i.name, '(expression)'), ', ') FROM pragma_index_info(l.name) AS i), '') FROM pragma_index_list(?) AS l`, t.name)
	if err != nil {
		return err
	}
	for _, c := range columns {
		if c[5] == "1" { // of a virtual table, and not for everybody
			continue
		}
		out := columnOutline{name: c[0], kind: strings.ToLower(c[1]), fallback: c[3], key: c[4] != "0", required: c[2] == "1"}
		for _, f := range foreign {
			if strings.EqualFold(f[0], c[0]) {
				out.to = strings.TrimSuffix(f[1]+"."+f[2], ".")
			}
		}
		for _, x := range indexes {
			out.unique = out.unique || x[1] == "1" && x[2] != "pk" && strings.EqualFold(x[3], c[0])
		}
		t.columns = append(t.columns, out)
	}
	for _, x := range indexes {
		if x[2] == "c" || x[2] == "u" && strings.Contains(x[3], ",") {
			t.indexes = append(t.indexes, indexOutline{name: x[0], columns: x[3], unique: x[1] == "1"})
		}
	}
	if t.kind == "table" {
		n, err := s.texts(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", quoted(t.name), mostCounted+1))
		if err != nil {
			return err
		}
		switch n[0][0] {
		case "1":
			t.rows = "1 row"
		case fmt.Sprint(mostCounted + 1):
			t.rows = fmt.Sprintf("more than %d rows", mostCounted)
		default:
			t.rows = n[0][0] + " rows"
		}
	}
	if whole {
		text, err := s.texts(ctx, "SELECT ifnull(sql, '') FROM sqlite_schema WHERE name = ? AND type IN ('table', 'view')", t.name)
		if err == nil && len(text) == 1 {
			t.definition = text[0][0]
		}
	}
	return nil
}

// texts returns the rows of a query of Ken's own.
func (s *sqlite) texts(ctx context.Context, sql string, values ...any) ([][]string, error) {
	st, err := s.file.prepare(sql)
	if err != nil {
		return nil, err
	}
	defer st.close()
	if err := st.bind(values); err != nil {
		return nil, err
	}
	var out [][]string
	row := make([]any, st.n)
	for len(out) < mostListed {
		more, err := st.step()
		if err != nil || !more {
			return out, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st.row(row, longestWord)
		line := make([]string, len(row))
		for i, v := range row {
			cut := 0
			line[i] = plainText(v, longestWord, &cut)
		}
		out = append(out, line)
	}
	return out, nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
