// Package places knows where the clients of MCP servers keep their files.
package places

import (
	"cmp"
	"path/filepath"
)

// Environment is where the files of a person are.
type Environment struct {
	Home   string
	Getenv func(string) string
	GOOS   string
}

// config is the folder of settings, by the rules of the system.
func (e Environment) config() string {
	return cmp.Or(e.Getenv("XDG_CONFIG_HOME"), filepath.Join(e.Home, ".config"))
}

// Claude returns the files that may hold a person's servers, and the folder of the client.
func Claude(e Environment) ([]string, string) {
	if dir := e.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return []string{filepath.Join(dir, ".claude.json")}, dir
	}
	return []string{filepath.Join(e.Home, ".claude.json")}, filepath.Join(e.Home, ".claude")
}

// Codex returns the files that may hold a person's servers, and the folder of the client.
func Codex(e Environment) ([]string, string) {
	dir := cmp.Or(e.Getenv("CODEX_HOME"), filepath.Join(e.Home, ".codex"))
	return []string{filepath.Join(dir, "config.toml")}, dir
}

// Cursor returns the files that may hold a person's servers, and the folder of the client.
func Cursor(e Environment) ([]string, string) {
	dir := filepath.Join(e.Home, ".cursor")
	return []string{filepath.Join(dir, "mcp.json")}, dir
}

// Gemini returns the files that may hold a person's servers, and the folder of the client.
func Gemini(e Environment) ([]string, string) {
	dir := filepath.Join(cmp.Or(e.Getenv("GEMINI_CLI_HOME"), e.Home), ".gemini")
	return []string{filepath.Join(dir, "settings.json")}, dir
}

// Qwen returns the files that may hold a person's servers, and the folder of the client.
func Qwen(e Environment) ([]string, string) {
	dir := cmp.Or(e.Getenv("QWEN_HOME"), filepath.Join(e.Home, ".qwen"))
	return []string{filepath.Join(dir, "settings.json")}, dir
}

// Opencode returns the files that may hold a person's servers, and the folder of the client.
func Opencode(e Environment) ([]string, string) {
	dir := filepath.Join(e.config(), "opencode")
	files := []string{filepath.Join(dir, "opencode.jsonc"), filepath.Join(dir, "opencode.json"), filepath.Join(dir, "config.json")}
	if file := e.Getenv("OPENCODE_CONFIG"); file != "" {
		files = append([]string{file}, files...)
	}
	return files, dir
}

// VSCode returns the files that may hold a person's servers, and the folder of the client.
func VSCode(e Environment) ([]string, string) {
	base := e.config()
	switch e.GOOS {
	case "darwin":
		base = filepath.Join(e.Home, "Library", "Application Support")
	case "windows":
		base = e.roaming()
	}
	dir := filepath.Join(base, "Code", "User")
	return []string{filepath.Join(dir, "mcp.json")}, dir
}

// Zed returns the files that may hold a person's servers, and the folder of the client.
func Zed(e Environment) ([]string, string) {
	dir := filepath.Join(e.config(), "zed")
	switch e.GOOS {
	case "darwin":
		dir = filepath.Join(e.Home, ".config", "zed")
	case "windows":
		dir = filepath.Join(e.roaming(), "Zed")
	}
	return []string{filepath.Join(dir, "settings.json")}, dir
}

// Copilot returns the files that may hold a person's servers, and the folder of the client.
func Copilot(e Environment) ([]string, string) {
	dir := cmp.Or(e.Getenv("COPILOT_HOME"), filepath.Join(e.Home, ".copilot"))
	return []string{filepath.Join(dir, "mcp-config.json")}, dir
}

// Continue returns the files that may hold a person's servers, and the folder of the client.
func Continue(e Environment) ([]string, string) {
	dir := cmp.Or(e.Getenv("CONTINUE_GLOBAL_DIR"), filepath.Join(e.Home, ".continue"))
	return []string{filepath.Join(dir, "config.yaml")}, dir
}

// Goose returns the files that may hold a person's servers, and the folder of the client.
func Goose(e Environment) ([]string, string) {
	dir := filepath.Join(e.config(), "goose")
	if e.GOOS == "windows" {
		dir = filepath.Join(e.roaming(), "Block", "goose", "config")
	}
	if root := e.Getenv("GOOSE_PATH_ROOT"); root != "" {
		dir = filepath.Join(root, "config")
	}
	return []string{filepath.Join(dir, "config.yaml")}, dir
}

// Crush returns the files that may hold a person's servers, and the folder of the client.
func Crush(e Environment) ([]string, string) {
	dir := filepath.Join(e.config(), "crush")
	if e.GOOS == "windows" {
		dir = filepath.Join(cmp.Or(e.Getenv("LOCALAPPDATA"), filepath.Join(e.Home, "AppData", "Local")), "crush")
	}
	dir = cmp.Or(e.Getenv("CRUSH_GLOBAL_CONFIG"), dir)
	return []string{filepath.Join(dir, "crush.json")}, dir
}

// Windsurf returns the files that may hold a person's servers, and the folder of the client.
func Windsurf(e Environment) ([]string, string) {
	dir := filepath.Join(e.Home, ".codeium", "windsurf")
	return []string{filepath.Join(dir, "mcp_config.json")}, dir
}

// JetBrains returns the files that may hold a person's servers, and the folder of the client.
func JetBrains(e Environment) ([]string, string) {
	dir := filepath.Join(e.Home, ".junie", "mcp")
	return []string{filepath.Join(dir, "mcp.json")}, dir
}

// LMStudio returns the files that may hold a person's servers, and the folder of the client.
func LMStudio(e Environment) ([]string, string) {
	dir := filepath.Join(e.Home, ".lmstudio")
	return []string{filepath.Join(dir, "mcp.json"), filepath.Join(e.Home, ".cache", "lm-studio", "mcp.json")}, dir
}

func (e Environment) roaming() string {
	return cmp.Or(e.Getenv("APPDATA"), filepath.Join(e.Home, "AppData", "Roaming"))
}
