package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/audit"
)

// secrets finds the secrets that Ken knows in what passes through a Runner, and
// takes them out.
type secrets struct{ redactor *audit.Redactor }

// undeclared returns the names of the secrets that Ken knows, that stand in what
// a call hands to its executor, and that this one is not given anyway: neither by
// the capability nor, as facts have it, besides.
// The rules deny a call for them: a secret is for those that it was given to.
func (s secrets) undeclared(call capability.Call, c *capability.Capability, facts []string) []string {
	found := slices.Concat(s.named(call.Arguments), s.named(call.Meta))
	for name, answer := range call.Answers {
		if name != AnswerConsent && name != AnswerAgain { // what people tell Ken stays in it
			found = append(found, s.named(answer)...)
		}
	}
	if len(found) == 0 {
		return nil
	}
	given := slices.Concat(c.RequiredSecrets, facts)
	if c.Run != nil {
		given = append(given, c.Run.Env...)
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(name string) bool { return slices.Contains(given, name) })
}

// named returns the names of the secrets in a JSON text: as it is written, and as
// readers understand it.
func (s secrets) named(raw json.RawMessage) []string {
	found := s.redactor.Named(string(raw))
	escaped, percent := bytes.IndexByte(raw, '\\') >= 0, bytes.IndexByte(raw, '%') >= 0
	if !escaped && !percent {
		return found
	}
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		token, err := dec.Token()
		if err != nil {
			return found
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		if escaped {
			found = append(found, s.redactor.Named(text)...)
		}
		if plain := unescape(text); plain != text {
			found = append(found, s.redactor.Named(plain)...)
		}
	}
}

// unescape replaces %XX by the byte that it stands for, and leaves all else.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := nibble(s[i+1]), nibble(s[i+2]); hi < 16 && lo < 16 {
				out = append(out, hi<<4|lo)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}

func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// hide takes the secrets that Ken knows out of a result. Every result
// passes here before it is kept and again before a caller has it, so all
// surfaces show the same.
func (s secrets) hide(res capability.Result) capability.Result {
	hide := s.redactor.Held
	parts := make([]capability.Part, len(res.Parts))
	for i, p := range res.Parts {
		p.Text, p.Link = hide(p.Text), hide(p.Link)
		if clean, same := s.hideBytes(p.JSON); !same {
			p.JSON = json.RawMessage(clean)
			if !json.Valid(p.JSON) { // the secret was more than a text
				p.JSON, p.Text = nil, clean
			}
		}
		if _, same := s.hideBytes(p.Extra); !same {
			p.Extra = nil
		}
		if clean, same := s.hideBytes(p.Data); !same {
			p.Data = []byte(clean)
		}
		parts[i] = p
	}
	if res.Parts != nil {
		res.Parts = parts
	}
	own := false // whether the map is a copy
	for key, text := range res.Meta {
		if clean := hide(text); clean != text {
			if !own {
				res.Meta, own = maps.Clone(res.Meta), true
			}
			res.Meta[key] = clean
		}
	}
	return res
}

func (s secrets) hideBytes(b []byte) (clean string, same bool) {
	if len(b) == 0 {
		return "", true
	}
	clean = s.redactor.Held(string(b))
	return clean, clean == string(b)
}

// hideInError takes them out of an error: its cause may quote what a
// program or a server said.
func (s secrets) hideInError(e *capability.Error) *capability.Error {
	hide := s.redactor.Held
	if q, ok := errors.AsType[*capability.Inquiry](e); ok {
		s.hideInInquiry(q)
	}
	if text := e.Error(); hide(text) == text {
		return e
	}
	clean := *e
	clean.Op, clean.Target, clean.Rule, clean.Fix = hide(e.Op), hide(e.Target), hide(e.Rule), hide(e.Fix)
	if e.Err != nil {
		clean.Err = quietError{hide(e.Err.Error()), e.Err}
	}
	return &clean
}

// hideInInquiry cleans what a server asks a person.
func (s secrets) hideInInquiry(q *capability.Inquiry) {
	requests := maps.Clone(q.Requests)
	for name, raw := range requests {
		if clean, same := s.hideBytes(raw); !same {
			if !json.Valid([]byte(clean)) {
				clean = "{}"
			}
			requests[name] = json.RawMessage(clean)
		}
	}
	q.Requests = requests
}

// A quietError is an error whose own words have a secret in them.
type quietError struct {
	text string
	err  error
}

func (e quietError) Error() string { return e.text }

func (e quietError) Unwrap() error { return e.err }
