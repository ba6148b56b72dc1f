// Package catalogfile reads files with many capabilities: JSON Lines with one to
// a line, and a saved tools/list of an MCP server.
package catalogfile
