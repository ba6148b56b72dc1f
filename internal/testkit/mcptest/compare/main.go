// Compare measures Ken beside other gateways and writes a page about it.
//
//	compare [-npm FOLDER] [-gateways LINES] [-rounds N] PAGE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"ken/internal/testkit/mcptest"
)

func main() {
	how := mcptest.Comparison{}
	flag.StringVar(&how.NPM, "npm", "", "`folder` with the packages of testdata/compare installed")
	flag.StringVar(&how.Gateways, "gateways", "", "other gateways: NAME=COMMAND on each line, with the command of the server in $SITE")
	flag.IntVar(&how.Rounds, "rounds", 10, "rounds of calls")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	how.Page = flag.Arg(0)
	r := &run{}
	mcptest.Compare(r, how)
	r.end()
}

// A run is a [mcptest.TB] without a test.
type run struct{ cleanups []func() }

func (r *run) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	mcptest.End()
}

func (r *run) Helper()                    {}
func (r *run) Context() context.Context   { return context.Background() }
func (r *run) Cleanup(f func())           { r.cleanups = append(r.cleanups, f) }
func (r *run) Logf(f string, args ...any) { fmt.Fprintf(os.Stderr, f+"\n", args...) }

func (r *run) Errorf(f string, args ...any) { r.Logf(f, args...) }

func (r *run) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *run) Fatalf(f string, args ...any) {
	r.Logf("compare: "+f, args...)
	r.end()
	os.Exit(1)
}

func (r *run) TempDir() string {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
