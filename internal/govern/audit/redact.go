package audit

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ken/internal/jsonappend"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// A Redactor takes secrets out of text: the values that it was told to hold,
// exactly and in their usual encodings, and what looks like a secret by where
// it stands or how it is formed. It replaces too much rather than too little,
// and cannot find a secret that it does not hold and that looks like nothing.
//
// The zero value and nil hold no values and know the forms. Methods may be
// called from any number of goroutines.
type Redactor struct {
	mu   sync.Mutex
	held atomic.Pointer[haystack]
	seen isolations
}

// isolations remembers how the few that there are look redacted: what holds a
// program is the same from call to call, and its sentences are long.
type isolations struct {
	mu    sync.Mutex
	by    map[string]json.RawMessage
	under *haystack // the values that were known
}

// maxIsolations is how many are remembered.
const maxIsolations = 64

// isolation is cleanJSON of what held a program.
func (r *Redactor) isolation(raw json.RawMessage) (json.RawMessage, error) {
	if r == nil {
		return cleanJSON(raw, r.String)
	}
	held, s := r.held.Load(), &r.seen
	s.mu.Lock()
	if s.under != held || len(s.by) >= maxIsolations {
		s.by, s.under = nil, held
	}
	clean, ok := s.by[string(raw)]
	s.mu.Unlock()
	if ok {
		return clean, nil
	}
	clean, err := cleanJSON(raw, r.String)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under == held && r.held.Load() == held { // none became known meanwhile
		if s.by == nil {
			s.by = map[string]json.RawMessage{}
		}
		s.by[string(raw)] = clean
	}
	return clean, nil
}

// A needle is a text to look for. A short one counts only as a whole word,
// or "no" as a password would empty every log.
type needle struct {
	text string
	word bool

	// named are the secrets that the text gives away where it stands in a call;
	// see [Redactor.Named]. alone means: only as a whole word.
	named []string
	alone bool
}

// shortSecret is the length below which a held value must stand by itself.
const shortSecret = 6

// Hold makes values known. They stay known for the life of the Redactor.
func (r *Redactor) Hold(values ...string) {
	r.HoldNamed(func(yield func(name, value string) bool) {
		for _, v := range values {
			if !yield("", v) {
				return
			}
		}
	})
}

