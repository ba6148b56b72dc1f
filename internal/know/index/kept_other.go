//go:build !linux && !darwin

package index

import "os"

// mapFile maps no file here: files are read.
func mapFile(*os.File, int) *mapping { return nil }

func (*mapping) rest() {}
