// Package format holds what the readers of all file formats share.
//
// A [Format] says which files it reads and how. It reads a [Unit]: one folder,
// such as a skill's, or one file, such as a catalog. The unit collects
// capabilities, presets, documents and problems; what is wrong with one unit
// costs nothing else. The other files read Markdown pages with frontmatter,
// lists in YAML, and fields that several formats have.
package format
