//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ken/internal/run/sandbox/confine"
	"ken/internal/testkit"
)

// TestNest gets a helper from a nest, whose child it is not but ours, and goes
// on without one that died.
func TestNest(t *testing.T) {
	var n nest
	ours, theirs, err := controlPair()
	must(t, err)
	defer theirs.Close()
	if p, err := n.hatch(confine.Namespaces, theirs); p != nil || err != nil {
		t.Errorf("a nest that is not built gave %v, %v", p, err)
	}
	n.build()
	p, err := n.hatch(confine.Namespaces, theirs)
	if p == nil {
		t.Fatalf("the nest gave no helper: %v", err)
	}
	h := &helper{p, ours}
	if got := parent(t, p.Pid); got != os.Getpid() {
		t.Errorf("the helper's parent is %d, want us, %d", got, os.Getpid())
	}
	// A process has no command line for a moment of its start: execve closes the pipe
	// on which StartProcess waits before it writes the arguments of the new program.
	testkit.Wait(t, "the helper is ken-sandbox", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		return err != nil || string(name) == "ken-sandbox\x00"
	})
	h.dismiss()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.Pid)); err == nil {
		t.Error("a dismissed helper is still there")
	}

	n.process.Kill()
	if p, err := n.hatch(confine.Namespaces, theirs); p != nil || n.control != nil || !scarce(err) {
		t.Errorf("a dead nest gave %v, %v, want an error that the next try may not have", p, err)
	}
	n.build()
	if n.control == nil {
		t.Fatal("a dead nest was not built again")
	}
	n.abandon()
}

// parent returns the parent of a process.
func parent(t *testing.T, pid int) (ppid int) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	var state string
	if _, err := fmt.Sscan(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), &state, &ppid); err != nil {
		t.Fatal(err)
	}
	return ppid
}
