// Package web holds what ken serve shows in a browser. The source of the page is
// beside this file, in Svelte; its built files are committed, so that building Ken
// needs no Node. The documentation is built by make build.
package web

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// Dist are the built files of the page, in the folder dist.
//
//go:embed all:dist
var Dist embed.FS

//go:embed docs
var docs embed.FS

// Docs returns the documentation as a site, or nil if this binary was built
// without it.
func Docs() (fs.FS, error) {
	data, err := docs.ReadFile("docs/site.zip")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	site, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("read the documentation in this binary: %w", err)
	}
	return site, nil
}
