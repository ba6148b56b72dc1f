//go:build fit

// Command fit makes what ranking knows by numbers, out of the measured sets that
// KEN_BENCH names. training/README.md says what comes before it.
//
//	go run -tags fit ./scripts/fit -students FOLDER -readers FOLDER weights
//	go run -tags fit ./scripts/fit -students FOLDER -readers FOLDER leftout
//	go run -tags fit ./scripts/fit cases FOLDER
//
// weights writes internal/find/ranking/weights.go, leftout prints how well each
// set is answered by weights that never saw it, and cases writes what
// training/gate.py reads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"ken/internal/find/ranking"
	"ken/internal/know/reader"
)

func main() {
	f := ranking.Fitting{Bench: os.Getenv("KEN_BENCH"), Package: filepath.Join("internal", "find", "ranking")}
	flag.StringVar(&f.Students, "students", "", "`folder` of the models fold0.bin to fold3.bin, each trained without the sets of its fold, and full.bin")
	flag.StringVar(&f.Readers, "readers", "", "`folder` of vectors-fold0.i8 to vectors-fold3.i8 and vectors-full.i8, which training/reader.py writes")
	flag.Parse()
	if err := run(&f, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(f *ranking.Fitting, args []string) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			panic(p)
		case error:
			err = p
		default:
			panic(p)
		}
	}()
	switch {
	case len(args) == 1 && args[0] == "weights":
		f.Weights()
	case len(args) == 1 && args[0] == "leftout":
		f.LeftOut()
	case len(args) == 2 && args[0] == "cases":
		if !reader.Supported() {
			return errors.New("the second reader has no kernels for this processor")
		}
		f.Cases(args[1], func(text string) []float32 { return reader.Builtin().Append(nil, text) })
	default:
		return errors.New("name one of weights, leftout, or cases FOLDER")
	}
	return nil
}
