package audit

import (
	"errors"
	"os"
	"syscall"
)

// A dataFile is synced without what no reader needs, its times: the length is
// made durable with the bytes.
type dataFile struct{ *os.File }

func newDataFile(f *os.File) dataFile { return dataFile{f} }

// Sync makes what was written durable.
func (f dataFile) Sync() error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
