package shell

import (
	"slices"
	"strings"
)

// allowing tells a person what to type so that the shell may do more. The key
// is one value, so what else it said has to be said again.
func allowing(fields string) string {
	return "a person can allow it in their tool-access.json, or where there is none with: ken config set policy.toolAccess '{tools: {shell: {" + fields +
		"}}}' (it replaces what policy.toolAccess said before)"
}

// widening is what allows one more command and all that was allowed. A list
// replaces the one before, the built-in one too, so that it is given whole.
//
// The command is a caller's word, and the line is there to be pasted
// into a shell: only words that mean nothing to a shell and to YAML get there.
func widening(prefixes []string, command string) string {
	all := append(slices.Clone(prefixes), command)
	for i, prefix := range all {
		if !plain(prefix) {
			return "; " + allowing("mode: allowlist, allowedPrefixes: [PROGRAM, …]")
		}
		if slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(prefix)) {
			all[i] = `"` + prefix + `"` // a word of YAML
		}
	}
	return "; " + allowing("mode: allowlist, allowedPrefixes: ["+strings.Join(all, ", ")+"]")
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
