package sandbox

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// diskUsed sums what a directory holds, without following links or opening
// anything but directories. Each entry counts for half a KiB at least, so that
// empty files are not free. It stops early once it is past stop.
func diskUsed(ctx context.Context, root *os.Root, stop int64) int64 {
	var sum int64
	fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away, or is not ours to see
		}
		if info, err := d.Info(); err == nil {
			sum += max(diskSize(info), 512)
		}
		if sum > stop || ctx.Err() != nil {
			return fs.SkipAll
		}
		return nil
	})
	return sum
}

// watchDisk calls over once when the directory holds more than limit. Looking
// takes at most about a tenth of its time.
func watchDisk(ctx context.Context, root *os.Root, limit int64, over func()) {
	const least = 20 * time.Millisecond
	pause := least
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		if diskUsed(ctx, root, limit) > limit {
			over()
			return
		}
		pause = max(least, 10*time.Since(start))
	}
}
