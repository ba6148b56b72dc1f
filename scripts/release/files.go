package main

import (
	"embed"
	"io/fs"
)

//go:embed files
var packagedFiles embed.FS

// packaged returns a file of the folder files.
func packaged(name string) []byte {
	data, err := fs.ReadFile(packagedFiles, "files/"+name)
	if err != nil {
		panic(err) // the names are constants
	}
	return data
}
