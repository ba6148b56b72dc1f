//go:build !unix

package safefs

import "io/fs"

// hardLinked cannot tell here; such files are read.
func hardLinked(fs.FileInfo) bool { return false }
