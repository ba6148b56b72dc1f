package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A markerKind says how a model could take a piece of text for more than data.
type markerKind uint8

const (
	roleMarker    markerKind = iota // System:
	roleHeading                     // ### System
	roleTag                         // <system role="x">
	roleBracket                     // [SYSTEM]
	resultTag                       // <function_results>
	templateToken                   // <|im_start|>  [INST]  <<SYS>>
)

// A marker is one place found by [markers].
type marker struct {
	kind       markerKind
	start, end int    // bytes of the text
	at         int    // where a backslash breaks it
	word       string // the word that decides, in lower-case ASCII
}

// The words that decide. All are compared in lower case and half width.
var (
	// roleWords stand before a colon or alone in a heading.
	roleWords = []string{
		"system", "user", "assistant", "human", "developer", "tool", "ai", "function",
	}
	// headingWords make one too when a colon follows: "### Instruction:".
	headingWords = []string{"instruction", "response", "input"}
	// headingTails may follow the word of such a heading.
	headingTails = []string{"prompt", "message", "instruction", "instructions", "role"}
	// roleTags stand after < or </, with or without attributes.
	roleTags = []string{
		"system", "user", "assistant", "human", "developer", "important", "critical", "instructions",
		"instruction", "system_prompt", "system_instruction", "system_instructions", "system-reminder",
		"system_message", "admin",
	}
	resultTags = []string{
		"function_results", "function_result", "function_calls", "function_call", "function_response",
		"tool_result", "tool_results", "tool_response", "tool_call", "tool_calls", "tool_output", "tool_use",
		"tool_outputs", "invoke", "result_of_tool",
	}
	// angleTokens are whole tokens of chat templates between < and >.
	angleTokens = []string{
		"s", "bos", "eos", "pad", "unk", "start_of_turn", "end_of_turn", "sys", "start_of_image", "mask",
	}
	// squareTokens are whole tokens of chat templates between [ and ].
	squareTokens = []string{
		"inst", "system_prompt", "available_tools", "tool_calls", "tool_results", "tool_content", "tool_call", "sys",
	}
	roleBrackets = []string{"system", "assistant", "developer", "system message", "system prompt"}
)

// neutralise breaks every marker in s with a backslash. Nothing is deleted, and
// a text that was neutralised stays as it is.
func neutralise(s string) string {
	found := markers(s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(found))
	last := 0
	for _, m := range found {
		b.WriteString(s[last:m.at])
		b.WriteByte('\\')
		last = m.at
	}
	b.WriteString(s[last:])
	return b.String()
}

