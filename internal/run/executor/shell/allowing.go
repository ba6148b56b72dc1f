package shell

import (
	"slices"
	"strings"
)

// allowing tells a person what to change so that the shell may do more: what by
// names, or else the user's own setting. The key is one value, so what else it
// said has to be said again.
func allowing(by, fields string) string {
	if by != "" {
		return "this is set by " + by + "; a person can change it there"
	}
	return "a person can allow it in tool-access.json or, if there is none, with: ken config set policy.toolAccess '{tools: {shell: {" + fields +
		"}}}' (it replaces what policy.toolAccess said before)"
}

// widening returns the setting that allows one more command in addition to
// those allowed now. A list replaces the previous or built-in one, so it is
// written out in full.
//
// The command comes from a caller, and people paste the line into a shell, so
// only words without a special meaning in a shell and in YAML are used.
func widening(s Settings, command string) string {
	all := append(slices.Clone(s.AllowedPrefixes), command)
	for i, prefix := range all {
		if !plain(prefix) {
			return allowing(s.By, "mode: allowlist, allowedPrefixes: [PROGRAM, …]")
		}
		if slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(prefix)) {
			all[i] = `"` + prefix + `"` // a word of YAML
		}
	}
	return allowing(s.By, "mode: allowlist, allowedPrefixes: ["+strings.Join(all, ", ")+"]")
}

// plain reports whether a prefix stands for itself in a list of YAML and
// between a shell's single quotes.
func plain(prefix string) bool {
	if prefix == "" || !letter(rune(prefix[0])) {
		return false
	}
	return !strings.ContainsFunc(prefix, func(r rune) bool {
		return !letter(r) && (r < '0' || r > '9') && !strings.ContainsRune(" -_./+*=", r)
	})
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
