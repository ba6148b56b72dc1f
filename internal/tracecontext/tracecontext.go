// Package tracecontext checks the values of W3C trace context.
package tracecontext

import "strings"

// Parent reports whether s is a traceparent: a version, a trace id, a parent id and
// flags, all in lower-case hexadecimal.
func Parent(s string) bool {
	if len(s) != len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-00") {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 2, 35, 52:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// Header reports whether s can be a tracestate or baggage header.
func Header(s string) bool {
	return s != "" && len(s) <= 8192 && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}
