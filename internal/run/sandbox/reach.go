package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A ClosedError is the error of a program that a tool cannot run, because only
// other users may.
type ClosedError struct {
	Path   string // the file, with no links in it
	Closed string // the file or the folder that is closed
}

func (e *ClosedError) Error() string {
	if e.Closed == e.Path {
		return "tools cannot run " + e.Path + ": tools do not run as root, and other users cannot read that file"
	}
	return fmt.Sprintf("tools cannot reach %s: tools do not run as root, and other users cannot enter the folder %s", e.Path, e.Closed)
}

// Fix returns what to do about it.
func (e *ClosedError) Fix() string {
	mode := "o+x"
	if e.Closed == e.Path {
		mode = "o+rx"
	}
	return fmt.Sprintf("chmod %s %s, or install the program in another folder", mode, e.Closed)
}

// Reachable returns a [*ClosedError] if a tool could not run a program in the
// sandbox that this machine gives. If Ken runs as root, tools run as a user of
// their own in a full sandbox, and may be unable to enter a folder of root's.
func Reachable(path string, require Requirement) error {
	if os.Getuid() != 0 || require == Off {
		return nil
	}
	closed, err := closedTo(path)
	if err != nil || closed == nil || probed().Isolation.Profile != Full {
		return err
	}
	return closed
}

// OpenToAll returns an error if a program could be closed to a tool in some sandbox.
// Unlike [Reachable] it does not find out which one this machine gives.
func OpenToAll(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	closed, err := closedTo(path)
	if err == nil && closed != nil {
		err = closed
	}
	return err
}

// closedTo returns what keeps other users from a program, or nil.
func closedTo(path string) (*ClosedError, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // without the folders of a person
		}
		return nil, err
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return nil, err
		}
		if info.Mode()&0o001 == 0 {
			return &ClosedError{Path: path, Closed: at}, nil
		}
		if at == filepath.Dir(at) {
			return nil, nil
		}
	}
}
