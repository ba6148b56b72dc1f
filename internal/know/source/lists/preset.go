package lists

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/yamldoc"
)

// Presets: capabilities that are used together, listed in presets.yaml as
// entries with name and members, or as a map from names to members.

// PresetFormat returns the format of presets.yaml.
func PresetFormat() format.Format {
	return format.Format{Name: "preset", Claims: isPresetList, Limit: format.ListLimit, Read: readPresets}
}

func isPresetList(p string, _ []byte) bool { return format.IsListFile(p, "presets") }

func readPresets(u *format.Unit) {
	for _, e := range u.ListEntries("presets", true) {
		if p, ok := presetOf(u, e); ok {
			p.Origin = u.Origin(u.Path, e.Line)
			u.Presets = append(u.Presets, p)
		}
	}
}

func presetOf(u *format.Unit, e format.Entry) (capability.Preset, bool) {
	p := capability.Preset{Name: strings.TrimSpace(e.Key)}
	if r, ok := e.Reader(); ok {
		if name := strings.TrimSpace(r.String("name")); name != "" {
			p.Name = name
		}
		p.Members = append(r.Words("members"), r.Words("capabilities")...)
		r.Field("description") // a preset has no place for it, and needs none
		u.WarnIssues("bad-value", u.Path, 1, r)
		for _, f := range r.Rest() {
			fix := "a preset has a name and members"
			if meant := r.Suggest(f.Key); meant != "" {
				fix = "did you mean " + meant + "? " + fix
			}
			u.Warn("unknown-key", u.Path, f.Line, fmt.Sprintf("a preset has no key %s; it is not kept", f.Key), fix)
		}
	} else {
		// "name: [members]" is read as if it were written in full.
		r := yamldoc.NewReader(&yamldoc.Map{Line: e.Line, Fields: []yamldoc.Field{{Key: "members", Line: e.Line, Value: e.Value}}})
		p.Members = r.Words("members")
		u.WarnIssues("bad-value", u.Path, 1, r)
	}
	p.Members = presetMembers(u, p.Members, e.Line)
	switch {
	case p.Name == "":
		u.Fault("no-name", u.Path, e.Line, "the preset has no name", "add name:")
		return p, false
	case len(p.Members) == 0:
		u.Fault("no-members", u.Path, e.Line, fmt.Sprintf("preset %s has no members", p.Name), "add members: with ids or names of capabilities")
		return p, false
	}
	return p, true
}

// presetMembers drops blanks, and repeats with a word.
func presetMembers(u *format.Unit, given []string, line int) []string {
	var out []string
	for _, m := range given {
		m = strings.TrimSpace(m)
		if m == "" {
			continue
		}
		if slices.Contains(out, m) {
			u.Warn("repeated-member", u.Path, line, fmt.Sprintf("%s is a member twice", m), "name it once")
			continue
		}
		out = append(out, m)
	}
	return out
}
