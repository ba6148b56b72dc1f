package shim

import (
	"bytes"
	"errors"
	"strconv"
)

// The few lines of JSON are written and read here by hand, and without package
// strings. What needs strings, reflect or fmt is initialised after a hundred
// packages of the program; this one right after os, which is four megabytes
// less for every window. TestStaysLight lists what must not come in.

// line encodes a hello. All of its text is UTF-8.
func (h Hello) line() []byte {
	b := append([]byte(`{"v":`), strconv.Itoa(h.V)...)
	b = quote(append(b, `,"do":`...), h.Do)
	b = quote(append(b, `,"build":`...), h.Build)
	b = strconv.AppendInt(append(b, `,"made":`...), h.Made, 10)
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(h.PID), 10)
	b = quote(append(b, `,"cwd":`...), h.Dir)
	b = append(b, `,"args":[`...)
	for i, arg := range h.Args {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, arg)
	}
	b = append(b, `],"env":{`...)
	first := true
	for name, value := range h.Env {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = quote(append(quote(b, name), ':'), value)
	}
	return append(b, "}}\n"...)
}

func quote(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

var errNoLine = errors.New("not a daemon of Ken")

// parse reads an object of texts, numbers and truth values as the daemon
// writes it. An object or a list in it is an error.
func parse(line []byte, set func(key, value string) error) error {
	s, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("{"))
	if !ok {
		return errNoLine
	}
	for s = bytes.TrimSpace(s); !begins(s, '}'); {
		key, rest, err := text(s)
		if err != nil {
			return err
		}
		if rest = bytes.TrimSpace(rest); !begins(rest, ':') {
			return errNoLine
		}
		value, rest, err := scalar(bytes.TrimSpace(rest[1:]))
		if err != nil {
			return err
		}
		if err := set(key, value); err != nil {
			return err
		}
		s = bytes.TrimSpace(rest)
		if begins(s, ',') {
			s = bytes.TrimSpace(s[1:])
		} else if !begins(s, '}') {
			return errNoLine
		}
	}
	if len(s) != 1 {
		return errNoLine
	}
	return nil
}

func begins(s []byte, c byte) bool { return len(s) > 0 && s[0] == c }

func scalar(s []byte) (value string, rest []byte, err error) {
	if begins(s, '"') {
		return text(s)
	}
	end := bytes.IndexAny(s, ",}")
	if end < 0 || bytes.ContainsAny(s[:end], "{[") {
		return "", nil, errNoLine
	}
	return string(bytes.TrimSpace(s[:end])), s[end:], nil
}

// text reads a string. The daemon's encoder writes no escapes but those that
// Go's strings have too.
func text(s []byte) (value string, rest []byte, err error) {
	if !begins(s, '"') {
		return "", nil, errNoLine
	}
	quoted, err := strconv.QuotedPrefix(string(s))
	if err != nil {
		return "", nil, errNoLine
	}
	if value, err = strconv.Unquote(quoted); err != nil {
		return "", nil, errNoLine
	}
	return value, s[len(quoted):], nil
}

func parseGreeting(line []byte) (g Greeting, err error) {
	err = parse(line, func(key, value string) (err error) {
		switch key {
		case "v":
			g.V, err = strconv.Atoi(value)
		case "build":
			g.Build = value
		case "made":
			g.Made, err = strconv.ParseInt(value, 10, 64)
		case "version":
			g.Version = value
		case "pid":
			g.PID, err = strconv.Atoi(value)
		case "clients":
			g.Clients, err = strconv.Atoi(value)
		case "stays":
			g.Stays = value == "true"
		case "error":
			g.Error = value
		}
		return err
	})
	return g, err
}

func parseReply(line []byte) (r Reply, err error) {
	err = parse(line, func(key, value string) error {
		switch key {
		case "ok":
			r.OK = value == "true"
		case "error":
			r.Error = value
		}
		return nil
	})
	return r, err
}

// wrap says what was being done, why it did not work, and what to do.
func wrap(what string, err error, fix string) error {
	return &failure{what, err, fix}
}

// A failure is an error without fmt.
type failure struct {
	what string
	err  error
	fix  string
}

func (f *failure) Error() string {
	s := f.what + ": " + f.err.Error()
	if f.fix != "" {
		s += "; " + f.fix
	}
	return s
}

func (f *failure) Unwrap() error { return f.err }
