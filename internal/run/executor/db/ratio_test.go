//go:build unix

package db

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit/executortest"
)

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

// TestNotMuchSlower is the bar: 10,000 rows through the executor take at most
// twice the processor time that the driver alone takes, in the same run.
func TestNotMuchSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("soak: it measures processor time for some seconds")
	}
	var said []float64
	for range 3 {
		said = append(said, rounds(t, 15))
		if said[len(said)-1] <= 2 {
			t.Logf("%.2f of the driver's time", said)
			return
		}
	}
	t.Errorf("the executor takes %.2f of the driver's time, want at most 2", said)
}

// BenchmarkRows is the same as a number.
func BenchmarkRows(b *testing.B) {
	var ratio float64
	for b.Loop() {
		ratio = rounds(b, 15)
	}
	b.ReportMetric(ratio, "times-driver")
}
