package source

import (
	"embed"
	"io/fs"

	"ken/capability"
)

//go:embed all:starter
var starterFiles embed.FS

// Starter is the catalog that is part of the program, so that a first command
// has something real to show.
func Starter(name string) *Tree {
	files, err := fs.Sub(starterFiles, "starter")
	if err != nil {
		panic(err) // the name is a constant of this file
	}
	return NewTree(TreeConfig{Name: name, Files: files, Trust: capability.TrustBuiltin})
}
