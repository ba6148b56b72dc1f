// Package glob matches paths and names against patterns with * and ?. It is the
// only matcher of path patterns in Ken. Patterns come from projects, so the
// running time is bounded by the product of the lengths of pattern and text.
package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path reports whether a path matches the parts of a pattern, split at its
// slashes. "**" matches any number of names, including none; same compares any
// other part with one name. A "**" at the end of a pattern does not match the
// empty name at the end of the path "/".
func Path(parts []string, path string, same func(part, name string) bool) bool {
	// Only the last "**" matters: whatever an earlier one could match, the last
	// one can match as well. So there is only one place to backtrack to.
	i, star, mark := 0, -1, ""
	for {
		if i < len(parts) && parts[i] == "**" {
			for i+1 < len(parts) && parts[i+1] == "**" {
				i++
			}
			if i == len(parts)-1 {
				return path != ""
			}
			star, mark = i, path
			i++
			continue
		}
		if i < len(parts) {
			name, rest, more := strings.Cut(path, "/")
			switch {
			case !same(parts[i], name):
			case !more:
				// The path is exhausted. Backtracking would leave even less of
				// it.
				return i == len(parts)-1 || name != "" && onlyStars(parts[i+1:])
			case i+1 < len(parts):
				path, i = rest, i+1
				continue
			}
		}
		slash := strings.IndexByte(mark, '/')
		if star < 0 || slash < 0 {
			return false
		}
		mark = mark[slash+1:]
		path, i = mark, star+1
	}
}

func onlyStars(parts []string) bool {
	for _, part := range parts {
		if part != "**" {
			return false
		}
	}
	return true
}

// Name reports whether a name matches a pattern in which * matches any
// characters and ? matches one. With fold, case is ignored.
func Name(pattern, name string, fold bool) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		c, n := utf8.DecodeRuneInString(name[j:])
		if i < len(pattern) && pattern[i] == '*' {
			star, mark = i, j
			i++
			continue
		}
		if i < len(pattern) {
			p, m := utf8.DecodeRuneInString(pattern[i:])
			if p == '?' || p == c || fold && unicode.ToLower(p) == unicode.ToLower(c) {
				i, j = i+m, j+n
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, step := utf8.DecodeRuneInString(name[mark:])
		mark += step
		i, j = star+1, mark
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
