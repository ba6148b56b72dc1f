package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Bar is a number that an issue promised: one line of docs/bars.txt,
//
//	BenchmarkName metric <= value   # what it is
//
// where metric is a unit that the benchmark prints ("ns/op", "B/op", or one of
// b.ReportMetric) and the relation is <= or >=.
type Bar struct {
	Bench, Metric, Relation string
	Value                   float64
	What                    string
}

func parseBars(text string) ([]Bar, error) {
	var bars []Bar
	for n, line := range strings.Split(text, "\n") {
		rule, what, _ := strings.Cut(line, "#")
		f := strings.Fields(rule)
		if len(f) == 0 {
			continue
		}
		if len(f) != 4 || !strings.HasPrefix(f[0], "Benchmark") || f[2] != "<=" && f[2] != ">=" {
			return nil, fmt.Errorf("line %d: %q: write BenchmarkName metric <= value # what", n+1, line)
		}
		v, err := strconv.ParseFloat(f[3], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q is not a number", n+1, f[3])
		}
		bars = append(bars, Bar{f[0], f[1], f[2], v, strings.TrimSpace(what)})
	}
	return bars, nil
}

// A result is one benchmark with, per metric, the values of its runs.
type result struct {
	name    string
	metrics []string // in the order printed
	values  map[string][]float64
}

var (
	benchLine = regexp.MustCompile(`^(Benchmark\S*?)(?:-\d+)?\s+\d+\s+(.*)`)
	badLine   = regexp.MustCompile(`^(--- FAIL|FAIL|panic:)`)
)

// parseBench reads what `go test -bench` printed. It returns an error when a
// benchmark or a package failed: numbers beside a failure prove nothing.
func parseBench(r io.Reader) ([]*result, error) {
	var results []*result
	byName := map[string]*result{}
	var bad error
	in := bufio.NewScanner(r)
	for in.Scan() {
		if badLine.MatchString(in.Text()) && bad == nil {
			bad = fmt.Errorf("go test: %s", in.Text())
		}
		m := benchLine.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		res := byName[m[1]]
		if res == nil {
			res = &result{name: m[1], values: map[string][]float64{}}
			byName[m[1]] = res
			results = append(results, res)
		}
		f := strings.Fields(m[2])
		for i := 0; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %q: %w", in.Text(), err)
			}
			if res.values[f[i+1]] == nil {
				res.metrics = append(res.metrics, f[i+1])
			}
			res.values[f[i+1]] = append(res.values[f[i+1]], v)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	return results, bad
}

// bench prints the bars and whether they hold, then every benchmark's best
// run. It returns an error when a bar is missed or was not measured.
func bench(r io.Reader, barsFile string, w io.Writer) error {
	text, err := os.ReadFile(barsFile)
	if err != nil {
		return err
	}
	bars, err := parseBars(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", barsFile, err)
	}
	results, failure := parseBench(r)
	missed := writeBars(w, bars, results)
	writeResults(w, results)
	if failure != nil {
		return failure
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bars do not hold", missed, len(bars))
	}
	return nil
}

func writeBars(w io.Writer, bars []Bar, results []*result) (missed int) {
	fmt.Fprintln(w, "| bar | best | must be | holds | what |")
	fmt.Fprintln(w, "|---|---:|---:|---|---|")
	for _, b := range bars {
		best, holds := "", "NOT MEASURED"
		i := slices.IndexFunc(results, func(r *result) bool { return r.name == b.Bench })
		if i >= 0 && len(results[i].values[b.Metric]) > 0 {
			v := slices.Min(results[i].values[b.Metric])
			ok := v <= b.Value
			if b.Relation == ">=" {
				v = slices.Max(results[i].values[b.Metric])
				ok = v >= b.Value
			}
			best, holds = number(v), "MISS"
			if ok {
				holds = "ok"
			}
		}
		if holds != "ok" {
			missed++
		}
		fmt.Fprintf(w, "| %s %s | %s | %s %s | %s | %s |\n",
			strings.TrimPrefix(b.Bench, "Benchmark"), b.Metric, best, b.Relation, number(b.Value), holds, b.What)
	}
	return missed
}

func writeResults(w io.Writer, results []*result) {
	fmt.Fprintln(w, "\nEvery benchmark, the smallest value of its runs:")
	fmt.Fprintln(w, "\n```")
	for _, r := range results {
		fmt.Fprintf(w, "%-48s", strings.TrimPrefix(r.name, "Benchmark"))
		for _, m := range r.metrics {
			fmt.Fprintf(w, "  %s %s", number(slices.Min(r.values[m])), m)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "```")
}

// number prints a value without false precision.
func number(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
