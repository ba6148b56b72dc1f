package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/connect/places"
	"ken/internal/connect/yamltable"
)

// A Client is a program that people use MCP servers with.
type Client struct {
	Name  string // as in "ken connect claude"
	Title string // as its makers call it

	at       []string // the names that lead to its table of servers
	format   format
	notation notation

	// user returns the files that may hold a person's servers, the one to be made
	// first where there is none, and the folder that tells that the client is
	// there at all.
	user func(env places.Environment) (files []string, folder string)

	project []string // files inside a project
	parse   func(*fields) (Server, string)
	entry   func(Entry) pairs
}

// An Entry is what is written into a client's configuration.
type Entry struct {
	Command string   // the absolute path of the program
	Args    []string // nil means "mcp"
	Home    string   // KEN_HOME for the program; empty where it finds the same folder without it

	// URL and Token are given instead where the client shall speak to a
	// running Ken over HTTP.
	URL   string
	Token string
}

func (e Entry) args() []string {
	if e.Args == nil {
		return []string{"mcp"}
	}
	return e.Args
}

// env returns the variables that the program needs.
func (e Entry) env() pairs {
	if e.Home == "" {
		return pairs{}
	}
	return pairs{{"KEN_HOME", e.Home}}
}

func (e Entry) headers() pairs {
	if e.Token == "" {
		return pairs{}
	}
	return pairs{{"Authorization", "Bearer " + e.Token}}
}

