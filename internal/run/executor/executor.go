// Package executor holds what the executors share: the facts that they report
// to the runner about a call before it runs, and the steps that are common to
// those that start programs.
//
// The executors are packages of their own below this one: process runs the
// programs of extension packages, shell one command line, files works on files
// beneath a workspace, function calls typed Go functions. Each is an
// [Executor]: made once, used for every call, from any number of goroutines.
//
// An executor decides nothing. [Executor.Facts] says what a call comes to,
// policy decides about that, and Invoke does it: exactly what Facts named, or
// nothing. What an executor refuses by itself is what it cannot do safely
// whatever the rules say.
package executor

import (
	"context"
	"encoding/json"

	"ken/capability"
)

// An Executor carries out the calls of one family of capabilities.
type Executor interface {
	capability.Invoker

	// Facts says what a call of a capability comes to. It changes nothing and
	// starts nothing. An error means that Invoke would refuse the call in any
	// case, for the same reason.
	Facts(ctx context.Context, call capability.Call, c *capability.Capability) (Facts, error)
}

// A Checker is an Executor that can tell of some calls that they must fail, so
// that no approval is asked for.
type Checker interface {
	// Check looks at what Invoke would look at first, through the same handles
	// and within the same limits. It changes nothing, starts nothing and waits
	// for no other call. A failed result, or an error, is the very one that
	// Invoke would give now. Anything else promises nothing: Invoke looks
	// again.
	Check(ctx context.Context, call capability.Call) (capability.Result, error)
}

// A Punctual is an Executor that returns soon after the context of a call ends,
// whatever it waits for. Its calls run on the goroutine of their caller.
type Punctual interface {
	Executor
	Punctual() bool
}

// A Previewer is an Executor that can show a person what a call would do.
type Previewer interface {
	// Preview returns what Invoke would do, read off the arguments by the code that
	// Invoke uses. It changes nothing, starts nothing and has no credential in it.
	Preview(ctx context.Context, call capability.Call, c *capability.Capability) ([]Shown, error)
}

// Shown is a part of what a call would do, with its name, such as command, request
// or statement.
type Shown struct {
	Name  string
	Text  string
	Marks []Mark // in order, and none overlaps another
}

// A Mark is a range of bytes of a text that a person should look at, and why.
type Mark struct {
	From, To int
	Why      string
}

// Facts are what policy needs to know of a call before it is made.
type Facts struct {
	Paths []Path

	// Commands are the simple commands that would be run, each as its
	// arguments.
	Commands [][]string

	// Named lists other texts in the arguments that may name files. The rules
	// check them only against the lists of protected and secret files.
	Named []string

	// Mentioned lists words in the arguments that may name files. The rules check
	// them only against the list of secret files.
	Mentioned []string

	// Unseen says why not every file that the call can reach, or names, was
	// checked against these lists. The call then counts as naming one of each.
	Unseen string

	// Line is the whole command line where a shell reads it, and Args how many
	// arguments the command was given, for the record.
	Line string
	Args int

	// Inline, when above zero, is how many bytes of text the result shows; the
	// rest is kept for the caller.
	Inline int

	// Files are those whose bytes decide what the commands do, and Unknown says
	// why there may be others; see [Programs.Code]. Invoke runs only if Files are
	// unchanged.
	Files   []File
	Unknown string

	// State is what decides besides the arguments what the call does, such as the
	// page that is open in a browser. An approval of one call is bound to it, and
	// Invoke runs in this state only; see [SameState].
	State string

	// Opaque says why there may be more to the command line than Commands;
	// empty when there is not.
	Opaque string

	// Hidden names what in the project may make a command run a program that
	// Commands does not show.
	Hidden string

	Hosts []string // without port

	// Secrets are the names of secrets that the executor is given
	// anyway, besides those that the capability requires.
	Secrets []string

	// Destructive means that the executor knows the call to destroy something.
	Destructive bool

	// WorkDir is where a program works, for the record, and Isolation what will
	// hold it, as JSON; both are empty for calls that start none.
	WorkDir   string
	Isolation json.RawMessage

	// Required are the permissions without which the call cannot be made
	// ("exec", "filesystem.write", …). They come from the executor, so that a
	// manifest which declares nothing is granted nothing.
	Required []string
}

// A Path is a file that a call names: relative to the workspace, or absolute.
type Path struct {
	Name  string
	Write bool
}

// A Tool is a capability that comes with this program, with its schema and
// text. The builder of the catalog puts it into a source.
type Tool struct {
	Capability capability.Capability
	Detail     capability.Detail
}

// A Lookup gives the capability that a call means and what belongs to it. It
// is the catalog's, as the runner sees it.
type Lookup func(ctx context.Context, target capability.ID) (*capability.Capability, capability.Detail, error)

// The permissions that executors require.
const (
	PermExec    = "exec"
	PermNetwork = "network"
	PermRead    = "filesystem.read"
	PermWrite   = "filesystem.write"
)
