//go:build !linux

package executor

import "io/fs"

func keyOf(info fs.FileInfo) fileKey {
	return fileKey{size: info.Size(), mtime: info.ModTime().UnixNano()}
}
