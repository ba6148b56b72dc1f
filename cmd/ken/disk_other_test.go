//go:build unix && !linux

package main_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func canMount() bool { return false }

func disk(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("disk: only on Linux") }

func fill(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("fill: only on Linux") }

func smallDisk(*testing.T, string) func() { return nil }
