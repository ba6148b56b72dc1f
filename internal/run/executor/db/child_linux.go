package db

import "golang.org/x/sys/unix"

// self is this program, also after the file was replaced.
func self() string { return "/proc/self/exe" }

// limitMemory bounds what this process can map and write to. Where that fails,
// the time of the call is still a bound.
func limitMemory(most uint64) {
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