// HoldNamed makes values known, each with the name of the secret that it is. A
// value may come under several names. One without a name is taken out of texts,
// and [Redactor.Named] does not find it.
func (r *Redactor) HoldNamed(secrets iter.Seq2[string, string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []needle
	if old := r.held.Load(); old != nil {
		all = slices.Clone(old.needles)
	}
	known := make(map[string]int, len(all))
	for i, n := range all {
		known[n.text] = i
	}
	for name, v := range secrets {
		for _, form := range forms(v) {
			if form == "" {
				continue
			}
			at, have := known[form]
			if !have {
				at, known[form] = len(all), len(all)
				all = append(all, needle{text: form, word: len(form) < shortSecret})
			}
			if name != "" && gives(v, form) && !slices.Contains(all[at].named, name) {
				n := &all[at]
				n.alone = wholeWord(v, form) && (n.alone || n.named == nil)
				n.named = append(slices.Clip(n.named), name)
			}
		}
	}
	r.held.Store(newHaystack(all))
}

// The lengths from which a secret is looked for in the arguments of a call:
// shorter ones stand in ordinary text by chance, and a call would be denied for
// nothing.
const (
	NamedWord     = 8  // as a whole word
	NamedAnywhere = 16 // also within other text
	namedForm     = 12 // of an encoded form
)

// gives reports whether a form of a value gives the value away. One line of
// several does where it is a line of a key: others are the same in all files of
// a kind.
func gives(v, form string) bool {
	switch {
	case len(v) < NamedWord:
		return false
	case form == v || form == strings.TrimSpace(v):
		return true
	case len(form) < len(v) && strings.Contains(v, form):
		return len(form) >= 2*NamedAnywhere && !strings.ContainsAny(form, " \t\"'") && !strings.HasPrefix(form, "-----")
	}
	return len(form) >= namedForm
}

// wholeWord reports whether a form of a value counts only as a whole word.
func wholeWord(v, form string) bool {
	return len(v) < NamedAnywhere && (form == v || form == strings.TrimSpace(v))
}

// Named returns the names of the held secrets that stand in a text, exactly, in
// a usual encoding, or with escapes, each once and in order. Values of fewer than [NamedWord]
// bytes are not looked for, and those of fewer than [NamedAnywhere] only as whole
// words.
func (r *Redactor) Named(s string) []string {
	if r == nil {
		return nil
	}
	held := r.held.Load()
	if held == nil {
		return nil
	}
	var names []string
	held.each(s, func(n needle, l layer, from, to int) {
		if len(n.named) > 0 && !(n.alone && (wordAt(l.text, from-1) || wordAt(l.text, to))) {
			names = append(names, n.named...)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// A haystack finds any of many needles in one pass over a text: most places
// are ruled out by two bytes. It is not changed once it is made.
type haystack struct {
	needles []needle
	starts  pairs
	by      map[uint16][]needle // those of two bytes and more, by the first two
	bytes   []needle            // the others
	first   [256]bool           // the first byte of a needle
	longest int
}

func newHaystack(needles []needle) *haystack {
	h := &haystack{needles: needles, by: map[uint16][]needle{}}
	for _, n := range needles {
		h.longest = max(h.longest, len(n.text))
		h.first[n.text[0]] = true
		if len(n.text) < 2 {
			h.bytes = append(h.bytes, n)
			continue
		}
		h.starts.add(n.text[0], n.text[1])
		start := uint16(n.text[0])<<8 | uint16(n.text[1])
		h.by[start] = append(h.by[start], n)
	}
	return h
}

// pairs is a set of two letters, whatever their case. It says yes to some
// others too.
type pairs [1 << 14 / 64]uint64

// pairAt folds a pair: of each byte the five low bits and the two that tell
// letters, digits and signs apart, so that case does not matter.
func pairAt(a, b byte) uint { return uint(a|0x20)&0x7f<<7 | uint(b|0x20)&0x7f }

func (p *pairs) add(a, b byte) { i := pairAt(a, b); p[i/64] |= 1 << (i % 64) }

func (p *pairs) has(a, b byte) bool { i := pairAt(a, b); return p[i/64]&(1<<(i%64)) != 0 }

// forms are the spellings under which a value shows up in logs.
func forms(v string) []string {
	out := []string{v, strings.TrimSpace(v)}
	if len(v) < shortSecret {
		return out
	}
	quoted, err := json.Marshal(v)
	if err == nil {
		out = append(out, strings.Trim(string(quoted), `"`))
	}
	out = append(out, strings.Trim(string(jsonappend.ASCII(nil, v)), `"`),
		url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	// Inside a longer text, base64 has three ways to fall; only the middle of
	// each is the value's alone.
	for shift := range 3 {
		raw := append(make([]byte, shift), v...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(raw)
			from, to := (shift*8+5)/6, (len(raw)*8)/6
			if part := text[from:to]; len(part) >= 2*shortSecret {
				out = append(out, part)
			}
		}
	}
	for line := range strings.Lines(v) { // a key of many lines is cut up by logs
		if line = strings.TrimSpace(line); len(line) >= 16 && line != v {
			out = append(out, line)
		}
	}
	return out
}

// A span is a part of a text, from and up to a byte.
type span struct{ from, to int }

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	if len(s) < 2 {
		return s
	}
	spans := r.exact(s, nil)
	if found := spot().forms(s); found != 0 {
		spans = structural(s, found, spans)
	}
	return replace(s, spans)
}

// Held returns s without the values that the Redactor holds. What only looks like
// a secret stays: it is for text that a person works with.
func (r *Redactor) Held(s string) string {
	if r == nil || len(s) < 2 {
		return s
	}
	return replace(s, r.exact(s, nil))
}

// exact finds the values held.
func (r *Redactor) exact(s string, spans []span) []span {
	if r == nil {
		return spans
	}
	held := r.held.Load()
	if held == nil || len(held.needles) == 0 {
		return spans
	}
	held.each(s, func(n needle, l layer, from, to int) {
		if !n.word || !wordAt(l.text, from-1) && !wordAt(l.text, to) {
			spans = append(spans, l.place(from, to))
		}
	})
	return spans
}

// each calls found for every needle in a text, as it is and with escapes, also
// where the text was escaped more than once.
func (h *haystack) each(s string, found func(n needle, l layer, from, to int)) {
	for l := range layers(s) {
		s := l.text
		for _, n := range h.bytes {
			for i := range len(s) {
				if s[i] == n.text[0] {
					found(n, l, i, i+1)
				}
			}
		}
		for i := 1; i < len(s); i++ {
			if !h.starts.has(s[i-1], s[i]) {
				continue
			}
			for _, n := range h.by[uint16(s[i-1])<<8|uint16(s[i])] {
				if strings.HasPrefix(s[i-1:], n.text) {
					found(n, l, i-1, i-1+len(n.text))
				}
			}
		}
		h.escaped(s, func(n needle, from, to int) { found(n, l, from, to) })
	}
}

func wordAt(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

// replace puts the mark in the place of every span; spans that touch get one.
func replace(s string, spans []span) string {
	if len(spans) == 0 {
		return s
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	end := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from <= to; i++ {
			to = max(to, spans[i].to)
		}
		b.WriteString(s[end:from])
		b.WriteString(redacted)
		end = to
	}
	b.WriteString(s[end:])
	return b.String()
}

// CommandLine returns a command as one line for people to read: arguments that
// need it quoted, secrets taken out. What follows an option such as --token is
// taken out whole.
func (r *Redactor) CommandLine(argv []string) string {
	out := make([]string, len(argv))
	tool := ""
	if len(argv) > 0 {
		tool = strings.ToLower(filepath.Base(argv[0]))
	}
	for i, arg := range argv {
		prev := ""
		if i > 0 {
			prev = argv[i-1]
		}
		switch {
		case i > 1 && secretOption(prev) && !strings.HasPrefix(arg, "--"):
			arg = redacted
		case i > 1 && userOption(prev):
			if user, _, ok := strings.Cut(arg, ":"); ok {
				arg = user + ":" + redacted
			}
		case glued(tool, arg):
			arg = "-p" + redacted
		}
		out[i] = quote(r.String(arg))
	}
	line := strings.Join(out, " ")
	return replace(line, r.exact(line, nil)) // a value with spaces spans arguments
}

// secretOption says that the argument after opt is a secret.
func secretOption(opt string) bool {
	return strings.HasPrefix(opt, "-") && !strings.Contains(opt, "=") && optionForm().MatchString(opt)
}

func userOption(opt string) bool {
	return opt == "-u" || opt == "--user" || opt == "--proxy-user" || opt == "-U"
}

// glued says that arg is an option of tool with its password behind it.
func glued(tool, arg string) bool {
	return len(arg) > 2 && strings.HasPrefix(arg, "-p") &&
		(strings.HasPrefix(tool, "mysql") || strings.HasPrefix(tool, "mariadb") || tool == "sshpass")
}

// quote writes an argument as a shell would need it.
func quote(arg string) string {
	plain := func(r rune) bool {
		return r >= 0x80 || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("-_./:=@%+,[]", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
