// Package hook asks the user's own command before a call runs. The command gets
// the call as JSON and may deny or narrow it. It cannot allow what the rules
// deny, because they decide afterwards, on the narrowed call.
//
// The command reads one object from standard input:
//
//	{"hook": "lint", "event": "before", "call": {"target": "tool:write_to_file",
//	 "arguments": {…}, "principal": {…}, "session": "…", "intent": "CODE", "mode": "code", "origin": "", "surface": "chat"}}
//
// and answers by its exit status and, if it likes, one object on standard
// output:
//
//	status 0, no output     the call goes on
//	status 0, an object     {"decision": "allow"}, {"decision": "deny", "reason": "…"},
//	                        or {"arguments": {…}}: the call goes on with these
//	status 2                the call is refused; standard error says why
//	anything else           the hook is broken, and the call is refused
//
// Arguments may only become narrower: names may be left out, lists may lose
// items, numbers may come nearer to zero, true may become false. Anything else
// is a refusal that says so.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/run/sandbox"
	"ken/internal/untrusted"
)

const (
	defaultTimeout = 10 * time.Second
	mostOutput     = 1 << 20 // bytes of an answer
	longestReason  = 500     // characters
	refusedStatus  = 2
)

// Config is one hook.
type Config struct {
	Name    string
	Command []string // the program, absolute, and its arguments
	Dir     string   // where it is started
	Env     []string // its whole environment

	// Tools are ids or names of the capabilities that it is asked about, with *
	// for any part. Empty is all.
	Tools   []string
	Timeout time.Duration // zero is 10s

	// Resolve, when not nil, gives the id of what a call names, so that no other
	// name of it passes the hook by.
	Resolve func(capability.ID) capability.ID
}

// A Hook is a plugin of the runner's. It is safe for any number of goroutines.
type Hook struct{ cfg Config }

// New makes a Hook.
func New(cfg Config) (*Hook, error) {
	if cfg.Name == "" || len(cfg.Command) == 0 {
		return nil, errors.New("make a hook: missing name or command")
	}
	tools := make([]string, len(cfg.Tools))
	for i, pattern := range cfg.Tools {
		tools[i] = norm.NFC.String(pattern) // as ids are
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("make the hook %s: the pattern %q cannot be read; write a name, with * for any part", cfg.Name, pattern)
		}
	}
	cfg.Tools = tools
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	return &Hook{cfg}, nil
}

// Name is how records and refusals speak of it.
func (h *Hook) Name() string { return "hook " + h.cfg.Name }

// answer is what a command may say.
type answer struct {
	Decision  string          `json:"decision"`
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
}

// Before asks the command about a call.
func (h *Hook) Before(ctx context.Context, call capability.Call) (capability.Call, error) {
	about := h.concerns(call.Target)
	if h.cfg.Resolve != nil {
		about = about || h.concerns(h.cfg.Resolve(call.Target))
	}
	if !about {
		return call, nil
	}
	said, err := h.ask(ctx, call)
	if err != nil {
		return call, h.refusal(call, err, fmt.Sprintf("fix the command of hooks.%s, or remove the hook from ken.yaml", h.cfg.Name))
	}
	switch said.Decision {
	case "", "allow":
	case "deny":
		reason := untrusted.Line(said.Reason, longestReason)
		if reason == "" {
			reason = "no reason given"
		}
		return call, h.refusal(call, errors.New(reason), fmt.Sprintf("do it in a way that the hook %s lets through", h.cfg.Name))
	default:
		return call, h.refusal(call, fmt.Errorf("returned the decision %q; a hook may return allow or deny", untrusted.Line(said.Decision, 40)), "fix the command of hooks."+h.cfg.Name)
	}
	if len(said.Arguments) == 0 {
		return call, nil
	}
	if err := narrows(call.Arguments, said.Arguments); err != nil {
		return call, h.refusal(call, fmt.Errorf("returned arguments that are not narrower: %w", err), "fix the command of hooks."+h.cfg.Name)
	}
	call.Arguments = said.Arguments
	return call, nil
}

