package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/hook"
	"ken/internal/run/runner"
	"ken/llm"
	"ken/plugin"
)

// startPlugins tells plugins that Ken opens, in their order, and sees to it
// that those which were told are told when it closes.
func (a *App) startPlugins(ctx context.Context, list []plugin.Plugin) error {
	names := map[string]bool{}
	for _, p := range list {
		name := p.Name()
		if name == "" || names[name] {
			return fmt.Errorf("open with the plugin %q: its name is empty or taken; give it another", name)
		}
		names[name] = true
		if s, ok := p.(plugin.Starter); ok {
			if err := s.Start(ctx); err != nil {
				return fmt.Errorf("start the plugin %s: %w", name, err)
			}
		}
		if s, ok := p.(plugin.Stopper); ok {
			a.closeLater(func() error { return s.Stop(context.Background()) })
		}
		a.plugins = append(a.plugins, p)
	}
	return nil
}

// pluginSources returns what plugins bring to the catalog.
func (a *App) pluginSources() []capability.Source {
	var out []capability.Source
	for _, p := range a.plugins {
		if s, ok := p.(plugin.Sourcer); ok {
			out = append(out, s.Sources()...)
		}
	}
	return out
}

// addExecutors adds what plugins run. What Ken runs itself stays its own.
func (a *App) addExecutors(to runner.Executors) error {
	for _, p := range a.plugins {
		e, ok := p.(plugin.Executor)
		if !ok {
			continue
		}
		for name, invoker := range e.Executors() {
			family, _, _ := strings.Cut(name, ".")
			for taken := range to {
				if have, _, _ := strings.Cut(taken, "."); have == family {
					return fmt.Errorf("the plugin %s brings the runner %s, and there is %s; give it another name", p.Name(), name, taken)
				}
			}
			to[name] = invoked{invoker}
		}
	}
	return nil
}

// invoked is an executor of a plugin's, of whose calls nothing is known
// beforehand.
type invoked struct{ capability.Invoker }

func (invoked) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

// callPlugins returns those that stand around calls: the hooks of ken.yaml, then
// the program's own.
func (a *App) callPlugins() ([]runner.Plugin, error) {
	var out []runner.Plugin
	for _, h := range a.Settings.Hooks {
		program, err := a.hookProgram(h.Command[0])
		if err != nil {
			return nil, fmt.Errorf("hooks.%s: %w", h.Name, err)
		}
		made, err := hook.New(hook.Config{
			Name: h.Name, Command: append([]string{program}, h.Command[1:]...), Dir: a.Places.Workspace, Env: a.hookEnv(), Tools: h.Tools, Timeout: h.Timeout,
			Resolve: a.resolvedID,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, made)
	}
	for _, p := range a.plugins {
		_, before := p.(plugin.Before)
		_, after := p.(plugin.After)
		if before || after {
			out = append(out, p)
		}
	}
	return out, nil
}

// resolvedID returns the id of the capability that name stands for, or name
// itself if there is none.
func (a *App) resolvedID(name capability.ID) capability.ID {
	if e, err := a.Oversee().Lookup(string(name)); err == nil {
		return e.ID
	}
	return name
}

// hookProgram finds a hook's program: a path is one from the folder of the
// user's ken.yaml, a name is looked for where programs are. Nothing is taken
// from the workspace by its name alone.
func (a *App) hookProgram(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Places.Home, name)
		}
		return name, nil
	}
	program, err := executor.NewPrograms(a.programPath(), a.Places.Workspace).Find(name)
	return program.Path, err
}

// hookEnv is the environment of hooks: what a script needs, and no secrets.
func (a *App) hookEnv() []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR"} {
		if v := a.getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// wrapped puts plugins between Ken and a model, the first outermost.
func (a *App) wrapped(m llm.Model) llm.Model {
	for i := len(a.plugins) - 1; i >= 0; i-- {
		if w, ok := a.plugins[i].(plugin.ModelWrapper); ok {
			m = w.WrapModel(m)
		}
	}
	return m
}
