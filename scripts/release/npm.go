package main

import (
	"path"
	"strings"
)

// npmNames are the words of Node for systems and processors.
var npmNames = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

// npmPackages writes the npm packages: one with the command, which depends on one
// for each platform with the binary. npm installs the one that fits; nothing is
// downloaded by a script.
func (r *release) npmPackages() error {
	platforms := object{}
	for _, p := range r.platforms {
		name := r.npmName + "-" + npmNames[p.os] + "-" + npmNames[p.arch]
		platforms[name] = r.version
		err := r.npmPackage(name, object{
			"description": "The binary of " + r.npmName + " for " + p.String(),
			"os":          []string{npmNames[p.os]}, "cpu": []string{npmNames[p.arch]}, "preferUnplugged": true,
		}, append(r.npmTexts(), file{name: "bin/" + p.program(), mode: 0o755, from: r.binaries[p]}))
		if err != nil {
			return err
		}
	}
	if err := r.serverJSON(); err != nil {
		return err
	}
	readme := strings.ReplaceAll(string(packaged("npm.md")), "NAME", r.npmName)
	return r.npmPackage(r.npmName, object{
		"description": "One catalog of what an AI agent can do: find, govern, run and record",
		"keywords":    []string{"mcp", "gateway", "agent", "llm", "tools"},
		"mcpName":     r.mcpName(), // by which a registry of MCP servers knows whose the package is
		"bin":         object{"ken": "bin/ken.js"}, "engines": object{"node": ">=18"}, "optionalDependencies": platforms,
	}, append(r.npmTexts(), file{name: "README.md", mode: 0o644, data: []byte(readme)}, file{name: "bin/ken.js", mode: 0o755, data: packaged("ken.js")}))
}

// serverSchema is required in server.json, in exactly this form.
const serverSchema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// mcpName is the name of the server in registries: the scope of the npm package, or
// its name, and ken.
func (r *release) mcpName() string {
	scope, _, _ := strings.Cut(strings.TrimPrefix(r.npmName, "@"), "/")
	return strings.NewReplacer("_", "-").Replace(scope) + "/ken"
}

// serverJSON writes the description of Ken as an MCP server for registries.
func (r *release) serverJSON() error {
	data, err := indented(object{
		"$schema": serverSchema, "name": r.mcpName(), "title": "Ken", "version": r.version,
		"description": "One gateway in front of MCP servers: finds tools, asks for approval, records calls.",
		"packages": []object{{
			"registryType": "npm", "identifier": r.npmName, "version": r.version, "runtimeHint": "npx", "transport": object{"type": "stdio"},
			"packageArguments": []object{{"type": "positional", "value": "mcp"}},
		}},
	})
	if err != nil {
		return err
	}
	return r.put("server.json", data)
}

func (r *release) npmTexts() []file {
	var out []file
	for _, f := range r.shared {
		switch f.name {
		case "LICENSE", "LICENSES.txt", "NOTICE":
			out = append(out, f)
		}
	}
	return out
}

func (r *release) npmPackage(name string, about object, files []file) error {
	about["name"], about["version"], about["license"] = name, r.version, "Apache-2.0"
	description, err := indented(about)
	if err != nil {
		return err
	}
	files = append([]file{{name: "package.json", mode: 0o644, data: description}}, files...)
	data, err := tarGz(r.date, below("package", files))
	if err != nil {
		return err
	}
	// As npm pack names them.
	return r.put("npm-"+strings.TrimPrefix(strings.ReplaceAll(path.Clean(name), "/", "-"), "@")+"-"+r.version+".tgz", data)
}
