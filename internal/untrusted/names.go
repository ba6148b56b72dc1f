package untrusted

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxName is how many runes a name may have; the longest name that providers
// accept for a tool has 128.
const maxName = 128

// Skeleton returns what name looks like: two names that a reader can take for
// each other have the same skeleton. Case, separators (- _ . and blanks), width and
// other compatibility forms, accents, look-alike letters of other scripts,
// invisible characters, 1/l/i, 0/o, rn/m and vv/w make no difference. A prefix
// such as "server__" does; see [Local].
//
// The skeleton is for comparing, not for showing. Skeleton(Skeleton(s)) ==
// Skeleton(s).
func Skeleton(name string) string {
	s := reduce(name, stageLookAlike)
	s = strings.ReplaceAll(s, "rn", "m")
	return strings.ReplaceAll(s, "vv", "w")
}

// AppendSkeleton adds the skeleton of a name to dst, without memory of its own for a
// name of ASCII.
func AppendSkeleton(dst []byte, name string) []byte {
	start, ascii := len(dst), lookAlikes()
	for i := range len(name) {
		b := name[i]
		if b >= utf8.RuneSelf {
			return append(dst[:start], Skeleton(name)...)
		}
		l, last := ascii[b], len(dst)-1
		switch {
		case l == 0:
		case l == 'n' && last >= start && dst[last] == 'r':
			dst[last] = 'm'
		case l == 'v' && last >= start && dst[last] == 'v':
			dst[last] = 'w'
		default:
			dst = append(dst, l)
		}
	}
	return dst
}

// Local returns the part of name after its path or namespace prefixes:
// "read_file" for "server__read_file", "../read_file" and "fs:read_file". A name
// that is all prefix is returned as it is.
func Local(name string) string {
	if plainName(name) && !strings.Contains(name, "__") {
		return name
	}
	local := name
	for _, sep := range [...]string{"__", "/", "\\", ":", "∕", "⁄", "／"} {
		trimmed := strings.TrimRight(local, "_")
		if i := strings.LastIndex(trimmed, sep); i >= 0 {
			local = local[i+len(sep):]
		}
	}
	if strings.Trim(local, "_") == "" {
		return name
	}
	return local
}

// A stage is how far [reduce] goes in taking away what makes names differ. Each
// includes those before it, and each is the reason of an [Imitation] that only
// it uncovers.
type stage uint8

const (
	stageInvisible stage = iota
	stageWidth
	stageCase
	stageSeparator
	stageHomoglyph
	stageLookAlike
)

// reduce takes away from name what makes it differ from names that look alike.
func reduce(name string, to stage) string {
	out := make([]byte, 0, len(name))
	ascii := lookAlikes()
	for i := 0; i < len(name); {
		if b := name[i]; b < utf8.RuneSelf && to == stageLookAlike {
			if l := ascii[b]; l != 0 {
				out = append(out, l)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		c := classOf(r)
		if c == shown && to >= stageWidth {
			for _, d := range decompose(name[i:], r, size) {
				out = appendReduced(out, d, to)
			}
		} else if c == shown {
			out = utf8.AppendRune(out, r)
		}
		i += size
	}
	if to < stageSeparator {
		return strings.TrimSpace(string(out))
	}
	return string(out)
}

// lookAlikes are the characters of ASCII as stageLookAlike leaves them; 0 is none.
// A large catalog has some hundred thousand names to compare.
var lookAlikes = sync.OnceValue(func() *[utf8.RuneSelf]byte {
	var table [utf8.RuneSelf]byte
	for b := range byte(utf8.RuneSelf) {
		if out := appendReduced(nil, rune(b), stageLookAlike); len(out) > 0 {
			table[b] = out[0]
		}
	}
	return &table
})

func appendReduced(out []byte, r rune, to stage) []byte {
	if decorative(r) || classOf(r) != shown {
		return out
	}
	if to >= stageHomoglyph {
		r = fold(r)
	} else if to >= stageCase {
		r = unicode.ToLower(r)
	}
	if to >= stageSeparator && separator(r) {
		return out
	}
	if to >= stageLookAlike {
		switch r {
		case '1', 'l', '!':
			r = 'i'
		case '0':
			r = 'o'
		}
	}
	return utf8.AppendRune(out, r)
}

func separator(r rune) bool {
	return r == '.' || r == '·' || r == '\u30FB' || unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Pc)
}

// NameFindings reports what is wrong with a name by itself. Ordinary names in any
// script have no findings; that a name equals or resembles another is for [Names] to say.
func NameFindings(name string) []Finding {
	if plainName(name) {
		return nil
	}
	return nameFindings(name)
}

// nameFindings is NameFindings for names that are not plain.
func nameFindings(name string) []Finding {
	var found []Finding
	add := func(rule string, sev Severity) {
		found = append(found, Finding{Rule: rule, Severity: sev, Line: 1, Excerpt: Line(name, excerptMax)})
	}
	classes := nameClasses(name)
	if classes[control] {
		add("name-control", Hard)
	}
	if classes[bidi] {
		add("name-bidi", Hard)
	}
	if classes[zeroWidth] || classes[tag] || classes[selector] || classes[marks] {
		add("name-invisible", Hard)
	}
	if classes[invalid] || classes[private] || classes[noncharacter] {
		add("name-invalid", Hard)
	}
	if traverses(name) {
		add("name-traversal", Hard)
	}
	if strings.TrimSpace(name) == "" {
		add("name-empty", Hard)
	} else if strings.TrimSpace(name) != name {
		add("name-edge-space", Soft)
	}
	if strings.HasPrefix(name, "-") {
		add("name-leading-dash", Soft)
	}
	if utf8.RuneCountInString(name) > maxName {
		add("name-long", Soft)
	}
	if slices.ContainsFunc(nameWords(name), mixedScript) {
		add("name-homoglyph", Hard)
	}
	if compatible(name) {
		add("name-width", Soft)
	}
	if len(markers(name)) > 0 {
		add("name-marker", Soft)
	}
	return found
}

// plainName reports a name of which nothing can be wrong: nearly every name.
func plainName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		if b := name[i]; !alnum(b) && b != '_' && b != '-' {
			return false
		}
	}
	return true
}

