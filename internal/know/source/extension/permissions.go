package extension

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/yamldoc"
)

// What an action says about its effects, and which of its package's permissions
// it needs. Both either restrict a call more than its package is, or are hints
// that need not be believed.

// readEffects takes what a map says of what a call does. Of two words that
// cannot both be true the more careful one stands.
func readEffects(r *yamldoc.Reader) capability.Effects {
	var e capability.Effects
	hint := func(to *capability.Hint, key string) {
		if b, ok := r.Bool(key); ok {
			*to = capability.HintOf(b)
		}
	}
	hint(&e.ReadOnly, "readOnly")
	hint(&e.Destructive, "destructive")
	hint(&e.Idempotent, "idempotent")
	if effects, said := r.Bool("hasSideEffects"); said {
		if e.ReadOnly == capability.HintOf(effects) {
			r.Issue(r.Line("hasSideEffects"), "readOnly and hasSideEffects contradict each other", "keep one of them")
			effects = true
		}
		e.ReadOnly = capability.HintOf(!effects)
	}
	if e.ReadOnly == capability.Yes && e.Destructive == capability.Yes {
		r.Issue(r.Line("destructive"), "what only reads is not destructive", "keep one of readOnly and destructive")
		e.ReadOnly = capability.No
	}
	return e
}

// effectsOr takes from base what e does not say.
func effectsOr(e, base capability.Effects) capability.Effects {
	for _, h := range []struct {
		to   *capability.Hint
		base capability.Hint
	}{{&e.ReadOnly, base.ReadOnly}, {&e.Destructive, base.Destructive}, {&e.Idempotent, base.Idempotent}} {
		if *h.to == capability.Unsaid {
			*h.to = h.base
		}
	}
	return e
}

// effects settles the hints of one action. What destroys or writes to the
// workspace is not read-only, whatever its package says of all of them.
func (x *extension) effects(c *capability.Capability, s *packageSpec) capability.Effects {
	e := effectsOr(s.how.effects, x.claims)
	if e.ReadOnly != capability.Yes {
		return e
	}
	if e.Destructive == capability.Yes {
		e.ReadOnly = capability.No
	}
	if c.Run.Workspace == "write" {
		e.ReadOnly = capability.No
		x.Warn("contradiction", s.path, s.line, fmt.Sprintf("%s is to be read-only and asks to write to the workspace; it counts as writing", c.Name),
			"write workspace: read, or read_only: false")
	}
	return e
}

// packagePermissions are those that an action or command asks for itself.
type packagePermissions struct {
	names []string
	path  string
	line  int
}

// ownPermissions reads them; nil means that nothing is said. What cannot be
// read asks for nothing.
func (x *extension) ownPermissions(p string, r *yamldoc.Reader) *packagePermissions {
	f, ok := r.Field("permissions")
	if !ok {
		f, ok = r.Field("permissionsRequired")
	}
	if !ok {
		return nil
	}
	before := len(x.Problems)
	own := &packagePermissions{names: x.ReadPermissions(p, r), path: p, line: f.Line}
	for i := range x.Problems[before:] {
		x.Problems[before+i].Origin.Line = f.Line
	}
	return own
}

// permit returns a capability its permissions: its own, which must be some of
// the package's, or those of the package. A person reviews what the package
// asks for, so nothing in it may have more.
func (x *extension) permit(c *capability.Capability, s *packageSpec) bool {
	own := s.how.permissions
	if own == nil {
		c.Permissions = x.permissions
		return true
	}
	var more []string
	for _, name := range own.names {
		if !slices.Contains(x.permissions, name) {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		x.Fault("wider-permissions", own.path, own.line, fmt.Sprintf("%s asks for %s, which its package does not", c.Name, strings.Join(more, ", ")),
			fmt.Sprintf("add it to permissions_required in %s, or remove it here: an action can have less than its package, not more", format.ExtensionManifest))
		return false
	}
	c.Permissions = own.names
	return true
}
