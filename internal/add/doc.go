// Package add puts APIs, extension packages and MCP servers into the user's
// folders, and takes them out again.
//
// Everything is read into a folder of its own first. What it asks for is shown from
// there, and that folder, not what it was copied from, is moved into place when
// a person agrees.
package add
