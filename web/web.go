// Package web holds the page of ken serve. Its source is beside this file, in
// Svelte; its built files are committed, so that building Ken needs no Node.
package web

import "embed"

// Dist are the built files, in the folder dist.
//
//go:embed all:dist
var Dist embed.FS
