//go:build unix && !linux

package scripttest

import "github.com/rogpeppe/go-internal/testscript"

// CanMount says whether a script may have a disk of its own.
func CanMount() bool { return false }

func disk(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("disk: only on Linux") }

func fill(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("fill: only on Linux") }