// Clients returns all clients, by name.
func Clients() []Client {
	return []Client{
		{Name: "claude", Title: "Claude Code", at: []string{"mcpServers"}, format: jsonFormat{}, notation: bracedRefs,
			user: places.Claude, project: []string{".mcp.json"}, parse: parseClaude, entry: entryTyped("stdio", true)},
		{Name: "codex", Title: "Codex", at: []string{"mcp_servers"}, format: tomlFormat{}, notation: noRefs,
			user: places.Codex, project: []string{".codex/config.toml"}, parse: parseCodex, entry: entryCodex},
		{Name: "continue", Title: "Continue", at: []string{"mcpServers"}, format: yamlFormat{yamltable.Table{Key: "mcpServers", List: true}}, notation: templateRefs,
			user: places.Continue, project: []string{".continue/config.yaml"}, parse: parseContinue, entry: entryContinue},
		{Name: "copilot", Title: "GitHub Copilot CLI", at: []string{"mcpServers"}, format: jsonFormat{}, notation: bracedRefs,
			user: places.Copilot, project: []string{".mcp.json", ".github/mcp.json"}, parse: parseCopilot, entry: entryCopilot},
		{Name: "crush", Title: "Crush", at: []string{"mcp"}, format: jsonFormat{}, notation: shellRefs,
			user: places.Crush, project: []string{".crush.json", "crush.json"}, parse: parseCrush, entry: entryTyped("stdio", false)},
		{Name: "cursor", Title: "Cursor", at: []string{"mcpServers"}, format: jsonFormat{}, notation: editorRefs,
			user: places.Cursor, project: []string{".cursor/mcp.json"}, parse: parseEditor, entry: entryPlain("url")},
		{Name: "gemini", Title: "Gemini CLI", at: []string{"mcpServers"}, format: jsonFormat{}, notation: shellRefs,
			user: places.Gemini, project: []string{".gemini/settings.json"}, parse: parseGemini, entry: entryPlain("httpUrl")},
		{Name: "goose", Title: "Goose", at: []string{"extensions"}, format: yamlFormat{yamltable.Table{Key: "extensions"}}, notation: noRefs,
			user: places.Goose, parse: parseGoose, entry: entryGoose},
		{Name: "jetbrains", Title: "JetBrains Junie", at: []string{"mcpServers"}, format: jsonFormat{}, notation: noRefs,
			user: places.JetBrains, project: []string{".junie/mcp/mcp.json"}, parse: parseEditor, entry: entryPlain("url")},
		{Name: "lmstudio", Title: "LM Studio", at: []string{"mcpServers"}, format: jsonFormat{}, notation: noRefs,
			user: places.LMStudio, parse: parseEditor, entry: entryPlain("url")},
		{Name: "opencode", Title: "opencode", at: []string{"mcp"}, format: jsonFormat{}, notation: opencodeRef,
			user: places.Opencode, project: []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"}, parse: parseOpencode, entry: entryOpencode},
		{Name: "qwen", Title: "Qwen Code", at: []string{"mcpServers"}, format: jsonFormat{}, notation: shellRefs,
			user: places.Qwen, project: []string{".qwen/settings.json"}, parse: parseQwen, entry: entryQwen},
		{Name: "vscode", Title: "VS Code", at: []string{"servers"}, format: jsonFormat{}, notation: editorRefs,
			user: places.VSCode, project: []string{".vscode/mcp.json"}, parse: parseEditor, entry: entryTyped("stdio", false)},
		{Name: "windsurf", Title: "Windsurf", at: []string{"mcpServers"}, format: jsonFormat{}, notation: editorRefs,
			user: places.Windsurf, parse: parseWindsurf, entry: entryPlain("serverUrl")},
		{Name: "zed", Title: "Zed", at: []string{"context_servers"}, format: jsonFormat{}, notation: noRefs,
			user: places.Zed, project: []string{".zed/settings.json"}, parse: parseZed, entry: entryPlain("url")},
	}
}

func clientNamed(name string) (Client, error) {
	var names []string
	for _, c := range Clients() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if isGeneric(name) {
		return Client{
			Name: name, Title: "the client", at: []string{"mcpServers"}, format: jsonFormat{}, notation: editorRefs,
			user: func(places.Environment) ([]string, string) {
				return []string{"the file that --file names"}, "that of it"
			}, parse: parseEditor, entry: entryGeneric,
		}, nil
	}
	names = append(names, generic+" with --file")
	return Client{}, &capability.Error{
		Kind: capability.NotFound, Op: "connect", Target: fmt.Sprintf("%.40q", name),
		Err: errors.New("unknown client"), Fix: "name one of " + strings.Join(names, ", "),
	}
}

// ours reports whether an entry is Ken itself.
func (c Client) ours(e Entry, name string, v any) bool {
	f, ok := fieldsOf(v)
	if !ok {
		return false
	}
	s, why := c.parse(&fields{m: maps.Clone(f.m), asked: map[string]bool{}})
	if why != "" {
		return false
	}
	if s.URL != "" {
		return s.URL == e.URL || name == "ken" && strings.HasPrefix(s.URL, "http://127.0.0.1:") && strings.HasSuffix(s.URL, "/mcp")
	}
	base := strings.TrimSuffix(filepath.Base(s.Command), ".exe")
	return (s.Command == e.Command || base == "ken") && len(s.Args) > 0 && s.Args[0] == "mcp"
}

// A File is one file of a client's configuration.
type File struct {
	Path    string
	Exists  bool
	Project string // the folder it is for; empty is everywhere
}

// Where says where to look for a client's configuration. Home and Getenv are
// given by the caller, so that nothing here reads the process.
type Where struct {
	Client  string
	Home    string
	Getenv  func(string) string // nil: nothing is set
	File    string              // this file and no other
	Project string              // a folder whose own files are taken too
}

func (w Where) environment() places.Environment {
	getenv := w.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return places.Environment{Home: w.Home, Getenv: getenv, GOOS: runtime.GOOS}
}

// Find returns the files of a client, the one that Ken's entry belongs into
// first. That one may be missing where the client has its folder and no file
// yet. With neither it fails with [capability.NotFound] and says where it
// looked.
func Find(w Where) ([]File, error) {
	c, err := clientNamed(w.Client)
	if err != nil {
		return nil, err
	}
	var files []File
	if w.File != "" {
		path, err := filepath.Abs(w.File)
		if err != nil {
			return nil, &capability.Error{Kind: capability.Invalid, Op: "find the configuration of " + c.Title, Target: w.File, Err: err, Fix: "write the path from the root"}
		}
		if !isFolder(filepath.Dir(path)) {
			return nil, &capability.Error{Kind: capability.NotFound, Op: "find the configuration of " + c.Title, Target: path, Err: errors.New("folder does not exist"), Fix: "name a file in a folder that exists"}
		}
		files = []File{{Path: path, Exists: isThere(path)}}
	} else if files, err = userFiles(c, w.environment()); err != nil {
		return nil, err
	}
	if w.Project == "" {
		return files, nil
	}
	dir, err := filepath.Abs(w.Project)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "find the configuration of " + c.Title, Target: w.Project, Err: err}
	}
	for _, name := range c.project {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if isThere(path) && !slices.ContainsFunc(files, func(f File) bool { return f.Path == path }) {
			files = append(files, File{Path: path, Exists: true, Project: dir})
		}
	}
	return files, nil
}

func userFiles(c Client, env places.Environment) ([]File, error) {
	paths, folder := c.user(env)
	var files []File
	for _, path := range paths {
		if isThere(path) {
			files = append(files, File{Path: path, Exists: true})
		}
	}
	switch {
	case files != nil:
		return files, nil
	case isFolder(folder):
		return []File{{Path: paths[0]}}, nil
	}
	looked := slices.Clone(paths)
	return nil, &capability.Error{
		Kind: capability.NotFound, Op: "find the configuration of " + c.Title,
		Err: fmt.Errorf("file not found at %s, and folder %s does not exist", strings.Join(looked, " or "), folder),
		Fix: "start the client once, or name the file with --file",
	}
}

// isThere counts a link that leads nowhere: it is not to be written over.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
