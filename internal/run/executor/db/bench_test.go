package db

import (
	"database/sql"
	"fmt"
	"testing"

	"ken/internal/run/executor/executortest"
)

const tenThousand = "SELECT id, name, price, made FROM items"

func items(tb testing.TB) string {
	return shop(tb, "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, made TEXT)",
		"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 10000) INSERT INTO items SELECT x, 'item number ' || x, x * 1.25, '2026-11-16T10:00:00Z' FROM t")
}

// BenchmarkDriver reads 10,000 rows with the driver alone, BenchmarkRunner the
// same rows through the executor. The second may take twice as long as the first.
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

// TestNotMuchSlower is the bar: 10,000 rows through the executor take at most
// twice what the driver alone takes, in the same run.
func TestNotMuchSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("soak: it measures")
	}
	path := items(t)
	e := rig(t, []Connection{{Name: "shop", Engine: SQLite, Path: path, Rows: 10_000, Bytes: 16 << 20}})
	call := executortest.Call("tool:db_shop_query", object{"sql": tenThousand, "format": formatJSON})
	var said []string
	for range 3 { // the machine may be busy once
		driver := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if _, err := throughDriver(path); err != nil {
					b.Fatal(err)
				}
			}
		})
		runner := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Invoke(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
		ratio := float64(runner.NsPerOp()) / float64(driver.NsPerOp())
		said = append(said, fmt.Sprintf("%.2f", ratio))
		if ratio <= 2 {
			t.Logf("%.2f of the driver's time", ratio)
			return
		}
	}
	t.Errorf("the executor takes %v of the driver's time, want at most 2", said)
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
