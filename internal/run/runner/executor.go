package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
)

// An Executor has effects. It is made once and used by any number of
// goroutines.
type Executor interface {
	// Facts says what a call would come to, without doing any of it.
	Facts(ctx context.Context, call capability.Call, c *capability.Capability) (Facts, error)

	// Invoke does exactly that. It returns when everything that it started has
	// ended, soon after ctx ends too. An error of kind Invalid, NotFound,
	// Denied, Unapproved, InputNeeded, Unavailable or Conflict says that
	// nothing happened; any other leaves that open. A result may come with an
	// error.
	capability.Invoker
}

// A Schemer is an Executor that knows the schema of arguments where the source
// gave none.
type Schemer interface {
	Schema(c *capability.Capability) json.RawMessage
}

// Facts are what an executor says about a call before it is decided on.
type Facts struct {
	Arguments policy.Facts

	// Class and Required, where they are set, replace what the catalog's entry
	// suggests: the executor knows better what its calls need.
	Class    policy.Class
	Required policy.Permissions

	// Files are those whose bytes decide what the call does. An approval is
	// bound to them.
	Files   []executor.File
	Unknown string // why other files may decide it too; see [executor.Code]

	State string // that decides what the call does besides its arguments; an approval of one call is bound to it

	// Secrets are the names of secrets that the executor is given
	// anyway, besides those that the capability requires: they may stand in its
	// arguments.
	Secrets []string

	Argv      []string // the exact command, for people and, redacted, for the record
	Line      string   // the whole line instead, where a shell reads it
	Args      int      // how many arguments the command has [those of the call]
	Tool      string
	WorkDir   string
	Isolation json.RawMessage // that will hold it
	Timeout   time.Duration   // that the call asks for; it can only lower the limit
	Inline    int             // bytes of text that the result shows, if less than the limit; the rest is kept
	Keep      bool            // keep the result however short, for follow-up commands
}

// Keys of Result.Meta that executors fill and records take over.
const (
	MetaExitCode  = "exit_code" // of a process, decimal
	MetaIsolation = "isolation" // that held it, JSON
	MetaTruncated = "truncated" // "true"

	MetaHTTPStatus = "http_status"  // of an answer, decimal
	MetaStdout     = "stdout_bytes" // that it wrote, decimal, kept or not
	MetaStderr     = "stderr_bytes"

	MetaStdoutHash = "stdout_sha256" // of all that it wrote, kept or not
	MetaStderrHash = "stderr_sha256"

	MetaEnd = "end" // "timed-out" makes the state TIMEOUT, "cancelled" the record CANCELLED
)

// Keys of Result.Meta that the Runner fills.
const (
	MetaState    = "state"
	MetaStarted  = "started"     // RFC 3339
	MetaEnded    = "ended"       // RFC 3339
	MetaDuration = "duration_ms" // decimal
	MetaEffect   = "effect"      // the effect's id, the same in the record
	MetaRepeated = "repeated"    // "true": an earlier result, nothing ran
	MetaRecord   = "record"      // the closing record in the trail, CHAIN:NUMBER
	MetaAudit    = "audit"       // "degraded": the closing record is missing
	MetaTicket   = "ticket"      // of the question that waits for a person
	MetaPlugin   = "plugin"      // that changed or withheld the result
)

// FromExecutor makes an Executor of one whose facts are plain words.
func FromExecutor(x executor.Executor) Executor { return adapted{x} }

type adapted struct{ executor.Executor }

// Punctual implements [executor.Punctual].
func (a adapted) Punctual() bool {
	p, ok := a.Executor.(interface{ Punctual() bool })
	return ok && p.Punctual()
}

func (a adapted) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	if c, ok := a.Executor.(Checker); ok {
		return c.Check(ctx, call)
	}
	return capability.Result{}, nil
}

func (a adapted) Preview(ctx context.Context, call capability.Call, c *capability.Capability) ([]executor.Shown, error) {
	if p, ok := a.Executor.(executor.Previewer); ok {
		return p.Preview(ctx, call, c)
	}
	return nil, nil
}

func (a adapted) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (Facts, error) {
	in, err := a.Executor.Facts(ctx, call, c)
	if err != nil {
		return Facts{}, err
	}
	out := Facts{
		Arguments: policy.Facts{
			Commands: in.Commands, Named: in.Named, Mentioned: in.Mentioned, Unseen: in.Unseen, Opaque: in.Opaque, Hidden: in.Hidden, Line: in.Line, Hosts: in.Hosts, Destructive: in.Destructive,
		},
		Required: policy.ParsePermissions(in.Required), WorkDir: in.WorkDir, Isolation: in.Isolation,
		Line: in.Line, Args: in.Args, Inline: in.Inline, Files: in.Files, Unknown: in.Unknown, State: in.State, Secrets: in.Secrets,
	}
	if !path.IsAbs(in.WorkDir) {
		out.Arguments.Dir = in.WorkDir
	}
	for _, p := range in.Paths {
		out.Arguments.Paths = append(out.Arguments.Paths, policy.Path{Name: p.Name, Write: p.Write})
	}
	if len(in.Commands) == 1 && in.Opaque == "" && len(in.Commands[0]) > 0 {
		out.Argv = in.Commands[0]
		out.Tool = path.Base(out.Argv[0])
	}
	out.Keep = len(in.Commands) > 0 || in.Line != "" // a follow-up command may read what a program wrote
	return out, nil
}

// Executors choose an executor by the name in [capability.Recipe.Runner]:
// "exec.git" takes that name exactly; "exec.*" every name that begins with
// "exec." and has no longer prefix here.
// A capability without a recipe is looked for under its id, as "tool:read_file".
type Executors map[string]Executor

func (e Executors) check() error {
	for name, x := range e {
		stem := strings.TrimSuffix(name, "*")
		switch {
		case x == nil:
			return fmt.Errorf("executor %s is nil", name)
		case stem == "" || strings.Contains(stem, "*"):
			return fmt.Errorf("executor %q: invalid name; use a name, or a prefix that ends in one star", name)
		case stem != name && !strings.HasSuffix(stem, ".") && !strings.HasSuffix(stem, ":"):
			return fmt.Errorf("executor %q: invalid prefix; it must end in a dot or a colon before the star", name)
		}
	}
	return nil
}

func (e Executors) find(name string) Executor {
	key, _ := Matching(e, name)
	return e[key]
}

// Matching returns the key that a runner's name is found under: that very name, or
// else the longest prefix.
func Matching[V any](runners map[string]V, name string) (key string, ok bool) {
	if strings.HasSuffix(name, "*") {
		return "", false
	}
	if _, ok := runners[name]; ok {
		return name, true
	}
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' || name[i] == ':' {
			if _, ok := runners[name[:i+1]+"*"]; ok {
				return name[:i+1] + "*", true
			}
		}
	}
	return "", false
}

// names lists what there is, for a message.
func (e Executors) names() string {
	var out []string
	for name := range e {
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
