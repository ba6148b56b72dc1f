package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/yamldoc"
)

// A unit is one folder or file being read by its format. The format adds what
// it finds; what is wrong costs only this unit, or only one capability of it.
type unit struct {
	ctx    context.Context
	root   *safefs.Root
	path   string // folder or file, relative to the root
	format string
	source string
	trust  capability.Trust
	data   []byte // the file, where the unit is a file

	// bodyLine is the line of the file on which the body begins, where the
	// body is a part of the file that Origin names; else 0.
	bodyLine int

	also      []string // further files of the tree that were read for it
	speaksFor []string // those of them whose own units stand back

	capabilities []*capability.Capability
	details      []capability.Detail // parallel to capabilities
	presets      []capability.Preset
	documents    []capability.Document
	problems     []capability.Problem
}

// origin points to a file of the unit; line 0 means the whole file.
func (u *unit) origin(p string, line int) capability.Origin {
	return capability.Origin{
		Source: u.source, Format: u.format, Location: capability.Local,
		Path: u.root.Display(p), Line: line,
	}
}

// add takes a capability into the catalog. Origin.Path and Line come from p
// and line unless the format has set a more exact origin; trust, defaults,
// hash and findings are filled in here, the same for every format.
func (u *unit) add(c *capability.Capability, d capability.Detail, p string, line int) {
	if c.Origin.Path == "" {
		pointer, offset, length := c.Origin.Pointer, c.Origin.Offset, c.Origin.Length
		c.Origin = u.origin(p, line)
		c.Origin.Pointer, c.Origin.Offset, c.Origin.Length = pointer, offset, length
	}
	c.Trust = u.trust
	seal.Seal(c, d)
	for i, f := range c.Findings {
		if u.bodyLine > 0 && f.Field == "body" && f.Line > 0 {
			c.Findings[i].Line += u.bodyLine - 1
		}
	}
	u.capabilities = append(u.capabilities, c)
	u.details = append(u.details, d)
}

// fault records that something was lost, warn that something looks wrong.
func (u *unit) fault(code, p string, line int, message, fix string) {
	u.problems = append(u.problems, capability.Problem{
		Severity: capability.Grave, Code: code, Origin: u.origin(p, line), Message: message, Fix: fix,
	})
}

func (u *unit) warn(code, p string, line int, message, fix string) {
	u.problems = append(u.problems, capability.Problem{
		Severity: capability.Warning, Code: code, Origin: u.origin(p, line), Message: message, Fix: fix,
	})
}

// faultErr records why a file could not be read or parsed. first is the line
// of the file on which the parsed text began, from 1.
func (u *unit) faultErr(code, p string, first int, err error) {
	var ye *yamldoc.Error
	if errors.As(err, &ye) {
		ye = ye.Moved(first - 1)
		u.fault(code, p, ye.Line, ye.Message, ye.Fix)
		return
	}
	u.problems = append(u.problems, safefs.Problem(err, capability.Grave, u.origin(p, 0)))
}

// warnIssues turns what a Reader complained about into warnings.
func (u *unit) warnIssues(code, p string, first int, r *yamldoc.Reader) {
	for _, e := range r.Issues() {
		e = e.Moved(first - 1)
		u.warn(code, p, e.Line, e.Message, e.Fix)
	}
}

// keepRest keeps the fields that a format does not know in c.Meta and, where
// mention is set, says so.
func (u *unit) keepRest(c *capability.Capability, p string, first int, r *yamldoc.Reader, mention bool) {
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
			u.mentionKept(strings.TrimSuffix(u.format, "list"), p, f.Line+first-1, f.Key, r.Suggest(f.Key))
		}
	}
}

// mentionKept says that something has a key which its format does not know.
// meant is the key that was probably meant, or "".
func (u *unit) mentionKept(what, p string, line int, key, meant string) {
	fix := "remove it, unless another program reads it"
	if meant != "" {
		fix = "did you mean " + meant + "?"
	}
	u.warn("unknown-key", p, line, fmt.Sprintf("%s has no key %s; it is kept as metadata", what, key), fix)
}

// file reads a file of the unit's folder by a path that a manifest gave. No
// link leads out of the folder.
func (u *unit) file(given string, limit int64) ([]byte, string, error) {
	p, err := safefs.Join(u.path, given)
	if err != nil {
		return nil, given, err
	}
	data, err := u.root.ReadBeneath(u.path, given, limit)
	return data, p, err
}
