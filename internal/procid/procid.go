// Package procid names processes so that another process can tell whether one
// still runs, even where its pid was given to another.
package procid

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// Self returns the name of this process. No other process of this machine ever
// has it.
func Self() string { return self() }

var self = sync.OnceValue(func() string {
	pid := os.Getpid()
	began, _ := Began(pid)
	return strings.Join([]string{strconv.Itoa(pid), pidSpace(), began}, " ")
})

// pidSpace names the namespace of pids, and "" where that is unknown.
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

// Dead reports whether the process that [Self] named is certain to be gone. It is
// false for a process of another machine or another namespace of pids.
func Dead(name string) bool {
	pid, rest, _ := strings.Cut(name, " ")
	space, began, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(pid)
	if err != nil || space == "" || space != pidSpace() || began == "" {
		return false
	}
	now, alive := Began(n)
	return !alive || now != began
}
