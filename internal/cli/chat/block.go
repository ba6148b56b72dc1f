package chat

import "strings"

// run counts how often c stands at the start of s.
func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

func fenceOf(body string) (fence, string, bool) {
	for _, c := range []byte("`~") {
		if n := run(body, c); n >= 3 && (c == '~' || !strings.Contains(body[n:], "`")) {
			return fence{mark: c, size: n}, body[n:], true
		}
	}
	return fence{}, "", false
}

func atx(body string) (level int, text string) {
	n := run(body, '#')
	if n == 0 || n > 6 || len(body) > n && body[n] != ' ' {
		return 0, ""
	}
	text = strings.TrimSpace(body[n:])
	if closed := strings.TrimRight(text, "#"); closed == "" || strings.HasSuffix(closed, " ") {
		text = strings.TrimSpace(closed)
	}
	return n, text
}

func setext(body string) int {
	switch {
	case run(body, '=') == len(body):
		return 1
	case len(body) > 1 && run(body, '-') == len(body):
		return 2
	}
	return 0
}

func rule(body string) bool {
	c := body[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	return strings.Count(body, string(c)) >= 3 && strings.Trim(body, string(c)+" ") == ""
}

func itemOf(body string) (mark, text string, ok bool) {
	n := 0
	for n < len(body) && n < 9 && body[n] >= '0' && body[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(body) && (body[n] == '.' || body[n] == ')'):
		n++
	case n == 0 && strings.IndexByte("-*+", body[0]) >= 0:
		n = 1
	default:
		return "", "", false
	}
	if len(body) > n && body[n] != ' ' {
		return "", "", false
	}
	return body[:n], strings.TrimSpace(body[n:]), true
}
