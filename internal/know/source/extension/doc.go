// Package extension reads extension packages: a folder with manifest.json and,
// where it has commands, a file with their command lines.
package extension
