// Package plugin says how a program adds to Ken. A plugin is a value that has a
// name and is one or more of the small interfaces here; what it is not, it need
// not speak of. It is given to Ken as an argument, once, and never registers
// itself anywhere.
//
// A plugin may add to what Ken knows, runs and says. It can refuse a call and
// narrow it; nothing here lets it allow what the rules refuse.
package plugin

import (
	"context"

	"ken/capability"
	"ken/llm"
)

// A Plugin has a name, under which refusals and records speak of it. All its
// methods may be called from any number of goroutines.
type Plugin interface {
	Name() string
}

// A Sourcer brings capabilities.
type Sourcer interface {
	Plugin
	Sources() []capability.Source
}

// An Executor runs the capabilities whose recipe names one of its runners:
// "name.*" or "name.exactly". It cannot take a runner that Ken has.
type Executor interface {
	Plugin
	Executors() map[string]capability.Invoker
}

// Before sees a call before anything is known of its target. It may refuse it
// with an error, or give it other arguments, which are then validated and
// decided on; to change anything else is a refusal.
type Before interface {
	Plugin
	Before(ctx context.Context, call capability.Call) (capability.Call, error)
}

// After sees the result of every call that its Before let through. It may take
// away from the parts or replace them; it cannot turn a failure into a success.
type After interface {
	Plugin
	After(ctx context.Context, call capability.Call, res capability.Result) (capability.Result, error)
}

// A Layerer adds layers to the system prompt. They stand after Ken's own, in
// the order of their names, and are read once for a session.
type Layerer interface {
	Plugin
	Layers(ctx context.Context) ([]Layer, error)
}

// A Layer is a part of the system prompt.
type Layer struct {
	Name string
	Text string
}

// A ContextFilter runs after capabilities were injected into the list of
// context files and before a prompt is made of them. It may drop files and
// change their texts; what it leaves out is out.
type ContextFilter interface {
	Plugin
	FilterContext(ctx context.Context, files []File) ([]File, error)
}

// A File is a file of context, real or made up.
type File struct {
	Name string // "AGENTS.md", "CAPABILITIES.md"
	Text string
}

// A ModelWrapper stands between Ken and its model.
type ModelWrapper interface {
	Plugin
	WrapModel(m llm.Model) llm.Model
}

// A Starter is told when Ken opens; an error keeps Ken from opening.
type Starter interface {
	Plugin
	Start(ctx context.Context) error
}

// A Stopper is told when Ken closes, in the opposite order.
type Stopper interface {
	Plugin
	Stop(ctx context.Context) error
}
