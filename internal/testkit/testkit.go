// Package testkit holds what the tests of several packages share: when a test
// runs, what it needs, and how it waits. The packages below it are the kits of
// single contracts.
//
// A test runs in one of three commands. `make test` passes -short and has what
// a newcomer waits for: it needs Go and nothing else. `make ci` has the rest of
// what must hold before a change lands. `make nightly` has what takes long,
// what installs packages and what fetches programs of others.
package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for anything. It ends a test that hangs
// and judges nothing: no machine that works is slower.
const Patience = 5 * time.Minute

// NightlyEnv is set where tests that call [Nightly] run.
const NightlyEnv = "KEN_NIGHTLY"

// Wait returns as soon as is reports true, and ends the test after [Patience].
func Wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	if !Until(is) {
		t.Fatalf("waited %v in vain: %s", Patience, what)
	}
}

// Until is [Wait] where there is no test to end: it says whether is reported true.
func Until(is func() bool) bool {
	pause := time.Millisecond
	for end := time.Now().Add(Patience); !is(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// CI leaves the test for `make ci`, which is all but `go test -short`.
func CI(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("left for make ci: %s", why)
	}
}

// Nightly leaves the test for `make nightly`.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(NightlyEnv) == "" {
		t.Skipf("left for make nightly: %s", why)
	}
}

// Programs leaves a test that runs programs other than Go's for `make ci`, and
// skips it there when one of them is missing.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	CI(t, "needs "+strings.Join(names, ", "))
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s: make install has what is needed", name)
		}
	}
}

// PostgreSQL leaves a test that needs a real server for `make ci`, and returns the
// address of the one that runs there.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	CI(t, "needs a PostgreSQL server")
	server := os.Getenv("KEN_TEST_POSTGRES")
	if server == "" {
		t.Skip("there is no PostgreSQL server: make ci starts one, and KEN_TEST_POSTGRES names it")
	}
	return server
}
