package audit

import (
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ken/internal/secret/detect"
)

// A secretPattern is a way to recognise a secret. Its expression is tried only on text
// that has one of its words (any case); its group, or else the whole match, is
// the secret.
type secretPattern struct {
	words string // apart by spaces
	expr  string
	signs string // one of these bytes is in every match; "" is not worth a look
}

// names are what secrets are called. A longer name may have them inside.
const names = `(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key|` +
	`private[_-]?key|signing[_-]?key|encryption[_-]?key|master[_-]?key|shared[_-]?key|client[_-]?secret|credentials?|` +
	`auth(?:[_-]?(?:key|token|code))?|otp|session(?:[_-]?(?:id|key|token))|signature|sig|x-amz-[a-z-]*(?:signature|credential|token))`

// byPlace finds secrets by where they stand.
var byPlace = [...]secretPattern{
	{"authorization", `(?i)\bauthorization\b["']?\s*[:=]\s*["']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?([^"'\r\n]+)`, ""},
	{"cookie", `(?i)\bcookie2?\b["']?\s*[:=]\s*["']?([^"'\r\n]+)`, ""},
	{"bearer", `(?i)\bbearer\s+([a-z0-9._~+/=-]{6,})`, ""},
	{"basic", `(?i)\bbasic\s+([a-z0-9+/]{8,}={0,2})`, ""},
	{"key token secret auth credential", `(?i)\bx-[a-z-]*(?:key|token|secret|auth|credential)[a-z-]*["']?\s*[:=]\s*["']?([^"'\s,;]+)`, ""},
	{"mcp-session-id", `(?i)\bmcp-session-id["']?\s*[:=]\s*["']?([^"'\s,;]+)`, ""},
	{"@tcp( @unix(", `[\w.-]+:([^\s@]+)@(?:tcp|unix)\(`, ""},
	{nameWords, assignment, ":="},
	{nameWords, `(?i)(?:^|\s)--?(?:[a-z0-9]+[_-])*` + names + `\s+["']?([^\s"'-][^\s"']*)`, " \t\n\f\r"},
	{"-u --user --proxy-user", `(?:^|\s)(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s"':]*:([^\s"']+)`, ""},
	{"mysql mariadb sshpass", `(?i)\b(?:mysql\w*|mariadb\w*|sshpass)\b[^\n]*?\s-p\s?([^\s-]\S*)`, ""},

	{"hooks.slack.com", `hooks\.slack\.com/(?:services|workflows)/([\w/-]+)`, ""},
	{"/webhooks/", `/api/webhooks/(\d+/[\w-]+)`, ""},
}

// secretPatterns are those by place, and those by form.
var secretPatterns = sync.OnceValue(func() []secretPattern {
	all := slices.Clone(byPlace[:])
	for _, f := range detect.Forms {
		all = append(all, secretPattern{words: f.Words, expr: f.Expression()})
	}
	return all
})

// nameWords is in every name that assignment looks for.
const nameWords = "pass pwd secret token key auth credential otp session sig"

// assignment is a name, a sign between, and a value: in quotes, or up to what
// ends a word.
const assignment = `(?i)(?:^|[^a-z0-9])(?:[a-z0-9]+[_.-])*` + names + `(?:[_-][a-z0-9]+)*["']?\s*(?:=>|:=|=|:)\s*` +
	`(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'&,;(){}][^\s"'&,;){}]*))`

// userinfo adds the passwords in addresses to spans.
func userinfo(s string, spans []span) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return spans
		}
		at += i + len("://")
		rest := s[at:]
		if end := strings.IndexAny(rest, " \t\r\n\"'<>"); end >= 0 {
			rest = rest[:end]
		}
		if from, to := password(rest); from < to {
			spans = append(spans, span{at + from, at + to})
		}
	}
}

// password finds the secret before the host of an address without scheme. A
// password may have a slash in it, as people write them; a port and a path
// that has an @ are none.
func password(rest string) (from, to int) {
	path := strings.IndexAny(rest, "/?#")
	if path < 0 {
		path = len(rest)
	}
	colon := strings.IndexByte(rest, ':')
	if at := strings.LastIndexByte(rest[:path], '@'); at >= 0 {
		if colon >= 0 && colon < at {
			return colon + 1, at
		}
		if user := rest[:at]; user == "git" || user == redacted {
			return 0, 0
		}
		return 0, at
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || colon < 0 || colon > path {
		return 0, 0
	}
	if strings.Trim(rest[colon+1:path], "0123456789") == "" {
		return 0, 0
	}
	return colon + 1, at
}

var optionForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^--?(?:[a-z0-9]+[_-])*` + names + `(?:[_-]value)?$`)
})

// A spotter finds out in one pass which forms are worth trying.
type spotter struct {
	starts   pairs          // the first two letters of all words
	words    [1 << 14]uint8 // by those, one more than the place in lists
	lists    [][]spotted
	patterns []secretPattern
	exprs    []func() *regexp.Regexp
}

// address is the bit of what userinfo looks for, which is no expression.
const address = uint64(1) << 63

type spotted struct {
	word string
	form uint64 // bits
}

var spot = sync.OnceValue(func() *spotter {
	s := &spotter{patterns: secretPatterns()}
	for i, f := range s.patterns {
		s.exprs = append(s.exprs, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(f.expr) }))
		for word := range strings.FieldsSeq(f.words) {
			s.add(word, 1<<i)
		}
	}
	s.add("://", address)
	return s
})

func (sp *spotter) add(word string, form uint64) {
	sp.starts.add(word[0], word[1])
	at := &sp.words[pairAt(word[0], word[1])]
	if *at == 0 {
		sp.lists = append(sp.lists, nil)
		*at = uint8(len(sp.lists))
	}
	list := &sp.lists[*at-1]
	*list = append(*list, spotted{word, form})
}

// forms returns the bits of the forms that have a word in s.
func (sp *spotter) forms(s string) uint64 {
	var found uint64
	for i := 1; i < len(s); i++ {
		if !sp.starts.has(s[i-1], s[i]) {
			continue
		}
		for _, w := range sp.lists[sp.words[pairAt(s[i-1], s[i])]-1] {
			if found&w.form == 0 && begins(s[i-1:], w.word) {
				found |= w.form
			}
		}
	}
	return found
}

// begins reports whether s begins with a word, which is in small letters.
func begins(s, word string) bool {
	if len(s) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(s[i]) != word[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// structural adds what looks like a secret to spans: what the forms find that
// have a word in s.
func structural(s string, found uint64, spans []span) []span {
	if found&address != 0 {
		spans = userinfo(s, spans)
	}
	sp := spot()
	for found &^= address; found != 0; found &= found - 1 {
		i := bits.TrailingZeros64(found)
		if signs := sp.patterns[i].signs; signs != "" && !strings.ContainsAny(s, signs) {
			continue // "session-1" is a name like those of secrets, with no value
		}
		for _, m := range sp.exprs[i]().FindAllStringSubmatchIndex(s, -1) {
			from, to := m[0], m[1]
			for g := 2; g < len(m); g += 2 { // the group that took part
				if m[g] >= 0 {
					from, to = m[g], m[g+1]
				}
			}
			if from < to {
				spans = append(spans, span{from, to})
			}
		}
	}
	return spans
}
