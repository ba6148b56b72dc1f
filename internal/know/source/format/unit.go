package format

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/yamldoc"
)

// A Unit is one folder or file being read by its format. The format adds what
// it finds; what is wrong costs only this unit, or only one capability of it.
type Unit struct {
	Context context.Context
	Root    *safefs.Root
	Path    string // folder or file, relative to the root
	Format  string
	Source  string
	Trust   capability.Trust
	Data    []byte // the file, where the unit is a file

	// Sealer, when not nil, seals what is added. A format that reads many
	// capabilities of one file sets it.
	Sealer *seal.Sealer

	// Parse reads a file of the unit, whose bytes are data, by another format. The
	// result is a unit of its own; nothing of it is in this one.
	Parse func(format, p string, data []byte) *Unit

	// BodyLine is the line of the file on which the body begins, where the
	// body is a part of the file that Origin names; else 0.
	BodyLine int

	Also     []string // further files of the tree that were read for it
	Replaces []string // those of them whose own units are left out of the catalog

	Capabilities []*capability.Capability
	Details      []capability.Detail // parallel to capabilities
	Presets      []capability.Preset
	Documents    []capability.Document
	Problems     []capability.Problem
}

// Origin points to a file of the unit; line 0 means the whole file.
func (u *Unit) Origin(p string, line int) capability.Origin {
	return capability.Origin{
		Source: u.Source, Format: u.Format, Location: capability.Local,
		Path: u.Root.Display(p), Line: line,
	}
}

// Add takes a capability into the catalog. Origin.Path and Line come from p
// and line unless the format has set a more exact origin; trust, defaults,
// hash and findings are filled in here, the same for every format.
func (u *Unit) Add(c *capability.Capability, d capability.Detail, p string, line int) {
	if c.Origin.Path == "" {
		pointer, offset, length := c.Origin.Pointer, c.Origin.Offset, c.Origin.Length
		c.Origin = u.Origin(p, line)
		c.Origin.Pointer, c.Origin.Offset, c.Origin.Length = pointer, offset, length
	}
	c.Trust = u.Trust
	u.Sealer.Seal(c, d)
	for i, f := range c.Findings {
		if u.BodyLine > 0 && f.Field == "body" && f.Line > 0 {
			c.Findings[i].Line += u.BodyLine - 1
		}
	}
	u.Capabilities = append(u.Capabilities, c)
	u.Details = append(u.Details, d)
}

// Fault records that something was lost, warn that something looks wrong.
func (u *Unit) Fault(code, p string, line int, message, fix string) {
	u.Problems = append(u.Problems, capability.Problem{
		Severity: capability.Grave, Code: code, Origin: u.Origin(p, line), Message: message, Fix: fix,
	})
}

// Warn records that something looks wrong, though nothing was lost.
func (u *Unit) Warn(code, p string, line int, message, fix string) {
	u.Problems = append(u.Problems, capability.Problem{
		Severity: capability.Warning, Code: code, Origin: u.Origin(p, line), Message: message, Fix: fix,
	})
}

// FaultErr records why a file could not be read or parsed. first is the line
// of the file on which the parsed text began, from 1.
func (u *Unit) FaultErr(code, p string, first int, err error) {
	var ye *yamldoc.Error
	if errors.As(err, &ye) {
		ye = ye.Moved(first - 1)
		u.Fault(code, p, ye.Line, ye.Message, ye.Fix)
		return
	}
	u.Problems = append(u.Problems, safefs.Problem(err, capability.Grave, u.Origin(p, 0)))
}

// WarnIssues turns what a Reader complained about into warnings.
func (u *Unit) WarnIssues(code, p string, first int, r *yamldoc.Reader) {
	for _, e := range r.Issues() {
		e = e.Moved(first - 1)
		u.Warn(code, p, e.Line, e.Message, e.Fix)
	}
}

// KeepRest keeps the fields that a format does not know in c.Meta and, where
// mention is set, says so.
func (u *Unit) KeepRest(c *capability.Capability, p string, first int, r *yamldoc.Reader, mention bool) {
	for _, f := range r.Rest() {
		if c.Meta == nil {
			c.Meta = map[string]string{}
		}
		if s, ok := f.Value.Any.(string); ok {
			c.Meta[f.Key] = s
		} else {
			c.Meta[f.Key] = string(f.Value.JSON())
		}
		if mention {
			u.MentionKept(strings.TrimSuffix(u.Format, "list"), p, f.Line+first-1, f.Key, r.Suggest(f.Key))
		}
	}
}

// MentionKept says that something has a key which its format does not know.
// meant is the key that was probably meant, or "".
func (u *Unit) MentionKept(what, p string, line int, key, meant string) {
	fix := "remove it, unless another program reads it"
	if meant != "" {
		fix = "did you mean " + meant + "?"
	}
	u.Warn("unknown-key", p, line, fmt.Sprintf("%s has no key %s; it is kept as metadata", what, key), fix)
}

// File reads a file of the unit's folder by a path that a manifest gave. No
// link leads out of the folder.
func (u *Unit) File(given string, limit int64) ([]byte, string, error) {
	p, err := safefs.Join(u.Path, given)
	if err != nil {
		return nil, given, err
	}
	data, err := u.Root.ReadBeneath(u.Path, given, limit)
	return data, p, err
}

// FaultJSON records what is wrong with a file that is one JSON text.
func (u *Unit) FaultJSON(data []byte, err error) {
	var je *jsonscan.Error
	if !errors.As(err, &je) {
		u.FaultErr("bad-json", u.Path, 1, err)
		return
	}
	u.Fault(je.Code, u.Path, jsonscan.LineAt(data, je.Offset), je.Message, je.Fix)
}
