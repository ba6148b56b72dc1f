package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Narrow returns what both allow. An entry of a list stays where the other list
// covers it whole; two that only overlap are both dropped. It never allows what
// a or b refuses, and in either order it allows the same.
//
// Tools of the result name a line only where a single file speaks. By is that
// of a, or of b where b allows less.
func (a ToolAccess) Narrow(b ToolAccess) ToolAccess {
	out := ToolAccess{
		Name: cmp.Or(a.Name, b.Name), Enabled: a.Enabled && b.Enabled, Mode: min(a.Mode, b.Mode),
		Allowed: narrowList(a.Mode, b.Mode, a.Allowed, b.Allowed, coversTool), Tools: map[string]Tool{},
	}
	out.By = a.By
	if a.Enabled && !b.Enabled || b.Mode < a.Mode || out.Mode == AccessAllowlist && a.Mode == AccessAllowlist && !slices.Equal(out.Allowed, a.Allowed) {
		out.By = cmp.Or(b.By, b.Name, a.By)
	}
	two := a.Name != "" && b.Name != "" && a.Name != b.Name
	if two {
		out.Name = a.Name + " and " + b.Name
	}
	for _, names := range []map[string]Tool{a.Tools, b.Tools} {
		for name := range names {
			x, y := a.Tool(name), b.Tool(name)
			t := Tool{
				Enabled: x.Enabled && y.Enabled, Mode: min(x.Mode, y.Mode),
				AllowedPrefixes: narrowList(x.Mode, y.Mode, x.AllowedPrefixes, y.AllowedPrefixes, coversCommand),
				Timeout:         min(x.Timeout, y.Timeout), MaxOutputChars: min(x.MaxOutputChars, y.MaxOutputChars),
				AllowAnyCwd: x.AllowAnyCwd && y.AllowAnyCwd, Line: max(x.Line, y.Line), By: x.By,
			}
			if x.Enabled && !y.Enabled || y.Mode < x.Mode || t.Mode == AccessAllowlist && x.Mode == AccessAllowlist && !slices.Equal(t.AllowedPrefixes, x.AllowedPrefixes) {
				t.By = cmp.Or(y.By, b.Name, x.By)
			}
			if two {
				t.Line = 0
			}
			out.Tools[name] = t
		}
	}
	return out
}

// narrowList returns what is left of two lists, each of which counts only in the
// mode allowlist.
func narrowList(x, y AccessMode, a, b []string, covers func(wide, narrow string) bool) []string {
	switch {
	case x == AccessOff || y == AccessOff:
		return nil
	case x == AccessFull:
		return b
	case y == AccessFull:
		return a
	}
	var out []string
	keep := func(list, other []string) {
		for _, s := range list {
			if !slices.Contains(out, s) && slices.ContainsFunc(other, func(w string) bool { return covers(w, s) }) {
				out = append(out, s)
			}
		}
	}
	keep(a, b)
	keep(b, a)
	return out
}

// coversTool reports whether every capability that one entry of allowedTools
// means is meant by another.
func coversTool(wide, narrow string) bool {
	return wide == narrow || coversWord(wide, narrow) && coversWord(wide, ToolName(narrow))
}

// coversCommand reports whether every command that one prefix allows is
// allowed by another. Beyond its own words a prefix refuses options that run
// something else, which a longer one may name.
func coversCommand(wide, narrow string) bool {
	w, n := strings.Fields(wide), strings.Fields(narrow)
	if len(w) == 0 || len(n) < len(w) {
		return false
	}
	for i, word := range w {
		if word != n[i] && !coversWord(word, n[i]) {
			return false
		}
	}
	more := n[len(w):]
	if len(more) == 0 {
		return true
	}
	var p pattern
	for _, word := range w {
		p = append(p, []string{word})
	}
	return !strings.Contains(n[0], "*") && !slices.ContainsFunc(more, func(word string) bool { return strings.Contains(word, "*") }) && p.names(n)
}

// coversWord reports whether a pattern matches all that another does. A star
// takes a star in; a question mark must not.
func coversWord(wide, narrow string) bool {
	return strings.Contains(wide, "*") && !strings.Contains(wide, "?") && wild(wide, narrow, false)
}
