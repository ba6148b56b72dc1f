package shim

import "strconv"

// Running returns the process of the daemon that runs, or "unknown" if it does not
// answer.
func Running(p Place) string {
	g, err := Ask(p)
	if err != nil || g.PID <= 0 {
		return "unknown"
	}
	return strconv.Itoa(g.PID)
}
