package source

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// Presets: capabilities that are used together, listed in presets.yaml as
// entries with name and members, or as a map from names to members.

func presetFormat() format {
	return format{name: "preset", claims: isPresetList, limit: listBytes, read: readPresets}
}

func isPresetList(p string, _ []byte) bool { return isListFile(p, "presets") }

func readPresets(u *unit) {
	for _, e := range u.listEntries("presets", true) {
		if p, ok := u.preset(e); ok {
			p.Origin = u.origin(u.path, e.line)
			u.presets = append(u.presets, p)
		}
	}
}

func (u *unit) preset(e listEntry) (capability.Preset, bool) {
	p := capability.Preset{Name: strings.TrimSpace(e.key)}
	if r, ok := e.reader(); ok {
		if name := strings.TrimSpace(r.String("name")); name != "" {
			p.Name = name
		}
		p.Members = append(r.Words("members"), r.Words("capabilities")...)
		r.Field("description") // a preset has no place for it, and needs none
		u.warnIssues("bad-value", u.path, 1, r)
		for _, f := range r.Rest() {
			fix := "a preset has a name and members"
			if meant := r.Suggest(f.Key); meant != "" {
				fix = "did you mean " + meant + "? " + fix
			}
			u.warn("unknown-key", u.path, f.Line, fmt.Sprintf("a preset has no key %s; it is not kept", f.Key), fix)
		}
	} else {
		// "name: [members]" is read as if it were written in full.
		r := yamldoc.NewReader(&yamldoc.Map{Line: e.line, Fields: []yamldoc.Field{{Key: "members", Line: e.line, Value: e.value}}})
		p.Members = r.Words("members")
		u.warnIssues("bad-value", u.path, 1, r)
	}
	p.Members = u.members(p.Members, e.line)
	switch {
	case p.Name == "":
		u.fault("no-name", u.path, e.line, "the preset has no name", "add name:")
		return p, false
	case len(p.Members) == 0:
		u.fault("no-members", u.path, e.line, fmt.Sprintf("preset %s has no members", p.Name), "add members: with ids or names of capabilities")
		return p, false
	}
	return p, true
}

// members drops blanks, and repeats with a word.
func (u *unit) members(given []string, line int) []string {
	var out []string
	for _, m := range given {
		m = strings.TrimSpace(m)
		if m == "" {
			continue
		}
		if slices.Contains(out, m) {
			u.warn("repeated-member", u.path, line, fmt.Sprintf("%s is a member twice", m), "name it once")
			continue
		}
		out = append(out, m)
	}
	return out
}
