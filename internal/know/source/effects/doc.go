// Package effects judges what a tool does by its name and its arguments, for
// tools that say of themselves that they only read.
package effects
