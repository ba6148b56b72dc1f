//go:build !linux && !darwin

package index

import "os"

// mapFile maps no file here: files are read.
func mapFile(*os.File, int) []byte { return nil }

func unmap([]byte) {}

func restMapped([]byte) {}
