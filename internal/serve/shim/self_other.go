//go:build !linux

package shim

import "os"

func self() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
