package table

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

func TestSQLiteRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	must(t, os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o600))
	for _, tt := range []struct{ file, want string }{
		{filepath.Join(dir, "none.db"), "not there"},
		{dir, "not a regular file"},
		{text, "not a database"},
	} {
		_, err := bench{dsn: tt.file}.table(t, Config{}).Load(context.Background())
		if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "check the address") {
			t.Errorf("Load(%s) = %v, want %q", tt.file, err, tt.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("looking for a database made one")
	}
}

// TestSQLiteReplaced: a file put in the place of the database is noticed, and
// so is one that went away.
func TestSQLiteReplaced(t *testing.T) {
	b := newSQLiteBench(t)
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	b.exec(t, `INSERT INTO capabilities VALUES ('a', 'A.')`)
	tab := b.table(t, Config{})
	old := load(t, tab).Capabilities[0]

	other := bench{db: openSQLite(t, b.dsn+".new")}
	other.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	other.exec(t, `INSERT INTO capabilities VALUES ('b', 'B.')`)
	other.db.Close()
	must(t, os.Rename(b.dsn+".new", b.dsn))
	got, changed, err := tab.look(context.Background())
	if err != nil || !changed || ids(got) != "tool:b" {
		t.Errorf("look after the exchange = %q, %v, %v, want tool:b", ids(got), changed, err)
	}
	if _, err := tab.Detail(context.Background(), old); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Detail of the old row = %v, want not found", err)
	}
	must(t, os.Remove(b.dsn))
	if _, _, err := tab.look(context.Background()); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("look after the end = %v", err)
	}
}

// TestSQLiteWriteAheadLog: a database that a program is writing to can be read.
func TestSQLiteWriteAheadLog(t *testing.T) {
	b := newSQLiteBench(t)
	b.db.SetMaxOpenConns(1)
	b.exec(t, `PRAGMA journal_mode = WAL`)
	b.exec(t, `CREATE TABLE capabilities (name TEXT, description TEXT)`)
	tab := b.table(t, Config{})
	if got := load(t, tab); len(got.Capabilities) != 0 {
		t.Errorf("empty table = %q", ids(got))
	}
	b.exec(t, `INSERT INTO capabilities VALUES ('a', 'A.')`)
	got, changed, err := tab.look(context.Background())
	if err != nil || !changed || ids(got) != "tool:a" {
		t.Errorf("look = %q, %v, %v, want tool:a", ids(got), changed, err)
	}
}

// TestSQLiteEndlessView: a database can hold a query that never ends.
func TestSQLiteEndlessView(t *testing.T) {
	b := newSQLiteBench(t)
	b.exec(t, `CREATE VIEW capabilities AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'a' AS name, max(x) AS description FROM n`)
	_, err := b.table(t, Config{Timeout: 200 * time.Millisecond}).Load(context.Background())
	if capability.KindOf(err) != capability.Timeout {
		t.Errorf("Load = %v, want a timeout", err)
	}
}

func TestSQLiteTypes(t *testing.T) {
	b := newSQLiteBench(t)
	b.exec(t, `CREATE TABLE capabilities (id INTEGER PRIMARY KEY, name TEXT, description BLOB, available BOOLEAN, made DATETIME, tags TEXT)`)
	b.exec(t, `INSERT INTO capabilities VALUES (7, 'a', X'412E', 0, '2026-11-02 15:04:05', 'x, y'), (8, 'b', X'FF00', 1, NULL, ''), (9, 'c', 'C.', 1, NULL, '[]')`)
	tab := b.table(t, Config{})
	got := load(t, tab)
	if ids(got) != "7 9" || len(got.Problems) != 1 || got.Problems[0].Code != "bad-row" || got.Problems[0].Origin.Pointer != "8" {
		t.Fatalf("ids %q, problems %v, want 7 and 9, and 8 refused", ids(got), got.Problems)
	}
	c := got.Capabilities[0]
	if c.Description != "A." || c.Unavailable == "" || !strings.HasPrefix(c.Meta["made"], "2026-11-02") || len(c.Tags) != 2 {
		t.Errorf("row = %+v", c)
	}
	if _, err := tab.Detail(context.Background(), c); err != nil {
		t.Errorf("Detail of a row with a number for its id = %v", err)
	}
}