// markers finds role markers, role tags and tokens of chat templates in s, in
// order. Full-width forms count as the ASCII they imitate.
func markers(s string) []marker {
	var found []marker
	for i := 0; i < len(s); i++ {
		if !markerByte[s[i]] {
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		var m marker
		var ok bool
		switch half(r) {
		case '<':
			m, ok = angleMarker(s, i)
		case '[':
			m, ok = squareMarker(s, i)
		case '#':
			if m, ok = headingMarker(s, i); !ok {
				i = skip(s, i, is("#")) - size // judged once, at its first #
			}
		case ':':
			m, ok = colonMarker(s, i)
		}
		if ok && (len(found) == 0 || m.at > found[len(found)-1].at) {
			found = append(found, m)
		}
		i += size - 1
	}
	return found
}

// markerByte holds the bytes that can begin what [half] maps to < [ # or :.
var markerByte = [256]bool{'<': true, '[': true, '#': true, ':': true, 0xEA: true, 0xEF: true}

// half maps the full-width forms of ASCII, and the other colons, to ASCII.
func half(r rune) rune {
	switch {
	case in(r, 0xFF01, 0xFF5E):
		return r - 0xFEE0
	case r == '﹕' || r == '꞉':
		return ':'
	}
	return r
}

// word reads a word of letters, digits, _ and - at s[i:] in lower-case half
// width. It gives up, with "", at 32 characters: no word of the tables is that
// long, and so the time stays linear.
func word(s string, i int) (w string, end int) {
	var buf [32]byte
	n := 0
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		r = half(r)
		if !(in(r, 'a', 'z') || in(r, 'A', 'Z') || in(r, '0', '9') || r == '_' || r == '-') {
			break
		}
		if n == len(buf) {
			return "", i
		}
		buf[n] = lower(byte(r))
		n++
		i += size
	}
	return string(buf[:n]), i
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func among(w string, list []string) bool {
	for _, x := range list {
		if w == x {
			return true
		}
	}
	return false
}

// skip passes over at most 8 runes of s[i:] that ok accepts.
func skip(s string, i int, ok func(rune) bool) int {
	for range 8 {
		r, size := utf8.DecodeRuneInString(s[i:])
		if size == 0 || !ok(half(r)) {
			break
		}
		i += size
	}
	return i
}

// is accepts the characters of set; a space in it stands for all white space,
// because [Line] folds line ends into spaces and must find the same again.
func is(set string) func(rune) bool {
	return func(r rune) bool {
		return strings.ContainsRune(set, r) || unicode.IsSpace(r) && strings.HasPrefix(set, " ")
	}
}

// angleMarker reads <system …>, </s>, <<SYS>>, <|im_start|> and the like.
func angleMarker(s string, i int) (marker, bool) {
	_, first := utf8.DecodeRuneInString(s[i:])
	m := marker{start: i, at: i + first}
	j := m.at
	r, size := utf8.DecodeRuneInString(s[j:])
	if half(r) == '|' {
		return pipeToken(s, m, j+size)
	}
	j = skip(s, j, is(" /<"))
	m.word, m.end = word(s, j)
	switch {
	case among(m.word, roleTags):
		m.kind = roleTag
	case among(m.word, resultTags):
		m.kind = resultTag
	case among(m.word, angleTokens):
		m.kind = templateToken
	default:
		return m, false
	}
	end := skip(s, m.end, is(" "))
	if r, _ := utf8.DecodeRuneInString(s[end:]); end < len(s) && half(r) != '>' && half(r) != '/' && end == m.end {
		return m, false // <userid>, <system.json>
	}
	if m.kind == templateToken {
		r, _ := utf8.DecodeRuneInString(s[end:])
		return m, half(r) == '>'
	}
	return m, true
}

// pipeToken reads the rest of <|…|> after its first bar.
func pipeToken(s string, m marker, j int) (marker, bool) {
	m.kind = templateToken
	start := j
	for n := 0; n < 40; n++ {
		r, size := utf8.DecodeRuneInString(s[j:])
		if half(r) == '|' && j > start {
			r2, size2 := utf8.DecodeRuneInString(s[j+size:])
			m.end = j + size + size2
			m.word = strings.ToLower(s[start:j])
			return m, half(r2) == '>'
		}
		if size == 0 || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-▁ /:.", r)) {
			return m, false
		}
		j += size
	}
	return m, false
}

// squareMarker reads [INST], [/INST] and [SYSTEM].
func squareMarker(s string, i int) (marker, bool) {
	_, first := utf8.DecodeRuneInString(s[i:])
	m := marker{start: i, at: i + first}
	j := skip(s, m.at, is(" /"))
	m.word, m.end = word(s, j)
	if next, end := word(s, skip(s, m.end, is(" "))); m.word == "system" && among(next, headingTails) {
		m.word, m.end = m.word+" "+next, end
	}
	end := skip(s, m.end, is(" "))
	r, size := utf8.DecodeRuneInString(s[end:])
	if half(r) != ']' {
		return m, false
	}
	m.end = end + size
	switch {
	case among(m.word, squareTokens):
		m.kind = templateToken
	case among(m.word, roleBrackets):
		m.kind = roleBracket
		r, _ := utf8.DecodeRuneInString(s[m.end:])
		if half(r) == '(' {
			return m, false // a link
		}
	default:
		return m, false
	}
	return m, true
}

