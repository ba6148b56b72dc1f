// Package permission knows the names of permissions: those of this program, and
// those that packages and configurations of others use for the same. What reads a
// package and what decides about its calls ask here, so that a review never says
// other than what is enforced.
package permission

import "slices"

// names are the permissions in the seed's order, each with its aliases.
var names = [...][]string{
	{"exec", "exec_shell"},
	{"network", "net", "http", "network_http"},
	{"filesystem.read", "fs_read", "fs.read"},
	{"filesystem.write", "fs_write", "fs.write"},
	{"browser"},
	{"llm"},
}

// Names lists the permissions, without aliases.
func Names() []string {
	var out []string
	for _, one := range names {
		out = append(out, one[0])
	}
	return out
}

// Find returns which of [Names] a word means, or -1 for a word that means none.
func Find(word string) int {
	return slices.IndexFunc(names[:], func(one []string) bool { return slices.Contains(one, word) })
}
