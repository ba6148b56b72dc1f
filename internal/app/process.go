package app

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// thisProcess names this process among all that ever were on this machine.
var thisProcess = sync.OnceValue(func() string {
	pid := os.Getpid()
	began, _ := processBegan(pid)
	return strings.Join([]string{strconv.Itoa(pid), pidSpace(), began}, " ")
})

// pidSpace names the room in which pids count: where it cannot be told, none is
// like another.
func pidSpace() string {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host + "/" + space
}

// processDead reports that a process which thisProcess named is gone for
// certain. Of another machine, or another room of pids, nothing is certain.
func processDead(name string) bool {
	pid, rest, _ := strings.Cut(name, " ")
	space, began, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(pid)
	if err != nil || space == "" || space != pidSpace() || began == "" {
		return false
	}
	now, alive := processBegan(n)
	return !alive || now != began
}
