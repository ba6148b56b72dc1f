//go:build !unix

package auth

import "io/fs"

// Who may read a file is not in its mode here: the folder's rights decide.
const noFollow = 0

func own(fs.FileInfo) bool        { return true }
func othersRead(fs.FileInfo) bool { return false }
