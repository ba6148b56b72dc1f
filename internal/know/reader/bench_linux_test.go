package reader

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkEncode reads messages of 15 and 35 tokens and a description of 107. It
// reports the time of the processor: that of the clock depends on what else the
// machine does.
func BenchmarkEncode(b *testing.B) {
	message := "send an email to the team about the release that we did today"
	long := message + ", attach the list of changes as a table, and ask everyone to reply with comments before Friday noon"
	document := "gmail send message. " + strings.Repeat("Sends an e-mail message to recipients with options. ", 8)
	for _, m := range supported(b) {
		for name, text := range map[string]string{"message": message, "long": long, "document": document} {
			b.Run(m.Kernels()+"/"+name, func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				dst := m.Append(nil, text)
				before := cpuTime(b)
				for b.Loop() {
					dst = m.Append(dst[:0], text)
				}
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

func cpuTime(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
