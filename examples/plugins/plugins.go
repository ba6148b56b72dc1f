// Program plugins shows one plugin of each kind: a source, an executor, a
// wrapper around calls, a layer of the prompt, a filter of context files, a
// wrapper around the model, and one that is told of start and stop.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"ken/capability"
	"ken/llm"
	"ken/plugin"
)

// A dice brings a capability and runs it: a source and an executor in one.
type dice struct{}

func (dice) Name() string { return "dice" }

func (d dice) Sources() []capability.Source { return []capability.Source{d.shelf()} }

func (dice) shelf() capability.Source {
	return shelf{&capability.Capability{
		ID: "tool:roll-dice", Kind: capability.KindTool, Name: "roll-dice", Category: "games", Description: "Roll a dice",
		Permissions: []string{"network"}, // what runs elsewhere asks for the most
		Run:         &capability.Recipe{Runner: "dice.roll"}, Trust: capability.TrustUser, Origin: capability.Origin{Source: "dice"},
	}}
}

func (dice) Executors() map[string]capability.Invoker {
	return map[string]capability.Invoker{"dice.*": capability.InvokerFunc(func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Parts: []capability.Part{{Text: "You rolled a 4."}}}, nil
	})}
}

// A shelf is a source of one capability.
type shelf struct{ c *capability.Capability }

func (shelf) Name() string { return "dice" }

func (s shelf) Load(context.Context) (capability.Batch, error) {
	return capability.Batch{Capabilities: []*capability.Capability{s.c}}, nil
}

// A curfew wraps calls: it refuses some before, and sees all results after.
type curfew struct{ log io.Writer }

func (curfew) Name() string { return "curfew" }

func (curfew) Before(_ context.Context, call capability.Call) (capability.Call, error) {
	if strings.Contains(string(call.Target), "shell") {
		return call, errors.New("no commands at night")
	}
	return call, nil
}

func (c curfew) After(_ context.Context, call capability.Call, res capability.Result) (capability.Result, error) {
	fmt.Fprintf(c.log, "%s failed: %v\n", call.Target, res.Failed)
	return res, nil
}

// A tone adds a layer to the system prompt and keeps a file out of the context.
type tone struct{}

func (tone) Name() string { return "tone" }

func (tone) Layers(context.Context) ([]plugin.Layer, error) {
	return []plugin.Layer{{Name: "tone", Text: "# Tone\n\nAnswer in one sentence."}}, nil
}

func (tone) FilterContext(_ context.Context, files []plugin.File) ([]plugin.File, error) {
	return slices.DeleteFunc(slices.Clone(files), func(f plugin.File) bool { return f.Name == "DRAFT.md" }), nil
}

// A meter wraps the model: it sees every request and every answer.
type meter struct{ log io.Writer }

func (meter) Name() string { return "meter" }

func (m meter) WrapModel(next llm.Model) llm.Model { return metered{next, m.log} }

type metered struct {
	llm.Model
	log io.Writer
}

func (m metered) Generate(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		for chunk, err := range m.Model.Generate(ctx, req) {
			if chunk.Usage != nil {
				fmt.Fprintf(m.log, "the model read %d and wrote %d tokens\n", chunk.Usage.Input, chunk.Usage.Output)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// A bell is told when Ken opens and closes.
type bell struct{ log io.Writer }

func (bell) Name() string { return "bell" }

func (b bell) Start(context.Context) error { fmt.Fprintln(b.log, "good morning"); return nil }
func (b bell) Stop(context.Context) error  { fmt.Fprintln(b.log, "good night"); return nil }
