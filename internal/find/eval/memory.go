package eval

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// ResidentMB returns the memory that this process holds, in millions of bytes,
// once the garbage is collected and returned. Where the system does not tell,
// it is what the Go runtime took, which is more.
func ResidentMB() Mean {
	debug.FreeOSMemory()
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(statm)); len(fields) > 1 {
			if pages, err := strconv.Atoi(fields[1]); err == nil {
				return Mean(float64(pages) * float64(os.Getpagesize()) / 1e6)
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Mean(float64(m.Sys) / 1e6)
}
