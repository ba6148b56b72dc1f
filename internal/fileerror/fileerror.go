// Package fileerror says what to do about errors of writing files.
package fileerror

import (
	"errors"
	"io/fs"
	"os"

	"ken/capability"
)

// Write adds the file and what to do to an error of writing a person's own
// file: the system refused it, or its content must be fixed first.
func Write(file string, err error) error {
	if _, known := errors.AsType[*capability.Error](err); known || err == nil {
		return err
	}
	fix := "fix the file, then try again"
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	if path || link {
		fix = "make room on the disk, or make the file and its folder writable, then try again"
	}
	return &capability.Error{Kind: capability.Unavailable, Op: "write", Target: file, Err: err, Fix: fix}
}
