// Package rows reads JSON objects that describe one capability each: a line of
// a catalog, an item of a saved tools/list, or a tool of a connected MCP server.
package rows
