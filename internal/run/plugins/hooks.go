package plugins

import (
	"fmt"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/run/executor"
	"ken/internal/run/hook"
	"ken/internal/run/runner"
)

// HookConfig says how the hooks of ken.yaml are run.
type HookConfig struct {
	Hooks  []config.Hook
	Places dirs.Places
	Path   string // folders of programs
	Getenv func(string) string

	// Resolve returns the id of the capability that a name stands for, or the
	// name itself if there is none.
	Resolve func(capability.ID) capability.ID
}

// Hooks returns the hooks of ken.yaml in their order.
func Hooks(cfg HookConfig) ([]runner.Plugin, error) {
	var out []runner.Plugin
	for _, h := range cfg.Hooks {
		program, err := hookProgram(cfg, h)
		if err != nil {
			return nil, fmt.Errorf("hooks.%s: %w", h.Name, err)
		}
		made, err := hook.New(hook.Config{
			Name: h.Name, Command: append([]string{program}, h.Command[1:]...), Dir: cfg.Places.Workspace, Env: hookEnv(cfg.Getenv), Tools: h.Tools, Timeout: h.Timeout,
			Resolve: cfg.Resolve,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	return out, nil
}

// hookProgram returns the path of a hook's program. A relative path starts at the
// folder of the file that names the hook. A name is looked up in the folders of
// programs, but not in the workspace.
func hookProgram(cfg HookConfig, h config.Hook) (string, error) {
	name := h.Command[0]
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(h.Dir, name)
		}
		return name, nil
	}
	program, err := executor.NewPrograms(cfg.Path, cfg.Places.Workspace).Find(name)
	return program.Path, err
}

// hookEnv returns the environment of hooks: what a script needs, and no secrets.
func hookEnv(getenv func(string) string) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR"} {
		if v := getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}
