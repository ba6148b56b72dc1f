// Package definitions pins the MCP server definitions in files that other
// programs write, which mcp.import names. A server that Ken confines could
// change such a file. So the first reading of a file is trusted as a whole, and
// a server that is new or different in it later is not started until a person
// has accepted the difference.
package definitions

import (
	"context"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
)

// Tool is the name of a definition among the tools of its server that wait for
// review.
const Tool = "(definition)"

// fileTool is pinned with the definitions of a file, so that a file without
// definitions is pinned too. No server has this name.
const fileTool = "(the file)"

// inputField is how the pin of a tool begins the names of the fields of a
// definition.
const inputField = "input."

// A Config says what [Pins] works with.
type Config struct {
	Desk      func() (*pin.Desk, error) // keeps the pins; opened at the first use
	Key       func() (audit.Key, error) // digests the values that are not shown
	Reviewers []string                  // roles that may accept a definition
}

// Pins remembers the definitions that were accepted. Its methods are safe for
// concurrent use.
type Pins struct{ cfg Config }

// New returns the pins of definitions. It opens nothing yet.
func New(cfg Config) *Pins { return &Pins{cfg} }

// deskKey returns the key of the pins of a file. A file's path begins with a
// slash, so it is no server's key.
func deskKey(file string) string { return pin.ServerKey("mcp.import", "definitions in "+file) }

// Held returns, by name, why servers of a file may not be started. It pins the
// file at its first reading. Servers that are not in the result may be started.
func (p *Pins) Held(ctx context.Context, file string, list []connect.Server) map[string]string {
	out := map[string]string{}
	verdicts, err := p.check(ctx, file, list)
	for _, s := range list {
		switch v := verdicts[s.Name]; {
		case v.State == pin.Accepted:
		case err != nil:
			out[s.Name] = "unknown: " + err.Error()
		case v.State == pin.Added:
			out[s.Name] = "it was not in the file before; " + withoutInput(v.Diff)
		default:
			out[s.Name] = withoutInput(v.Diff)
		}
	}
	return out
}

// check compares the definitions of a file with their pins.
func (p *Pins) check(ctx context.Context, file string, list []connect.Server) (map[string]pin.Verdict, error) {
	desk, err := p.cfg.Desk()
	if err != nil {
		return nil, err
	}
	key, err := p.cfg.Key()
	if err != nil {
		return nil, err
	}
	tools := []pin.Tool{{Name: fileTool}}
	for _, s := range list {
		tools = append(tools, canonical(key, s))
	}
	verdicts, err := desk.Check(ctx, deskKey(file), tools)
	if err != nil {
		return verdicts, err
	}
	disabled := map[string]string{}
	for _, s := range list {
		if v := verdicts[s.Name]; v.State == pin.Changed && s.Disabled {
			disabled[s.Name] = v.Hash
		}
	}
	if len(disabled) == 0 {
		return verdicts, nil
	}
	if err := p.acceptDisabled(ctx, desk, deskKey(file), disabled); err != nil {
		return verdicts, err
	}
	return desk.Check(ctx, deskKey(file), tools)
}

// acceptDisabled accepts that servers were disabled, where nothing else about
// them differs: that needs no review, and enabling them again does. hashes has
// the disabled servers by name.
func (p *Pins) acceptDisabled(ctx context.Context, desk *pin.Desk, key string, hashes map[string]string) error {
	all, err := desk.Pending(ctx, key)
	if err != nil {
		return err
	}
	shown := map[string]string{}
	for _, w := range all {
		if w.Hash == hashes[w.Tool] && len(w.Differences) == 1 && w.Differences[0].Field == inputField+"disabled" {
			shown[w.Tool] = w.Hash
		}
	}
	return desk.Accept(ctx, key, shown, capability.Principal{ID: "mcp.import", Roles: p.cfg.Reviewers})
}

// withoutInput removes the prefix that the fields of a tool have in a text.
func withoutInput(text string) string { return strings.ReplaceAll(text, inputField, "") }

// Waiting returns the definition of a server that waits for review, under the
// name [Tool], or nil if none does.
func (p *Pins) Waiting(ctx context.Context, file, server string) (*pin.Waiting, error) {
	desk, err := p.cfg.Desk()
	if err != nil {
		return nil, err
	}
	all, err := desk.Pending(ctx, deskKey(file))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(w pin.Waiting) bool { return w.Tool == server })
	if i < 0 {
		return nil, nil
	}
	w := all[i]
	w.Tool = Tool
	w.Differences = slices.Clone(w.Differences)
	for i := range w.Differences {
		f := &w.Differences[i].Field
		if *f = strings.TrimPrefix(*f, inputField); *f == "input" {
			*f = Tool
		}
	}
	return &w, nil
}

// Accept accepts the definition of a server that by was shown. hash is that of
// [Pins.Waiting].
func (p *Pins) Accept(ctx context.Context, file, server, hash string, by capability.Principal) error {
	desk, err := p.cfg.Desk()
	if err != nil {
		return err
	}
	return desk.Accept(ctx, deskKey(file), map[string]string{server: hash}, by)
}

// UnknownRevision is the revision of pins that cannot be read.
const UnknownRevision = -1

// Revision returns a number that changes whenever the pins of a file change.
func (p *Pins) Revision(ctx context.Context, file string) int64 {
	desk, err := p.cfg.Desk()
	if err != nil {
		return UnknownRevision
	}
	revision, err := desk.Revision(ctx, deskKey(file))
	if err != nil {
		return UnknownRevision
	}
	return revision
}
