//go:build !unix

package executor

import "os"

// missing reports whether there is certainly no file of this name, or none that
// can be reached.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}
