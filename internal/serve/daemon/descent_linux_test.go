package daemon

import (
	"os"
	"os/exec"
	"testing"

	"ken/internal/testkit"
)

// TestNotOwn: a process, its children and theirs are refused; others are not.
func TestNotOwn(t *testing.T) {
	if err := NotOwn(os.Getpid()); err == nil {
		t.Error("the daemon itself is let in")
	}
	testkit.Equal(t, "NotOwn(parent)", NotOwn(os.Getppid()), nil)
	cmd := exec.Command("sh", "-c", "sleep 60 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	n, _ := out.Read(line)
	grandchild := 0
	for _, c := range line[:n] {
		if c >= '0' && c <= '9' {
			grandchild = grandchild*10 + int(c-'0')
		}
	}
	defer func() {
		if p, err := os.FindProcess(grandchild); err == nil {
			_ = p.Kill()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for _, pid := range []int{cmd.Process.Pid, grandchild} {
		if err := NotOwn(pid); err == nil {
			t.Errorf("process %d, which this one started, is let in", pid)
		}
	}
	if err := NotOwn(1 << 30); err == nil {
		t.Error("a process that is not there is let in")
	}
}
