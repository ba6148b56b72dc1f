package untrusted

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Severity says what a finding is worth. The zero value is no severity.
type Severity uint8

const (
	Soft Severity = iota + 1 // a person should look
	Hard                     // quarantine until a person has looked
)

// String returns "soft" or "hard".
func (s Severity) String() string {
	switch s {
	case Soft:
		return "soft"
	case Hard:
		return "hard"
	}
	return "none"
}

// A Finding is one reason to distrust a text.
type Finding struct {
	Rule     string // stable, in words and dashes: "override-instructions"
	Severity Severity
	Line     int    // 1 is the first line of the text
	Excerpt  string // what was found and a little around it, rendered by [Line]
}

// String returns the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("line %d: %s (%s): %s", f.Line, f.Rule, f.Severity, f.Excerpt)
}

// Worst returns the highest severity among the findings, 0 for none.
func Worst(findings []Finding) Severity {
	worst := Severity(0)
	for _, f := range findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

const (
	// MaxScan is how many bytes of a text [Scan] reads.
	MaxScan = 1 << 20
	// maxFindings is how many findings Scan returns; more tell a person nothing.
	maxFindings = 50
	excerptMax  = 120
	// ruleRoom is how far around a keyword a rule looks, in bytes.
	ruleRoom = 400
	// maxDepth is how many encodings within encodings are undone.
	maxDepth = 2
)

// Scan reports what in text looks like an attack on a model or a person who
// reads it: characters that hide, phrases that give orders in spite of the
// reader's own, payloads that decode to such phrases, forged roles, advice to
// hide or send things. It changes nothing.
//
// A phrase that is quoted, in code or spoken about is at most Soft. Findings are in
// order of lines, one for each rule and line, 50 at most. Of a text of more than
// [MaxScan] bytes only that much is read, and a finding "unscanned" says so.
//
// Give Scan one string at a time: in a whole JSON document everything is quoted.
func Scan(text string) []Finding {
	s := scanner{text: text}
	if len(text) > MaxScan {
		s.text = text[:MaxScan]
		s.add("unscanned", Soft, MaxScan-1, fmt.Sprintf("%d bytes after the first %d", len(text)-MaxScan, MaxScan))
	}
	s.scan()
	return s.result()
}

// A scanner holds one text while it is scanned.
type scanner struct {
	text    string
	depth   int // how many encodings the text was taken out of
	page    *page
	found   []hit
	signals []hit
	counts  map[string]int // hits and signals by rule
}

// A hit is a finding before its line is counted.
type hit struct {
	rule     string
	severity Severity
	at       int // byte of the text
	excerpt  string
}

// enough reports, and counts, that a rule has been met so often that more of it
// would only cost time: a text that is one order, a million times.
func (s *scanner) enough(rule string) bool {
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[rule]++
	return s.counts[rule] > 4*maxFindings
}

func (s *scanner) add(rule string, sev Severity, at int, excerpt string) {
	s.found = append(s.found, hit{rule, sev, at, Line(excerpt, excerptMax)})
}

// around returns the bytes [start, end) of the text and a little more.
func (s *scanner) around(start, end int) string {
	lo, hi := max(0, start-24), min(len(s.text), max(start, end)+40)
	for lo < start && !utf8.RuneStart(s.text[lo]) {
		lo++
	}
	for hi < len(s.text) && !utf8.RuneStart(s.text[hi]) {
		hi++
	}
	return s.text[lo:min(hi, lo+4*excerptMax)]
}

func (s *scanner) scan() {
	var g gist
	gistOf(s.text, &g)
	plain := view{text: s.text}
	disguise := false
	if g.topics&(tControl|tNotASCII) != 0 {
		disguise = s.characters()
	}
	if g.topics&tEscape != 0 {
		if v, ok := unescaped(plain); ok {
			plain, disguise = v, true
		}
	}
	if disguise {
		plain = normalised(plain)
		g = gist{}
		gistOf(plain.text, &g)
	} else {
		g.topics &^= tNotASCII
	}
	s.layout(&g)
	s.payloads()
	s.views(plain, &g)
	s.poison()
}

// views runs the rules on the plain view and on those derived from it.
func (s *scanner) views(plain view, g *gist) {
	const topics = ^(tControl | tNotASCII | tEscape)
	foreign := g.topics&tNotASCII != 0
	spaced := hasSpaced(plain.text)
	if g.topics&topics == 0 && !foreign && !spaced {
		return
	}
	if plain.at == nil {
		plain = lowered(plain)
	}
	s.rules(plain, g, "")
	if v, ok := unleet(plain, g); ok {
		s.rules(v, g, "")
	}
	if foreign {
		s.scripts(plain)
		if v, ok := unmasked(plain); ok {
			s.masked(plain)
			s.again(v, "")
		}
	}
	if spaced {
		if v, ok := joined(plain); ok {
			s.again(v, "")
		}
	}
	if g.topics&tRot13 != 0 {
		s.again(rot13(plain), "encoded-rot13")
	}
	if g.topics&tReversed != 0 {
		s.again(reversed(plain), "encoded-reversed")
	}
}

// again runs the rules on a view that has topics of its own. What it finds is
// reported under the name as, if that is not empty.
func (s *scanner) again(v view, as string) {
	var g gist
	gistOf(v.text, &g)
	s.rules(v, &g, as)
}

// rules tries every rule whose topics the view has.
func (s *scanner) rules(v view, g *gist, as string) {
	var places []int // of what was found
	for _, r := range compiledRules() {
		if r.beside || slices.ContainsFunc(r.near, func(t topic) bool { return g.topics&t == 0 }) {
			continue
		}
		for _, m := range r.matches(v.text, g) {
			places = append(places, m[0])
			s.match(r, v, m, as)
		}
	}
	if as == "" && g.topics&(tRole|tToken) != 0 {
		places = append(places, s.markers(v)...)
	}
	if len(places) == 0 {
		return
	}
	for _, span := range spansAround(v.text, places, nearby) {
		for _, r := range compiledRules() {
			if r.beside {
				for _, m := range r.re.FindAllStringIndex(v.text[span[0]:span[1]], maxFindings) {
					s.match(r, v, []int{m[0] + span[0], m[1] + span[0]}, as)
				}
			}
		}
	}
}

// matches returns where the rule matches text, of which g is the gist.
func (r compiled) matches(text string, g *gist) [][]int {
	var found [][]int
	if r.within {
		for _, span := range g.spans(text, r.near[0], ruleRoom) {
			for _, m := range r.re.FindAllStringIndex(text[span[0]:span[1]], maxFindings-len(found)) {
				found = append(found, []int{m[0] + span[0], m[1] + span[0]})
			}
		}
		return found
	}
	for _, at := range g.starts(text, r.near[0]) {
		if m := r.re.FindStringIndex(text[at:min(len(text), at+ruleRoom)]); m != nil && len(found) < maxFindings {
			found = append(found, []int{at, at + m[1]})
		}
	}
	return found
}

func (s *scanner) match(r compiled, v view, m []int, as string) {
	if s.enough(r.name) {
		return
	}
	if r.severity == signal {
		s.signals = append(s.signals, hit{rule: r.name, at: v.origin(m[0])})
		return
	}
	s.judge(r, v, m[0], m[1], as)
}

// judge turns a match into a finding, as its place in the text demands.
func (s *scanner) judge(r compiled, v view, start, end int, as string) {
	from, to := v.origin(start), v.origin(max(end-1, start))+1
	if from >= to {
		from, to = min(from, to-1), max(from+1, to)
	}
	if as != "" {
		s.add(as, Hard, from, v.text[start:end])
		return
	}
	sev := r.severity
	if len(r.near) > 0 && r.near[0] == tIgnore {
		if negated(v.text, start) {
			return
		}
		if r.command && !commanded(v.text, start) && !upperAt(s.text, from) || r.bounded && boundedAfter(v.text[end:]) {
			sev = Soft
		}
	}
	s.report(r.name, sev, from, to)
}

// report adds a finding, less severe where the phrase is not the text's own,
// and more where it is hidden from people.
func (s *scanner) report(name string, sev Severity, from, to int) {
	s.signals = append(s.signals, hit{rule: name, at: from})
	switch m := s.mannerOf(from, to); {
	case m.hidden:
		sev = Hard
	case m.quoted || m.discussed:
		if sev--; sev < Soft {
			return
		}
	}
	s.add(name, sev, from, s.around(from, to))
}

func (s *scanner) mannerOf(from, to int) manner {
	if s.page == nil {
		s.page = newPage(s.text)
	}
	return s.page.manner(from, to)
}

func upperAt(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[min(i, len(s)):])
	return unicode.IsUpper(r)
}

var boundedWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s,]*(?:(?:that|which|you)\s+)?(?:(?:are|is|may be|might be|find|see|encounter|appear|come)\s+)?(?:in|inside|within|contained|found|embedded|from|present|appearing|hidden)\b`)
})

func boundedAfter(rest string) bool { return boundedWords().MatchString(rest[:min(len(rest), 80)]) }

// scripts tries the rules for languages with letters of their own.
func (s *scanner) scripts(v view) {
	for _, r := range compiledScriptRules() {
		if !strings.Contains(v.text, r.stem) {
			continue
		}
		if m := r.re.FindStringIndex(v.text); m != nil {
			s.report("override-instructions", Hard, v.origin(m[0]), v.origin(m[1]-1)+1)
		}
	}
}

// masked reports words in which letters of another script stand for Latin ones.
func (s *scanner) masked(v view) {
	for i := 0; i < len(v.text); {
		n := letters(v.text[i:])
		if w := v.text[i : i+n]; n > 0 && mixedScript(w) && readsASCII(w) {
			at := v.origin(i)
			s.add("homoglyph", Soft, at, s.around(at, v.origin(i+n-1)+1))
			return
		}
		_, size := utf8.DecodeRuneInString(v.text[i:])
		i += max(n, size)
	}
}

// poison looks for signals close together.
func (s *scanner) poison() {
	slices.SortStableFunc(s.signals, func(a, b hit) int { return cmp.Compare(a.at, b.at) })
	for i, a := range s.signals {
		for _, b := range s.signals[i+1:] {
			if b.at-a.at > nearby {
				break
			}
			if poisonous(a.rule, b.rule) {
				s.report("tool-poisoning", Hard, a.at, b.at)
				return
			}
		}
	}
}

func poisonous(a, b string) bool {
	for _, p := range poisonings {
		if p[0] == a && p[1] == b || p[0] == b && p[1] == a {
			return true
		}
	}
	return false
}

// result sorts the hits, leaves one for each rule and line, and counts lines.
func (s *scanner) result() []Finding {
	if len(s.found) == 0 {
		return nil
	}
	slices.SortStableFunc(s.found, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.severity, a.severity))
	})
	var out []Finding
	line, counted := 1, 0
	index := map[string]int{} // of the latest finding by rule
	for _, h := range s.found {
		at := min(max(h.at, counted), len(s.text))
		line += strings.Count(s.text[counted:at], "\n")
		counted = at
		if i, ok := index[h.rule]; ok && out[i].Line == line {
			if h.severity > out[i].Severity {
				out[i].Severity, out[i].Excerpt = h.severity, h.excerpt
			}
			continue
		}
		if len(out) == maxFindings {
			break
		}
		index[h.rule] = len(out)
		out = append(out, Finding{h.rule, h.severity, line, h.excerpt})
	}
	return out
}
