package files

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"ken/internal/glob"
)

// An Ignore is what a .kenignore file says. It is written like a .gitignore:
//
//   - one pattern a line; empty lines and lines that begin with # say nothing
//   - * and ? stand for any part of one name, [a-z] and [!a-z] for a character,
//     and a backslash takes a character as it is
//   - ** between slashes stands for any number of folders
//   - a pattern with a slash in front or within begins at the top; any other
//     is about names wherever they are
//   - a slash at the end means folders only; what is in a hidden folder is
//     hidden too, and nothing brings it back
//   - ! in front brings back what an earlier line hid
//
// Unlike git's, it is read at the top only, upper and lower case count the
// same, and a line that cannot be understood is an error. The zero Ignore hides
// nothing.
type Ignore struct {
	rules []ignoreRule
}

type ignoreRule struct {
	parts  []string
	keep   bool
	folder bool
	line   int
}

const (
	mostRules     = 2000
	longestRule   = 1024
	mostRuleParts = 64
)

// ParseIgnore reads the text of a .kenignore file.
func ParseIgnore(text string) (*Ignore, error) {
	ig := &Ignore{}
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		n++
		r, err := parseRule(strings.TrimSuffix(line, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if r == nil {
			continue
		}
		if r.line = n; len(ig.rules) == mostRules {
			return nil, fmt.Errorf("line %d: there are more than %d patterns", n, mostRules)
		}
		ig.rules = append(ig.rules, *r)
	}
	return ig, nil
}

func parseRule(line string) (*ignoreRule, error) {
	if strings.HasPrefix(line, "#") {
		return nil, nil
	}
	trimmed := strings.TrimRight(line, " \t")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		trimmed += " " // a blank at the end that was protected
	}
	if trimmed == "" {
		return nil, nil
	}
	if len(trimmed) > longestRule {
		return nil, fmt.Errorf("the pattern has more than %d bytes", longestRule)
	}
	r := &ignoreRule{}
	if rest, ok := strings.CutPrefix(trimmed, "!"); ok {
		r.keep, trimmed = true, rest
	}
	if rest, ok := strings.CutSuffix(trimmed, "/"); ok {
		r.folder, trimmed = true, rest
	}
	anchored := strings.Contains(trimmed, "/")
	trimmed = strings.TrimPrefix(trimmed, "/")
	if trimmed == "" {
		return nil, fmt.Errorf("the pattern is only a slash; add a name")
	}
	r.parts = strings.Split(strings.ToLower(trimmed), "/")
	if !anchored {
		r.parts = append([]string{"**"}, r.parts...)
	}
	if len(r.parts) > mostRuleParts {
		return nil, fmt.Errorf("the pattern has more than %d parts", mostRuleParts)
	}
	for i, part := range r.parts {
		if part == "" || part == "." || part == ".." {
			return nil, fmt.Errorf("the pattern contains %q, which no name can match", part)
		}
		r.parts[i] = strings.ReplaceAll(part, "[!", "[^")
		if _, err := path.Match(r.parts[i], ""); err != nil {
			return nil, fmt.Errorf("invalid pattern part %q; close its bracket, or put \\ before it", part)
		}
	}
	return r, nil
}

// Match reports whether a clean relative path is hidden, and by which line. A
// path is hidden when it or a folder above it is.
func (ig *Ignore) Match(rel string, dir bool) (line int, hidden bool) {
	if ig == nil || len(ig.rules) == 0 || rel == "." {
		return 0, false
	}
	rel = strings.ToLower(rel)
	for at := 0; at < len(rel); at++ {
		if rel[at] == '/' {
			if line, hidden = ig.one(rel[:at], true); hidden {
				return line, true
			}
		}
	}
	return ig.one(rel, dir)
}

// one judges a path by itself: the last line that is about it counts.
func (ig *Ignore) one(rel string, dir bool) (line int, hidden bool) {
	for i := len(ig.rules) - 1; i >= 0; i-- {
		r := &ig.rules[i]
		if (!r.folder || dir) && r.matches(rel) {
			return r.line, !r.keep
		}
	}
	return 0, false
}

// matches reports whether a rule matches a path. A ** at the end matches the
// contents of a folder, not the folder.
func (r *ignoreRule) matches(rel string) bool {
	parts := r.parts
	if n := len(parts); n > 1 && parts[n-1] == "**" {
		parts = append(slices.Clip(parts), "*")
	}
	return glob.Path(parts, rel, matchPart)
}

func matchPart(part, name string) bool {
	ok, err := path.Match(part, name)
	return err == nil && ok
}
