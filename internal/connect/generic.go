package connect

import (
	"path/filepath"
	"strings"

	"ken/internal/connect/yamltable"
)

// generic is the name of the client that a person names a file for.
const generic = "generic"

// NameOf returns the name under which a client is connected. A client that Ken
// does not know is known by its file: each file is one of its own.
func NameOf(client, file string) string {
	if client != generic || file == "" {
		return client
	}
	if path, err := filepath.Abs(file); err == nil {
		file = path
	}
	return generic + "-" + shortHash(file)
}

// isGeneric reports whether a name is that of a file of any client.
func isGeneric(name string) bool { return strings.HasPrefix(name, generic+"-") }

// tableNames are the names that clients have for their table of servers.
var tableNames = []string{"mcpServers", "servers", "mcp_servers", "context_servers", "extensions", "mcp"}

// forFile returns the client with the format and the table of a file, where the
// client is one that Ken does not know.
func (c Client) forFile(path string, data []byte) Client {
	if !isGeneric(c.Name) {
		return c
	}
	var formats func(key string) []format
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		c.format, c.at = tomlFormat{}, []string{"mcp_servers"}
		formats = func(string) []format { return []format{tomlFormat{}} }
	case ".yaml", ".yml":
		c.format = yamlFormat{yamltable.Table{Key: c.at[0]}}
		formats = func(key string) []format {
			return []format{yamlFormat{yamltable.Table{Key: key}}, yamlFormat{yamltable.Table{Key: key, List: true}}}
		}
	default:
		formats = func(string) []format { return []format{jsonFormat{}} }
	}
	for _, key := range tableNames {
		for _, f := range formats(key) {
			doc, err := f.read(data)
			if err != nil {
				return c // reading it says why
			}
			if _, ok := doc[key].(map[string]any); ok {
				c.format, c.at = f, []string{key}
				return c
			}
		}
	}
	return c
}
