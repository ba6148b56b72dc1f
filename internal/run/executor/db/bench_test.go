//go:build unix

package db

import (
	"database/sql"
	"slices"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit/executortest"
)

const tenThousand = "SELECT id, name, price, made FROM items"

func items(tb testing.TB) string {
	return shop(tb, "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, made TEXT)",
		"WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 10000) INSERT INTO items SELECT x, 'item number ' || x, x * 1.25, '2026-11-16T10:00:00Z' FROM t")
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

// rounds returns how much more processor time 10,000 rows take through the executor
// than with the driver alone, the child's part included: the median of n rounds. The
// two take turns, so that what else the machine does falls on both.
func rounds(tb testing.TB, n int) float64 {
	path := items(tb)
	e := rig(tb, []Connection{{Name: "shop", Engine: SQLite, Path: path, Rows: 10_000, Bytes: 16 << 20}})
	call := executortest.Call("tool:db_shop_query", object{"sql": tenThousand, "format": formatJSON})
	ours := func() {
		if r, err := e.Invoke(tb.Context(), call); err != nil || r.Meta["rows"] != "10000" {
			tb.Fatal(r.Meta, err)
		}
	}
	alone := func() {
		if n, err := throughDriver(path); err != nil || n != 10_000 {
			tb.Fatal(n, err)
		}
	}
	ours()
	alone()
	var ratios []float64
	for range n {
		ratios = append(ratios, float64(cpu(tb, ours))/float64(cpu(tb, alone)))
	}
	slices.Sort(ratios)
	return ratios[n/2]
}

// cpu returns the processor time that f takes, its children's included.
func cpu(tb testing.TB, f func()) time.Duration {
	now := func() (sum time.Duration) {
		for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
			var u syscall.Rusage
			if err := syscall.Getrusage(who, &u); err != nil {
				tb.Skip("cannot here: this system does not tell processor time")
			}
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		return sum
	}
	begun := now()
	f()
	return now() - begun
}

// BenchmarkRows reads 10,000 rows through the executor and with the driver alone.
func BenchmarkRows(b *testing.B) {
	var ratio float64
	for b.Loop() {
		ratio = rounds(b, 15)
	}
	b.ReportMetric(ratio, "times-driver")
}
