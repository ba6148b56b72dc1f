//go:build unix && !linux

package scripttest

import "github.com/rogpeppe/go-internal/testscript"

// tty runs ken on a terminal. Scripts that need one say so before.
func tty(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("cannot here: terminals are opened only on Linux")
}
