//go:build linux

package sandbox

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkSpawn starts /bin/true plainly and under each profile, by turns in
// one loop, so that whatever else the machine does meets all of them alike.
// It reports the median of each, and what confinement adds to a plain exec:
// with a helper kept ready, as between calls, and cold, as for the second of
// two calls at once. Spares are made between the measured runs, not in them.
func BenchmarkSpawn(b *testing.B) {
	work, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer work.Close()
	confined := func(p Profile) func() error {
		return func() error {
			_, err := runIn(context.Background(), p, Spec{
				Path: "/bin/true", Args: []string{"true"}, Work: work, Require: BestEffort})
			return err
		}
	}
	kinds := []struct {
		name string
		run  func() error
		cold bool
		took []time.Duration
	}{
		{name: "plain", run: func() error { return exec.Command("/bin/true").Run() }},
		{name: "full", run: confined(Full)},
		{name: "full-cold", run: confined(Full), cold: true},
		{name: "landlock", run: confined(Landlock)},
		{name: "landlock-cold", run: confined(Landlock), cold: true},
		{name: "none", run: confined(None)},
	}
	for b.Loop() {
		for i := range kinds {
			for _, p := range profiles {
				spares.refill(p)
				if kinds[i].cold {
					spares.take(p).dismiss()
				}
			}
			time.Sleep(10 * time.Millisecond) // let it come up
			start := time.Now()
			if err := kinds[i].run(); err != nil {
				b.Fatalf("%s: %v", kinds[i].name, err)
			}
			kinds[i].took = append(kinds[i].took, time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	var plain float64
	for i, k := range kinds {
		slices.Sort(k.took)
		ms := k.took[len(k.took)/2].Seconds() * 1000
		if i == 0 {
			plain = ms
		} else {
			b.ReportMetric(ms-plain, k.name+"-more-ms")
		}
		b.ReportMetric(ms, k.name+"-ms")
	}
}
