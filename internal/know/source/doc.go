// Package source brings capabilities in from files and services.
//
// A [Tree] is a folder, or one file, that may hold any mixture of the formats
// Ken knows. It walks the folder, decides which format reads which file,
// watches for changes and keeps what was last good. The formats themselves are
// in the packages below this one; formats.go lists them. Package remote
// reads the same formats from an address, and package table reads the rows of a
// database. All are a capability.Source and a capability.Watcher, and read bodies
// and schemas only when they are asked for.
//
// Everything read here is untrusted. No path leaves its root, no file is read
// beyond its cap, one bad unit hides only itself, and every string that a
// model may see is scanned when it comes in.
package source