func nameClasses(name string) (seen [invalid + 1]bool) {
	for w := (walker{s: name}); w.i < len(name); {
		r, _, c := w.next()
		if r == '\n' || r == '\t' || lineEnd(r) {
			c = control
		}
		seen[c] = true
	}
	return seen
}

// traverses reports a name that as a path would leave its place.
func traverses(name string) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(`/\∕⁄／`, r) })
	if slices.ContainsFunc(parts, func(p string) bool { p = strings.TrimSpace(p); return p == ".." || p == "." || p == "~" }) {
		return true
	}
	lower := strings.ToLower(name)
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`) || strings.Contains(lower, "%2e%2e") || strings.Contains(lower, "%2f")
}

func nameWords(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

// compatible reports letters or digits in a compatibility form of ASCII, such as
// full width.
func compatible(name string) bool {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		d := decompose(name[i:], r, size)
		if r >= utf8.RuneSelf && len(d) == 1 && (d == "_" || d == "-" || alnum(d[0])) {
			return true
		}
		i += size
	}
	return false
}

// Names is a set of known names that answers which of them a new name imitates.
// It does not change after [NewNames] and is safe for concurrent use. A nil *Names knows none.
type Names struct {
	bySkeleton map[string][]string
}

// NewNames returns the set of the given names. Doubles count once.
func NewNames(known []string) *Names {
	n := &Names{bySkeleton: make(map[string][]string, len(known))}
	for _, name := range known {
		s := Skeleton(name)
		if !slices.Contains(n.bySkeleton[s], name) {
			n.bySkeleton[s] = append(n.bySkeleton[s], name)
		}
	}
	for _, names := range n.bySkeleton {
		slices.Sort(names)
	}
	return n
}

// Why says by what one name resembles another.
type Why string

const (
	WhyInvisible Why = "invisible" // differs in characters that cannot be seen, or blanks at the ends
	WhyWidth     Why = "width"     // in full width, another compatibility form, or accents
	WhyCase      Why = "case"      // in upper and lower case
	WhySeparator Why = "separator" // in - _ . and blanks
	WhyHomoglyph Why = "homoglyph" // in letters of another script
	WhyLookAlike Why = "lookalike" // in 1/l/i, 0/o, rn/m, vv/w
	WhyNamespace Why = "namespace" // is the other under a prefix such as server__ or ../
)

var stageWhy = [...]Why{WhyInvisible, WhyWidth, WhyCase, WhySeparator, WhyHomoglyph, WhyLookAlike}

// An Imitation is a known name that another name can be taken for.
type Imitation struct {
	Known string
	Why   Why
	// Severity is Soft for case, separators and namespaces, which honest authors
	// write differently all the time, and Hard for the rest, which they do not:
	// among 21,000 real tools no two names differ so.
	Severity Severity
}

// Imitations returns the known names that name can be taken for, in order.
// A name does not imitate itself: that two sources use the same name is a
// collision, which the catalog reports.
func (n *Names) Imitations(name string) []Imitation {
	if n == nil {
		return nil
	}
	var found []Imitation
	for _, known := range n.bySkeleton[Skeleton(name)] {
		if known != name {
			found = append(found, imitation(known, resemblance(name, known)))
		}
	}
	if local := Local(name); local != name {
		for _, known := range n.bySkeleton[Skeleton(local)] {
			if known != name {
				found = append(found, imitation(known, WhyNamespace))
			}
		}
	}
	return found
}

// resemblance returns the last difference that must be taken away before the
// two names are equal.
func resemblance(a, b string) Why {
	for s := stageInvisible; s < stageLookAlike; s++ {
		if reduce(a, s) == reduce(b, s) {
			return stageWhy[s]
		}
	}
	return WhyLookAlike
}

func imitation(known string, why Why) Imitation {
	sev := Hard
	if why == WhyCase || why == WhySeparator || why == WhyNamespace {
		sev = Soft
	}
	return Imitation{Known: known, Why: why, Severity: sev}
}
