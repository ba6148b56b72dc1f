//go:build !unix

package config

import "errors"

// makePipe makes a named pipe, where the file system can hold one.
func makePipe(string) error { return errors.ErrUnsupported }
