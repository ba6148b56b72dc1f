package db

import (
	"database/sql"
	"testing"

	"ken/internal/testkit/executortest"
)

const tenThousand = "SELECT id, name, price, made FROM items"

func items(tb testing.TB) string {
	return shop(tb, "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, made TEXT)",
		"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 10000) INSERT INTO items SELECT x, 'item number ' || x, x * 1.25, '2026-11-16T10:00:00Z' FROM t")
}

// BenchmarkDriver reads 10,000 rows with the driver alone, BenchmarkRunner the
// same rows through the executor. BenchmarkRows compares them.
func BenchmarkDriver(b *testing.B) {
	path := items(b)
	for b.Loop() {
		if n, err := throughDriver(path); err != nil || n != 10_000 {
			b.Fatal(n, err)
		}
	}
}

func throughDriver(path string) (int, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	rows, err := db.Query(tenThousand)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var id, name, price, made any
		if err := rows.Scan(&id, &name, &price, &made); err != nil {
			return 0, err
		}
		n++
	}
	return n, rows.Err()
}

func BenchmarkRunner(b *testing.B) {
	path := items(b)
	e := rig(b, []Connection{{Name: "shop", Engine: SQLite, Path: path, Rows: 10_000, Bytes: 16 << 20}})
	for _, format := range []string{formatJSON, formatMarkdown, formatCSV} {
		b.Run(format, func(b *testing.B) {
			call := executortest.Call("tool:db_shop_query", object{"sql": tenThousand, "format": format})
			for b.Loop() {
				r, err := e.Invoke(b.Context(), call)
				if err != nil || r.Meta["rows"] != "10000" {
					b.Fatal(r.Meta, err)
				}
			}
		})
	}
}

// BenchmarkSmall reads one row: it shows what the process of a call costs.
func BenchmarkSmall(b *testing.B) {
	e := rig(b, []Connection{{Name: "shop", Engine: SQLite, Path: items(b)}})
	call := executortest.Call("tool:db_shop_query", object{"sql": "SELECT id FROM items LIMIT 1"})
	for b.Loop() {
		if _, err := e.Invoke(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