// headingMarker reads a line of its own such as "### System" or
// "## Instruction:"; "### System requirements" is an ordinary heading.
func headingMarker(s string, i int) (marker, bool) {
	_, first := utf8.DecodeRuneInString(s[i:])
	m := marker{kind: roleHeading, start: i, at: i + first}
	if before, _ := utf8.DecodeLastRuneInString(s[:i]); i > 0 && !unicode.IsSpace(before) && before != '⟩' {
		return m, false
	}
	j := skip(s, m.at, is("#"))
	j = skip(s, j, is(" *_"))
	m.word, m.end = word(s, j)
	if r, _ := utf8.DecodeRuneInString(s[m.end:]); !among(m.word, roleWords) &&
		(!among(m.word, headingWords) || half(r) != ':') {
		return m, false
	}
	if next, end := word(s, skip(s, m.end, is(" "))); among(next, headingTails) {
		m.end = end
	}
	end := skip(s, m.end, func(r rune) bool { return blank(r) || strings.ContainsRune("*_:#", r) })
	r, _ := utf8.DecodeRuneInString(s[end:])
	return m, end >= len(s) || r == '\n' || r == '\r' || lineEnd(r)
}

// colonMarker reads backwards from a colon: "System:", "**User** :",
// "“Human”:", at the start of a line, of a list item, a quote or a sentence.
func colonMarker(s string, i int) (marker, bool) {
	_, size := utf8.DecodeRuneInString(s[i:])
	m := marker{kind: roleMarker, at: i, end: i + size}
	j := skipBack(s, i, is(" *_”’»」)]"))
	m.start = j
	for j-m.start < 40 {
		r, size := utf8.DecodeLastRuneInString(s[:m.start])
		if r = half(r); !in(r, 'a', 'z') && !in(r, 'A', 'Z') {
			break
		}
		m.start -= size
	}
	m.word, _ = word(s[:j], m.start)
	if !among(m.word, roleWords) || isID(s, m) {
		return m, false
	}
	return m, startsSpeech(s[:m.start])
}

// isID reports whether the marker is the kind of a capability's id, as in
// "tool:web-search", which is everywhere and which no template has.
func isID(s string, m marker) bool {
	if m.word != "tool" && m.word != "function" || s[m.start:m.end] != m.word+":" {
		return false
	}
	next, _ := utf8.DecodeRuneInString(s[m.end:])
	return in(next, 'a', 'z') || in(next, '0', '9')
}

// startsSpeech reports whether a role's name right after before begins a line,
// an item, a quote or a sentence.
func startsSpeech(before string) bool {
	tail := before
	if len(tail) > 64 { // enough for any decoration, and keeps the time linear
		tail = tail[len(tail)-64:]
	}
	rest := strings.TrimRightFunc(tail, func(r rune) bool {
		return r != '\n' && (unicode.IsSpace(r) || decoration(r))
	})
	if rest == "" {
		return len(tail) == len(before)
	}
	end, _ := utf8.DecodeLastRuneInString(rest)
	if end == '\n' || strings.ContainsRune(".!?;:>⟩。！？；：＞", end) {
		return true
	}
	// " - System:" and " (System:" begin something; "sub-system:" does not.
	first, _ := utf8.DecodeRuneInString(tail[len(rest):])
	return unicode.IsSpace(first) && strings.IndexFunc(tail[len(rest):], decoration) >= 0
}

func decoration(r rune) bool { return strings.ContainsRune("-*#|“‘«「([_•–—", half(r)) }

// skipBack is [skip] towards the beginning.
func skipBack(s string, i int, ok func(rune) bool) int {
	for range 8 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if size == 0 || !ok(half(r)) {
			break
		}
		i -= size
	}
	return i
}
