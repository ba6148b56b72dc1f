package procid

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// TestDead: a process that ended is dead, whoever has its pid now; one
// that runs, and one of which nothing can be known, is not.
func TestDead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cannot here: only Linux tells processes apart so")
	}
	if Dead(Self()) {
		t.Error("this process counts as dead")
	}
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(Self(), " ", 3)
	dead := strings.Join([]string{strconv.Itoa(cmd.Process.Pid), parts[1], parts[2]}, " ")
	if !Dead(dead) {
		t.Errorf("%q does not count as dead", dead)
	}
	if !Dead(strings.Join([]string{parts[0], parts[1], "before"}, " ")) {
		t.Error("another process with our pid does not count as dead")
	}
	for _, name := range []string{"", "x", "1", parts[0] + " elsewhere " + parts[2], parts[0] + " " + parts[1], strconv.Itoa(cmd.Process.Pid) + "  x"} {
		if Dead(name) {
			t.Errorf("%q counts as dead, and nobody can know", name)
		}
	}
}
