//go:build !linux

package procid

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Began returns what tells a process from others that had its pid: the second in
// which it began, as ps prints it, or "" without ps. alive is false if no process
// has the pid.
func Began(pid int) (began string, alive bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return "", false
	}
	defer p.Release()
	if err := p.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		return "", false
	}
	cmd := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=/bin:/usr/bin"}
	text, _ := cmd.Output()
	return strings.TrimSpace(string(text)), true
}
