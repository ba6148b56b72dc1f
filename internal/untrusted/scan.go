package untrusted

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxScan is how many bytes of a text [Scan] reads.
	MaxScan = 256 << 10
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
// A phrase that is quoted, in code or spoken about is at most Soft; one in a
// comment is Hard. Findings are in order of lines, one for each rule and line. There
// are 50 at most, the Hard ones first to be kept, and a finding "more" counts the
// rest. Of a text of more than [MaxScan] bytes only that much is read, and a
// finding "unscanned" says so. The same text always gives the same findings.
//
// Give Scan one string at a time: in a whole JSON document everything is quoted.
func Scan(text string) []Finding {
	s := scanner{text: text}
	if len(text) > MaxScan {
		s.text = text[:MaxScan]
		s.add(hit{rule: "unscanned", severity: Soft, from: MaxScan - 1, note: fmt.Sprintf("%d bytes after the first %d", len(text)-MaxScan, MaxScan)})
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
	latest  map[string]lastHit // by rule
	signals map[string][]int   // places by rule
}

// A hit is a finding before its line is counted and its excerpt made.
type hit struct {
	rule     string
	severity Severity
	from, to int    // bytes of the text
	note     string // stands for the excerpt if not empty
}

// A lastHit is where a rule last matched, and the index of its last hit in found.
type lastHit struct{ at, index int }

// add records a hit. One more on the line of the last one of its rule tells
// nothing new and is left out.
func (s *scanner) add(h hit) {
	if s.known(h.rule, h.severity, h.from) {
		return
	}
	if s.latest == nil {
		s.latest = map[string]lastHit{}
	}
	s.latest[h.rule] = lastHit{h.from, len(s.found)}
	s.found = append(s.found, h)
}

// known reports whether the rule's last hit was on this line and no less severe.
func (s *scanner) known(rule string, sev Severity, at int) bool {
	l, ok := s.latest[rule]
	if !ok || at < l.at || s.found[l.index].severity < sev || strings.IndexByte(s.text[l.at:at], '\n') >= 0 {
		return false
	}
	s.latest[rule] = lastHit{at, l.index}
	return true
}

// signal records a match that may count together with others.
func (s *scanner) signal(rule string, at int) {
	if s.signals == nil {
		s.signals = map[string][]int{}
	}
	s.signals[rule] = append(s.signals[rule], at)
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
	if at, far := farText(s.text); at >= 0 {
		disguise = true
		if far {
			s.add(hit{rule: "hidden-whitespace", severity: Soft, from: at, to: at + 40})
		}
	}
	if disguise {
		plain = normalised(plain)
		g = gist{}
		gistOf(plain.text, &g)
	} else {
		g.topics &^= tNotASCII
	}
	if g.topics&tComment != 0 {
		s.commentOrders()
	}
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
	var places []int // of what counts together with others
	for _, r := range compiledRules() {
		if r.beside || slices.ContainsFunc(r.near, func(t topic) bool { return g.topics&t == 0 }) {
			continue
		}
		for _, m := range r.matches(v.text, g) {
			if poisonous(r.name) {
				places = append(places, m[0])
			}
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
				for _, m := range r.re().FindAllStringIndex(v.text[span[0]:span[1]], -1) {
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
			for _, m := range r.re().FindAllStringIndex(text[span[0]:span[1]], -1) {
				found = append(found, []int{m[0] + span[0], m[1] + span[0]})
			}
		}
		return found
	}
	for _, at := range g.starts(text, r.near[0]) {
		if m := r.re().FindStringIndex(text[at:min(len(text), at+ruleRoom)]); m != nil {
			found = append(found, []int{at, at + m[1]})
		}
	}
	return found
}

func (s *scanner) match(r compiled, v view, m []int, as string) {
	if r.severity == signal {
		s.signal(r.name, v.origin(m[0]))
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
		s.add(hit{as, Hard, from, to, v.text[start:end]})
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
	s.signal(name, from)
	if s.known(name, Hard, from) {
		return
	}
	switch m := s.mannerOf(from, to); {
	case m.hidden:
		sev = Hard
	case m.quoted || m.discussed:
		if sev--; sev < Soft {
			return
		}
	}
	s.add(hit{rule: name, severity: sev, from: from, to: to})
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
		for _, m := range r.re().FindAllStringIndex(v.text, -1) {
			s.report("override-instructions", Hard, v.origin(m[0]), v.origin(m[1]-1)+1)
		}
	}
}

// masked reports words in which letters of another script stand for Latin ones.
// In words of one or two letters that is a slip of the keyboard.
func (s *scanner) masked(v view) {
	for i := 0; i < len(v.text); {
		n := letters(v.text[i:])
		if w := v.text[i : i+n]; utf8.RuneCountInString(w) > 2 && mixedScript(w) && readsASCII(w) {
			at := v.origin(i)
			s.add(hit{rule: "homoglyph", severity: Soft, from: at, to: v.origin(i+n-1) + 1})
			return
		}
		_, size := utf8.DecodeRuneInString(v.text[i:])
		i += max(n, size)
	}
}

// poison reports the signals that make an attack close together.
func (s *scanner) poison() {
	if len(s.signals) < 2 {
		return
	}
	for _, p := range poisonings {
		a, b := s.signals[p[0]], s.signals[p[1]]
		slices.Sort(a)
		slices.Sort(b)
		for i, j := 0, 0; i < len(a) && j < len(b); {
			from, to := min(a[i], b[j]), max(a[i], b[j])
			if to-from <= nearby {
				s.report("tool-poisoning", Hard, from, to)
				break
			}
			if a[i] < b[j] {
				i++
			} else {
				j++
			}
		}
	}
}

func poisonous(rule string) bool {
	return slices.ContainsFunc(poisonings[:], func(p [2]string) bool { return p[0] == rule || p[1] == rule })
}
