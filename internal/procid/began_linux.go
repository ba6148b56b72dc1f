package procid

import (
	"os"
	"strconv"
	"strings"
)

// Began returns what tells a process from every other that ever had its pid: the
// boot, and the moment after it at which the process began. alive is false if no
// process has the pid.
func Began(pid int) (began string, alive bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	// The name, in parentheses, may hold anything; what follows it may not.
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	fields := strings.Fields(rest)
	const state, began22 = 0, 19 // of the fields after the name
	if len(fields) <= began22 || fields[state] == "Z" || fields[state] == "X" {
		return "", false
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // the moment alone must do
	return strings.TrimSpace(string(boot)) + "+" + fields[began22], true
}
