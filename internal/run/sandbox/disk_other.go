//go:build !unix

package sandbox

import "io/fs"

func diskSize(info fs.FileInfo) int64 { return info.Size() }
