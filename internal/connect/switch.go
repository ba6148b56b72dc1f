package connect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"ken/capability"
)

// Switch sets whether a server of a document of the form that clients share is
// used, and changes nothing else in it, not a byte. It reports whether there was
// anything to change. A server that is not there is an error of kind NotFound.
func Switch(existing []byte, name string, on bool) (out []byte, changed bool, err error) {
	fail := func(kind capability.ErrorKind, err error, fix string) ([]byte, bool, error) {
		return nil, false, &capability.Error{Kind: kind, Op: "switch MCP server", Target: name, Err: err, Fix: fix}
	}
	root, perr := parseJSON(existing)
	if perr != nil {
		return fail(capability.Invalid, perr, "fix the file")
	}
	list := root.get("mcpServers")
	if list == nil {
		list = root.get("servers")
	}
	entry := list.get(name)
	switch {
	case entry == nil:
		return fail(capability.NotFound, errors.New("server not found in the file"), "see ken extension list")
	case entry.kind != object:
		return fail(capability.Invalid, errors.New("entry is not an object in braces"), "fix the file")
	}
	before, _ := ReadServers(existing)
	i := slices.IndexFunc(before, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return fail(capability.Invalid, errors.New("entry is invalid"), "fix it; ken catalog lint says what is wrong")
	}
	if before[i].Disabled != on {
		return existing, false, nil
	}
	out = apply(existing, switchEdits(existing, root, entry, on))
	if err := switchedRight(before, out, i, on); err != nil {
		return fail(capability.Internal, err, `write "disabled" into its entry by hand`)
	}
	return out, true, nil
}

// switchEdits writes or takes away "disabled". Some clients say "enabled"
// instead, which is left unless it is what switches the server off.
func switchEdits(data []byte, root, entry *node, on bool) []edit {
	var edits []edit
	if off := entry.get("enabled"); on && off != nil && off.text == "false" {
		edits = append(edits, edit{off.start, off.end, "true"})
	}
	switch said := entry.get("disabled"); {
	case on && said != nil:
		return append(edits, withoutDisabled(data, root, entry)...)
	case on:
	case said != nil:
		edits = append(edits, edit{said.start, said.end, "true"})
	default:
		s := styleOf(data, root)
		render := func(p put, _ string) string { return quote(p.name) + colon(s) + p.raw }
		edits = append(edits, appended(data, entry, []put{{name: "disabled", raw: "true"}}, s, render))
	}
	return edits
}

// withoutDisabled takes the member away. Where it is the last one, as Switch
// writes it, nothing is left of it.
func withoutDisabled(data []byte, root, entry *node) []edit {
	if n := len(entry.members); n > 1 && entry.members[n-1].name == "disabled" && entry.twice() == "" {
		before, m := entry.members[n-2], entry.members[n-1]
		blank := func(from, to int) bool { return len(bytes.TrimSpace(data[from:to])) == 0 }
		switch {
		case !blank(before.comma+1, m.start): // a comment
		case m.comma < 0:
			return []edit{{before.comma, m.end, ""}}
		case blank(m.end, m.comma):
			return []edit{{before.comma + 1, m.comma + 1, ""}}
		}
	}
	c := change{drop: map[string]bool{"disabled": true}}
	return editList(data, entry, c, styleOf(data, root), nil)
}

// switchedRight reads a changed document back: only the one server may differ,
// and only in this.
func switchedRight(before []Server, out []byte, i int, on bool) error {
	after, _ := ReadServers(out)
	if len(after) != len(before) {
		return errors.New("the edit would change how many servers there are")
	}
	for j, s := range after {
		was := before[j]
		if j == i {
			was.Disabled = !on
		}
		was.Line, s.Line = 0, 0
		if was.Name != s.Name || was.Disabled != s.Disabled || !was.same(s) {
			return fmt.Errorf("the edit would change the server %s", was.Name)
		}
	}
	return nil
}
