//go:build unix

package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ken/internal/cli"
	"ken/internal/run/sandbox"
	"ken/internal/testkit"
)

// BenchmarkInit sums what the program's packages take to be initialised: every
// start pays it, and the program is started often, by people, by hosts, and as the
// sandbox's helper. Each package counts with the least of many runs: nothing makes
// a package faster than it is, and anything on the machine makes it slower.
func BenchmarkInit(b *testing.B) {
	program := filepath.Join(b.TempDir(), "ken")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	var whole, helper []took
	for b.Loop() {
		for range 25 {
			whole = least(whole, initTrace(b, program, program, "version"))
			helper = least(helper, initTrace(b, program, "ken-sandbox-hold"))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(sum(whole).Seconds()*1000, "program-ms")
	b.ReportMetric(sum(helper).Seconds()*1000, "helper-ms")
}

// TestHelperInit: a helper of the sandbox does its work as soon as its own package
// is initialised.
func TestHelperInit(t *testing.T) {
	testkit.CI(t, "starts the program")
	if runtime.GOOS != "linux" {
		t.Skip("cannot here: only Linux has a helper")
	}
	list := initTrace(t, newKen(t).binary, "ken-sandbox-hold")
	for _, late := range []string{"ken/internal/config", "net/http"} {
		if slices.ContainsFunc(list, func(p took) bool { return p.name == late }) {
			t.Errorf("%s is initialised before the helper begins", late)
		}
	}
}

// took is a package and what its initialisation takes.
type took struct {
	name string
	time time.Duration
}

// least returns the packages of list, each with what it took there or in best,
// whichever is less.
func least(best, list []took) []took {
	for i, p := range list {
		if k := slices.IndexFunc(best, func(b took) bool { return b.name == p.name }); k >= 0 {
			list[i].time = min(p.time, best[k].time)
		}
	}
	return list
}

func sum(list []took) (d time.Duration) {
	for _, p := range list {
		d += p.time
	}
	return d
}

// initTrace runs the program and reads what its runtime tells.
func initTrace(t testing.TB, program string, args ...string) []took {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program)
	cmd.Args, cmd.Stderr = args, &stderr
	cmd.Env = []string{"GODEBUG=inittrace=1", "HOME=" + t.TempDir()}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, stderr.String())
	}
	var list []took
	for line := range strings.Lines(stderr.String()) {
		// init NAME @0.5 ms, 0.02 ms clock, 100 bytes, 3 allocs
		f := strings.Fields(line)
		if len(f) < 7 || f[0] != "init" || f[6] != "clock," {
			continue
		}
		ms, err := strconv.ParseFloat(f[4], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, took{f[1], time.Duration(ms * float64(time.Millisecond))})
	}
	if len(list) < 20 {
		t.Fatalf("%s told of %d packages:\n%s", args, len(list), stderr.String())
	}
	return list
}

// linked is why this test's binary holds all that the program does.
var linked = cli.Main

// BenchmarkConfined runs /bin/true fully confined, one call right after another,
// and plainly, by turns. The helper is this binary: the whole program, and the
// tests besides. It reports what confinement adds, by the medians.
func BenchmarkConfined(b *testing.B) {
	work, err := os.OpenRoot(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer work.Close()
	spec := sandbox.Spec{Path: "/bin/true", Args: []string{"true"}, Work: work, Require: sandbox.RequireFull}
	confined := func() error {
		_, err := sandbox.Run(context.Background(), spec)
		return err
	}
	plain := func() error { return exec.Command("/bin/true").Run() }
	if err := confined(); err != nil || linked == nil {
		b.Skipf("cannot here: %v", err)
	}
	const row = 20 // calls without a pause
	times := [2][]time.Duration{}
	for b.Loop() {
		for i, run := range []func() error{plain, confined} {
			for range row {
				start := time.Now()
				if err := run(); err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], time.Since(start))
			}
			time.Sleep(20 * time.Millisecond) // what a row leaves behind is not the next one's
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return list[len(list)/2].Seconds() * 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times[0]), "plain-ms")
	b.ReportMetric(median(times[1])-median(times[0]), "more-ms")
}
