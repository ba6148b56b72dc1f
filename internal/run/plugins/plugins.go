// Package plugins starts the plugins of a program and returns what they add to
// Ken: sources, executors, steps around calls, and wrappers of models. The hooks
// of ken.yaml are steps around calls too.
package plugins

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/run/runner"
	"ken/llm"
	"ken/plugin"
)

// A Set is the plugins that were started, in their order. A nil Set has none.
type Set struct{ list []plugin.Plugin }

// Start starts plugins in their order. onClose receives a function for each that
// wants to be stopped, also if a later one fails to start.
func Start(ctx context.Context, list []plugin.Plugin, onClose func(func() error)) (*Set, error) {
	names := map[string]bool{}
	for _, p := range list {
		name := p.Name()
		if name == "" || names[name] {
			return nil, fmt.Errorf("open with the plugin %q: the name is empty or taken; use another name", name)
		}
		names[name] = true
		if s, ok := p.(plugin.Starter); ok {
			if err := s.Start(ctx); err != nil {
				return nil, fmt.Errorf("start the plugin %s: %w", name, err)
			}
		}
		if s, ok := p.(plugin.Stopper); ok {
			onClose(func() error { return s.Stop(context.Background()) })
		}
	}
	return &Set{slices.Clone(list)}, nil
}

// All iterates over the plugins.
func (s *Set) All() iter.Seq[plugin.Plugin] {
	if s == nil {
		return slices.Values[[]plugin.Plugin](nil)
	}
	return slices.Values(s.list)
}

// Sources returns what plugins add to the catalog.
func (s *Set) Sources() []capability.Source {
	var out []capability.Source
	for p := range s.All() {
		if from, ok := p.(plugin.Sourcer); ok {
			out = append(out, from.Sources()...)
		}
	}
	return out
}

// Runners returns the names of the runners that plugins add.
func (s *Set) Runners() []string {
	var out []string
	for p := range s.All() {
		if e, ok := p.(plugin.Executor); ok {
			for name := range e.Executors() {
				out = append(out, name)
			}
		}
	}
	return out
}

// AddExecutors adds the executors of plugins to those of Ken. It returns an error
// if a plugin brings a runner of a family that is there already.
func (s *Set) AddExecutors(to runner.Executors) error {
	for p := range s.All() {
		e, ok := p.(plugin.Executor)
		if !ok {
			continue
		}
		for name, invoker := range e.Executors() {
			family, _, _ := strings.Cut(name, ".")
			for taken := range to {
				if have, _, _ := strings.Cut(taken, "."); have == family {
					return fmt.Errorf("the plugin %s adds the runner %s, but %s already exists; rename the runner", p.Name(), name, taken)
				}
			}
			to[name] = invoked{invoker}
		}
	}
	return nil
}

// invoked is the executor of a plugin. Nothing is known of a call before it runs.
type invoked struct{ capability.Invoker }

func (invoked) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

// AroundCalls returns the plugins that run before or after each call.
func (s *Set) AroundCalls() []runner.Plugin {
	var out []runner.Plugin
	for p := range s.All() {
		_, before := p.(plugin.Before)
		_, after := p.(plugin.After)
		if before || after {
			out = append(out, p)
		}
	}
	return out
}

// Filters returns the plugins that filter what is sent to a model.
func (s *Set) Filters() []plugin.ContextFilter {
	var out []plugin.ContextFilter
	for p := range s.All() {
		if f, ok := p.(plugin.ContextFilter); ok {
			out = append(out, f)
		}
	}
	return out
}

// Wrap puts plugins between Ken and a model, the first outermost.
func (s *Set) Wrap(m llm.Model) llm.Model {
	for _, p := range slices.Backward(slices.Collect(s.All())) {
		if w, ok := p.(plugin.ModelWrapper); ok {
			m = w.WrapModel(m)
		}
	}
	return m
}