func (h *Hook) refusal(call capability.Call, err error, fix string) error {
	return &capability.Error{Kind: capability.Denied, Op: "call", Target: string(call.Target), Rule: "hooks." + h.cfg.Name, Err: err, Fix: fix}
}

// concerns reports whether the hook is about a capability.
func (h *Hook) concerns(id capability.ID) bool {
	if len(h.cfg.Tools) == 0 {
		return true
	}
	_, name, _ := strings.Cut(string(id), ":")
	for _, pattern := range h.cfg.Tools {
		for _, s := range []string{string(id), name} {
			if ok, _ := path.Match(pattern, s); ok { // New has read the pattern
				return true
			}
			// A star stands for any part, a slash too.
			if before, after, star := strings.Cut(pattern, "*"); star && !strings.ContainsAny(after, "*?[\\") &&
				len(s) >= len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after) {
				return true
			}
		}
	}
	return false
}

// ask runs the command for one call.
func (h *Hook) ask(ctx context.Context, call capability.Call) (answer, error) {
	in, err := json.Marshal(map[string]any{"hook": h.cfg.Name, "event": "before", "call": asked(call)})
	if err != nil {
		return answer{}, err
	}
	out, err := sandbox.Run(ctx, sandbox.Spec{
		Path: h.cfg.Command[0], Args: h.cfg.Command, Dir: h.cfg.Dir, Env: h.cfg.Env, Stdin: bytes.NewReader(in),
		Open:   sandbox.Open{Files: true, Network: true}, // it is the person's own program
		Limits: sandbox.Limits{Wall: h.cfg.Timeout, Output: 2 * mostOutput}, Require: sandbox.Off,
	})
	switch {
	case err != nil:
		return answer{}, err
	case out.End == sandbox.TimedOut:
		return answer{}, fmt.Errorf("did not answer within %s", duration.Text(h.cfg.Timeout))
	case out.End != sandbox.Exited:
		return answer{}, fmt.Errorf("was ended: %s %s", out.End, out.Signal)
	case out.ExitCode == refusedStatus:
		return answer{Decision: "deny", Reason: strings.TrimSpace(out.Stderr.Text())}, nil
	case out.ExitCode != 0:
		return answer{}, fmt.Errorf("ended with status %d: %s", out.ExitCode, untrusted.Line(strings.TrimSpace(out.Stderr.Text()), longestReason))
	case out.Stdout.Bytes > mostOutput:
		return answer{}, fmt.Errorf("answered with %d bytes, more than %d", out.Stdout.Bytes, mostOutput)
	}
	return read(out.Stdout.Text())
}

// read reads an answer strictly: a word that is not known might have been a no.
func read(text string) (answer, error) {
	var said answer
	if strings.TrimSpace(text) == "" {
		return said, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		return said, fmt.Errorf("the answer cannot be parsed: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return said, errors.New("the answer is followed by more text")
	}
	return said, nil
}

// asked is a call as a command sees it.
func asked(call capability.Call) any {
	arguments := call.Arguments
	if len(arguments) == 0 || !json.Valid(arguments) {
		arguments = json.RawMessage("{}")
	}
	return struct {
		Target    capability.ID        `json:"target"`
		Action    string               `json:"action,omitempty"`
		Arguments json.RawMessage      `json:"arguments"`
		Principal capability.Principal `json:"principal"`
		Session   string               `json:"session,omitempty"`
		Intent    string               `json:"intent,omitempty"`
		Mode      string               `json:"mode,omitempty"`
		Origin    capability.Caller    `json:"origin"`
		Surface   string               `json:"surface,omitempty"`
	}{call.Target, call.Action, arguments, call.Principal, call.Session, call.Intent, call.Mode, call.Origin, call.Surface}
}
