package source

import (
	"embed"
	"io/fs"

	"ken/capability"
)

//go:generate go test -run ^TestStarterParsed$ -update

//go:embed all:starter
var starterFiles embed.FS

// starterParsed is what the files of the starter were parsed to before the
// program was built. Every start needs them, and parsing took longer than all
// else that a short command does.
//
//go:embed starter.parsed
var starterParsed string

// Starter is the catalog that is part of the program, so that a first command
// has something real to show.
func Starter(name string) *Tree {
	return NewTree(TreeConfig{Name: name, Files: starterRoot(), Trust: capability.TrustBuiltin, parsed: starterParsed})
}

func starterRoot() fs.FS {
	files, err := fs.Sub(starterFiles, "starter")
	if err != nil {
		panic(err) // the name is a constant of this file
	}
	return files
}
