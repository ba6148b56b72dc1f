package untrusted

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"
)

const (
	// minEncoded is the shortest token that is decoded: 24 characters of base64
	// hold 18, too few for an order.
	minEncoded = 24
	// maxEncoded is how much of one token is decoded.
	maxEncoded = 64 << 10
)

// payloads decodes long tokens and scans what they hold. A token that holds
// ordinary text, or none, is no finding.
func (s *scanner) payloads() {
	if s.depth >= maxDepth {
		return
	}
	for i := minEncoded - 1; i < len(s.text); i += minEncoded {
		if !codeByte(s.text[i]) {
			continue
		}
		lo, hi := i, i+1
		for lo > 0 && codeByte(s.text[lo-1]) {
			lo--
		}
		for hi < len(s.text) && codeByte(s.text[hi]) {
			hi++
		}
		if hi-lo >= minEncoded {
			s.payload(lo, min(hi, lo+maxEncoded))
		}
		i = max(hi, i)
	}
}

func (s *scanner) payload(lo, hi int) {
	token := strings.TrimRight(s.text[lo:hi], "=")
	for _, d := range decoders {
		raw, err := d.decode(token)
		if err != nil || !printable(raw) {
			continue
		}
		inner := scanner{text: string(raw), depth: s.depth + 1}
		inner.scan()
		if len(inner.found) > 0 {
			s.add(hit{d.rule, Hard, lo, hi, inner.text})
		}
	}
}

var decoders = [...]struct {
	rule   string
	decode func(string) ([]byte, error)
}{
	{"encoded-base64", func(t string) ([]byte, error) {
		if !likeBase64(t) {
			return nil, errNotEncoded
		}
		t = t[:len(t)-len(t)%4]
		if strings.ContainsAny(t, "-_") {
			return base64.RawURLEncoding.DecodeString(t)
		}
		return base64.RawStdEncoding.DecodeString(t)
	}},
	{"encoded-hex", func(t string) ([]byte, error) {
		return hex.DecodeString(t[:len(t)-len(t)%2])
	}},
}

var errNotEncoded = errors.New("not encoded")

// likeBase64 tells base64 of a text, which has many letters of both cases, from
// paths and identifiers, which are much more common.
func likeBase64(token string) bool {
	up, low := 0, 0
	for i := range len(token) {
		switch c := token[i]; {
		case 'A' <= c && c <= 'Z':
			up++
		case 'a' <= c && c <= 'z':
			low++
		}
	}
	return up*8 >= len(token) && low*8 >= len(token)
}

func codeByte(c byte) bool { return byteKinds[c]&isCode != 0 }

// printable reports text rather than data: valid UTF-8 with hardly a control
// character.
func printable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	odd := 0
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7F {
			odd++
		}
	}
	return odd*50 <= len(b)
}
