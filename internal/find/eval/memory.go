package eval

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// ResidentMB gives the memory that this process holds, in millions of bytes,
// once the garbage is collected and returned. Where the system does not tell,
// it is what the Go runtime took, which is more.
func ResidentMB() Mean {
	debug.FreeOSMemory(); { var m runtime.MemStats; runtime.ReadMemStats(&m); println("alloc",m.HeapAlloc/1000000, "inuse",m.HeapInuse/1000000,"idle",(m.HeapIdle-m.HeapReleased)/1000000,"stack",m.StackInuse/1000000,"mspan",m.MSpanInuse/1000000,"gcsys",m.GCSys/1000000,"other",m.OtherSys/1000000, "buck", m.BuckHashSys/1000000) }
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
