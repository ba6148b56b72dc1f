//go:build unix

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalSession names the session of this terminal: what a person agreed to
// in it holds until it is closed. KEN_SESSION sets another.
func terminalSession() string {
	if name := os.Getenv("KEN_SESSION"); name != "" {
		return name
	}
	leader, err := unix.Getsid(0)
	if err != nil {
		leader = os.Getppid()
	}
	// A number is used again; with the time at which its process began, and
	// the boot that counts from, it is not.
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", leader, began(leader), boot))
	return "terminal-" + hex.EncodeToString(sum[:6])
}

// began returns when a process began, as the system counts it, or "".
func began(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may hold anything
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields[19]
	}
	return ""
}
