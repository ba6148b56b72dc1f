package untrusted

import (
	"errors"
	"regexp"
	"strings"
	"sync"
)

// ErrSuspicious is what [SeedSanitize] refuses a text with, in the words of the
// document that defines it.
//
//lint:ignore ST1005 the words are part of the contract
var ErrSuspicious = errors.New("Suspicious content detected")

// SeedSanitize is the literal sanitizer of the first design document, kept for
// those who ask for it by the mode "seed". It strips the frontmatter, turns
// "System:" at the start of a line into "[System]:", removes <system> tags, and
// refuses three phrases with [ErrSuspicious]. It is no control: it misses nearly
// every attack and it rewrites without a trace. Use [Scan] and [Block].
//
// The rules have the meaning of the document's JavaScript expressions: letters
// match in both cases in ASCII only, a line also ends at CR, U+2028 and U+2029, and
// "." stops there. Bytes that are not UTF-8 become U+FFFD, as in a JavaScript string.
func SeedSanitize(content string) (string, error) {
	re := seedPatterns()
	content = strings.ToValidUTF8(content, "\uFFFD")
	content = stripFrontmatter(content)
	content = re.role.ReplaceAllString(content, "${1}[${2}]:")
	content = re.tag.ReplaceAllString(content, "")
	for _, suspicious := range re.suspicious {
		if suspicious.MatchString(content) {
			return "", ErrSuspicious
		}
	}
	return content, nil
}

type seedSet struct {
	role, tag  *regexp.Regexp
	suspicious []*regexp.Regexp
}

var seedPatterns = sync.OnceValue(func() seedSet {
	const notLineEnd = `[^\n\r\x{2028}\x{2029}]`
	return seedSet{
		role: regexp.MustCompile(`(^|[\n\r\x{2028}\x{2029}])(` +
			bothCases("user") + `|` + bothCases("assistant") + `|` + bothCases("system") + `):`),
		tag: regexp.MustCompile(`</?(?:` +
			bothCases("user") + `|` + bothCases("assistant") + `|` + bothCases("system") + `)>`),
		suspicious: []*regexp.Regexp{
			regexp.MustCompile(bothCases("ignore previous instructions")),
			regexp.MustCompile(bothCases("disregard") + notLineEnd + `*` + bothCases("above")),
			regexp.MustCompile(bothCases("new instructions:")),
		},
	}
})

// bothCases writes the ASCII words so that either case of each letter matches.
// Go's (?i) would also match the long s and the Kelvin sign, which
// JavaScript's flag i does not without its flag u.
func bothCases(words string) string {
	var b strings.Builder
	for _, c := range []byte(words) {
		if 'a' <= c && c <= 'z' {
			b.WriteString(string([]byte{'[', c, c - 'a' + 'A', ']'}))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// stripFrontmatter removes a block between two lines "---" at the very start.
// One that is not closed is content.
func stripFrontmatter(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	if !ok || !fence(first) {
		return s
	}
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if fence(line) {
			return rest
		}
	}
	return s
}

func fence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }
