package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const benchOutput = `goos: linux
pkg: ken/internal/know/source
BenchmarkLoad-2            	       3	 400000000 ns/op	        90.00 MB-peak	 5 B/op	 1 allocs/op
BenchmarkLoad-2            	       3	 300000000 ns/op	       110.00 MB-peak	 5 B/op	 1 allocs/op
BenchmarkFind/hot-path-2   	 1000000	       850.5 ns/op	        99.50 recall
PASS
ok  	ken/internal/know/source	12.1s
`

func TestBench(t *testing.T) {
	tests := []struct {
		name, bars, output string
		row                string // a line the table must hold
		err                string
	}{
		{"holds", "BenchmarkLoad ns/op <= 300e6 # from scratch", benchOutput,
			"| Load ns/op | 300000000 | <= 300000000 | ok | from scratch |", ""},
		{"at least", "BenchmarkFind/hot-path recall >= 99", benchOutput,
			"| Find/hot-path recall | 99.5 | >= 99 | ok |  |", ""},
		{"the best run counts", "BenchmarkLoad MB-peak <= 100", benchOutput,
			"| Load MB-peak | 90 | <= 100 | ok |  |", ""},
		{"missed", "BenchmarkLoad ns/op <= 299e6", benchOutput,
			"| Load ns/op | 300000000 | <= 299000000 | MISS |  |", "1 of 1 bars"},
		{"no such benchmark", "BenchmarkGone ns/op <= 1", benchOutput,
			"| Gone ns/op |  | <= 1 | NOT MEASURED |  |", "1 of 1 bars"},
		{"no such metric", "BenchmarkLoad cpu-ms <= 1", benchOutput,
			"| Load cpu-ms |  | <= 1 | NOT MEASURED |  |", "1 of 1 bars"},
		{"no bars yet", "# none\n\n", benchOutput, "| bar | best | must be | holds | what |", ""},
		{"a failing package", "", benchOutput + "FAIL\tken/internal/x\n",
			"| bar | best | must be | holds | what |", "go test: FAIL"},
		{"unreadable bar", "BenchmarkLoad ns/op < 3", benchOutput, "", "line 1"},
		{"not a number", "\nBenchmarkLoad ns/op <= fast", benchOutput, "", "line 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bars.txt")
			if err := os.WriteFile(file, []byte(tt.bars), 0o644); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := bench(strings.NewReader(tt.output), file, &out)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("bench(%q) error = %v, want %q", tt.bars, err, tt.err)
			}
			if tt.row != "" && !strings.Contains(out.String(), tt.row+"\n") {
				t.Errorf("bench(%q) printed\n%s\nwant the line %q", tt.bars, out.String(), tt.row)
			}
		})
	}
}

func TestReplaceSection(t *testing.T) {
	const doc = "top\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nmiddle\n<!-- soak:begin -->\n<!-- soak:end -->\n"
	got, err := replaceSection(doc, "bench", "\nnew\n\n")
	want := "top\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nmiddle\n<!-- soak:begin -->\n<!-- soak:end -->\n"
	if err != nil || got != want {
		t.Errorf("replaceSection(bench) = %q, %v, want %q", got, err, want)
	}
	if _, err := replaceSection(doc, "load", "x"); err == nil {
		t.Error("replaceSection of a section that is not there: no error")
	}
}

// TestBarsFile keeps docs/bars.txt readable, so that make bench cannot stop
// on it after the minutes of measuring.
func TestBarsFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/bars.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseBars(string(text)); err != nil {
		t.Errorf("docs/bars.txt: %v", err)
	}
}
