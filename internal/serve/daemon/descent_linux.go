package daemon

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// NotOwn refuses processes that this one started, and what they started: a
// server behind Ken must not be a client before it, and answer its own
// questions. It is a [Config.Refuse]. A process that has shaken off its parents
// is not known any more.
func NotOwn(pid int) error {
	const most = 256 // generations
	for at, n := pid, 0; at > 1 && n < most; n++ {
		if at == os.Getpid() {
			return fmt.Errorf("process %d was started by this daemon", pid)
		}
		next, err := parent(at)
		if err != nil {
			return fmt.Errorf("process %d cannot be looked at: %w", pid, err)
		}
		at = next
	}
	return nil
}

// parent reads it from the words behind the name, which may have anything in it.
func parent(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(words) < 2 {
		return 0, fmt.Errorf("read the parent of process %d: there is none", pid)
	}
	return strconv.Atoi(string(words[1]))
}
