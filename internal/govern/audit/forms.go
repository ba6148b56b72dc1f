package audit

import (
	"math/bits"
	"regexp"
	"strings"
	"sync"
)

// A form is a way to recognise a secret. Its expression is tried only on text
// that has one of its words (any case); its group, or else the whole match, is
// the secret.
type form struct {
	words string // apart by spaces
	expr  string
	keep  func(secret string) bool // true: not a secret after all
}

// names are what secrets are called. A longer name may have them inside.
const names = `(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key|` +
	`private[_-]?key|signing[_-]?key|encryption[_-]?key|master[_-]?key|shared[_-]?key|client[_-]?secret|credentials?|` +
	`auth(?:[_-]?(?:key|token|code))?|otp|session(?:[_-]?(?:id|key|token))|signature|sig|x-amz-[a-z-]*(?:signature|credential|token))`

var secretForms = [...]form{
	// By where they stand.
	{"authorization", `(?i)\bauthorization\b["']?\s*[:=]\s*["']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?([^"'\r\n]+)`, nil},
	{"cookie", `(?i)\bcookie2?\b["']?\s*[:=]\s*["']?([^"'\r\n]+)`, nil},
	{"bearer", `(?i)\bbearer\s+([a-z0-9._~+/=-]{6,})`, nil},
	{"basic", `(?i)\bbasic\s+([a-z0-9+/]{8,}={0,2})`, nil},
	{"key token secret auth credential", `(?i)\bx-[a-z-]*(?:key|token|secret|auth|credential)[a-z-]*["']?\s*[:=]\s*["']?([^"'\s,;]+)`, nil},
	{"mcp-session-id", `(?i)\bmcp-session-id["']?\s*[:=]\s*["']?([^"'\s,;]+)`, nil},
	{"@tcp( @unix(", `[\w.-]+:([^\s@]+)@(?:tcp|unix)\(`, nil},
	{nameWords, assignment, nil},
	{nameWords, `(?i)(?:^|\s)--?(?:[a-z0-9]+[_-])*` + names + `\s+["']?([^\s"'-][^\s"']*)`, nil},
	{"-u --user --proxy-user", `(?:^|\s)(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s"':]*:([^\s"']+)`, nil},
	{"mysql mariadb sshpass", `(?i)\b(?:mysql\w*|mariadb\w*|sshpass)\b[^\n]*?\s-p\s?([^\s-]\S*)`, nil},

	// By how they are formed.
	{"private", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`, nil},
	{"private+key+", `PRIVATE\+KEY\+[^\s"']+`, nil},
	{"age-secret-key", `AGE-SECRET-KEY-[0-9A-Z-]+`, nil},
	{"eyj", `\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?`, nil},
	{"akia asia aroa aida", `\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b`, nil},
	{"gh", `\bgh[pousr]_[A-Za-z0-9]{20,}`, nil},
	{"github_pat_", `\bgithub_pat_\w{20,}`, nil},
	{"gl", `\bgl(?:pat|ptt|dt|rt|cbt|soat|ft)-[\w-]{16,}`, nil},
	{"xox xapp", `\b(?:xox[abeoprs]|xapp)-[\w-]{8,}`, nil},
	{"sk- sk_ rk_ pk_", `\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9_-]{16,})`, nil},
	{"aiza", `\bAIza[\w-]{30,}`, nil},
	{"ya29 1//0", `(?:\bya29\.|\b1//0)[\w-]{16,}`, nil},
	{"gocspx", `\bGOCSPX-[\w-]{16,}`, nil},
	{"npm_", `\bnpm_[A-Za-z0-9]{30,}`, nil},
	{"pypi-", `\bpypi-[\w-]{16,}`, nil},
	{"sg.", `\bSG\.[\w-]{16,}\.[\w-]{16,}`, nil},
	{"hf_", `\bhf_[A-Za-z0-9]{20,}`, nil},
	{"dop_v1 doo_v1 dor_v1", `\bdo[opr]_v1_[a-f0-9]{32,}`, nil},
	{"shp", `\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,}`, nil},
	{"lin_api_ ntn_ secret_", `\b(?:lin_api|ntn|secret)_[A-Za-z0-9]{24,}`, nil},
	{":aa", `\b\d{7,11}:AA[\w-]{30,}`, nil},
	{"hooks.slack.com", `hooks\.slack\.com/(?:services|workflows)/([\w/-]+)`, nil},
	{"/webhooks/", `/api/webhooks/(\d+/[\w-]+)`, nil},
	{"hvs. hvb.", `\bhv[sb]\.[\w-]{20,}`, nil},
	{"tskey-", `\btskey-[\w-]{12,}`, nil},
	{"dckr_pat_", `\bdckr_pat_[\w-]{16,}`, nil},
}

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
	pairs [1 << 16 / 64]uint64 // the first two letters of all words
	words [1 << 16]uint8       // by those letters, one more than the place in lists
	lists [][]spotted          // by those letters
	exprs [len(secretForms)]func() *regexp.Regexp
}

type spotted struct {
	word string
	form uint64 // bits
}

var spot = sync.OnceValue(func() *spotter {
	s := new(spotter)
	for i, f := range secretForms {
		s.exprs[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(f.expr) })
		for word := range strings.FieldsSeq(f.words) {
			bit := uint(word[0])<<8 | uint(word[1])
			s.pairs[bit/64] |= 1 << (bit % 64)
			if s.words[bit] == 0 {
				s.lists = append(s.lists, nil)
				s.words[bit] = uint8(len(s.lists))
			}
			list := &s.lists[s.words[bit]-1]
			*list = append(*list, spotted{word, 1 << i})
		}
	}
	return s
})

// forms gives the bits of the forms that have a word in s.
func (sp *spotter) forms(s string) uint64 {
	var found uint64
	prev := uint(lower(s[0]))
	for i := 1; i < len(s); i++ {
		c := uint(lower(s[i]))
		bit := prev<<8 | c
		prev = c
		if sp.pairs[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		for _, w := range sp.lists[sp.words[bit]-1] {
			if found&w.form == 0 && len(s)-i+1 >= len(w.word) && strings.EqualFold(s[i-1:i-1+len(w.word)], w.word) {
				found |= w.form
			}
		}
	}
	return found
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// structural adds what looks like a secret to spans.
func structural(s string, spans []span) []span {
	spans = userinfo(s, spans)
	sp := spot()
	for found := sp.forms(s); found != 0; found &= found - 1 {
		i := bits.TrailingZeros64(found)
		for _, m := range sp.exprs[i]().FindAllStringSubmatchIndex(s, -1) {
			from, to := m[0], m[1]
			for g := 2; g < len(m); g += 2 { // the group that took part
				if m[g] >= 0 {
					from, to = m[g], m[g+1]
				}
			}
			if keep := secretForms[i].keep; from < to && (keep == nil || !keep(s[from:to])) {
				spans = append(spans, span{from, to})
			}
		}
	}
	return spans
}
