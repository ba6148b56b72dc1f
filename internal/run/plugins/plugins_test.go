package plugins_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/run/plugins"
	"ken/internal/run/runner"
	"ken/plugin"
)

// fake is a plugin that records its start and its stop.
type fake struct {
	name    string
	err     error
	runners []string
	did     *[]string
}

func (f fake) Name() string { return f.name }

func (f fake) Start(context.Context) error {
	*f.did = append(*f.did, "start "+f.name)
	return f.err
}

func (f fake) Stop(context.Context) error {
	*f.did = append(*f.did, "stop "+f.name)
	return nil
}

func (f fake) Executors() map[string]capability.Invoker {
	out := map[string]capability.Invoker{}
	for _, name := range f.runners {
		out[name] = nil
	}
	return out
}

// TestStart: plugins start in their order, and those that started are stopped,
// also if a later one fails.
func TestStart(t *testing.T) {
	for name, tt := range map[string]struct {
		list []fake
		err  string
		did  []string
	}{
		"two":          {[]fake{{name: "a"}, {name: "b"}}, "", []string{"start a", "start b", "stop b", "stop a"}},
		"no name":      {[]fake{{}}, "the name is empty or taken", nil},
		"the same":     {[]fake{{name: "a"}, {name: "a"}}, "the name is empty or taken", []string{"start a", "stop a"}},
		"a broken one": {[]fake{{name: "a"}, {name: "b", err: errors.New("broken")}}, "start the plugin b: broken", []string{"start a", "start b", "stop a"}},
	} {
		var did []string
		var list []plugin.Plugin
		for _, f := range tt.list {
			f.did = &did
			list = append(list, f)
		}
		var closers []func() error
		_, err := plugins.Start(t.Context(), list, func(c func() error) { closers = append(closers, c) })
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: Start = %v, want %q", name, err, tt.err)
		}
		for _, c := range slices.Backward(closers) {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(did, tt.did) {
			t.Errorf("%s: %q, want %q", name, did, tt.did)
		}
	}
}

// TestAddExecutors: a plugin does not replace a runner of Ken.
func TestAddExecutors(t *testing.T) {
	var did []string
	set, err := plugins.Start(t.Context(), []plugin.Plugin{fake{name: "p", runners: []string{"robot.*"}, did: &did}}, func(func() error) {})
	if err != nil {
		t.Fatal(err)
	}
	to := runner.Executors{"exec.*": nil}
	if err := set.AddExecutors(to); err != nil || len(to) != 2 {
		t.Errorf("AddExecutors = %v, %v; want one more", to, err)
	}
	if err := set.AddExecutors(runner.Executors{"robot.arm": nil}); err == nil || !strings.Contains(err.Error(), "robot.arm") {
		t.Errorf("AddExecutors beside robot.arm = %v, want an error that names it", err)
	}
	var none *plugins.Set
	if got := none.Sources(); got != nil {
		t.Errorf("no plugins have the sources %v", got)
	}
}

// TestHookProgram: the program of a hook is never taken from the workspace by its
// name alone.
func TestHookProgram(t *testing.T) {
	work, bin := t.TempDir(), t.TempDir()
	for _, dir := range []string{work, bin} {
		if err := os.WriteFile(filepath.Join(dir, "lint"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hooks := func(path string) error {
		_, err := plugins.Hooks(plugins.HookConfig{
			Hooks: []config.Hook{{Name: "style", Command: []string{"lint"}}}, Places: dirs.Places{Workspace: work, Home: t.TempDir()},
			Path: path, Getenv: func(string) string { return "" },
		})
		return err
	}
	if err := hooks(bin); err != nil {
		t.Errorf("Hooks with the program on the path = %v", err)
	}
	if err := hooks(work); err == nil || !strings.Contains(err.Error(), "hooks.style") {
		t.Errorf("Hooks with the program in the workspace = %v, want an error that names the hook", err)
	}
}
