package yamldoc

import (
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// joinPlain puts together what the lexer takes apart within braces: to it the
// colon of {skill:s: x} ends a key, where YAML has a plain scalar go on past a
// colon that no space follows. A quoted key ends at its colon in any case, so
// JSON stays as it is.
//
// The lexer takes everything after such a colon for one text, so that is parted
// again at its own ": ".
//
// In brackets it errs the other way: the colon of [a:] and [a:[b]] ends a key.
func joinPlain(tokens token.Tokens) (token.Tokens, *Error) {
	var out token.Tokens
	from := 0
	for at := range tokens {
		switch {
		case at < from:
		case isSplit(tokens[at:]):
			out.Add(tokens[from:at]...)
			joined, err := rejoin(tokens[at], tokens[at+1], tokens[at+2])
			if err != nil {
				return nil, err
			}
			out.Add(joined...)
			from = at + 3
		case endsKey(tokens[at:]):
			out.Add(tokens[from:at]...)
			key := *tokens[at]
			place := *key.Position
			place.Column += len(key.Value) - 1
			key.Value, key.Origin = strings.TrimSuffix(key.Value, ":"), strings.TrimSuffix(key.Origin, ":")
			out.Add(&key, token.MappingValue(&place))
			if next := tokens[at+1].Type; next == token.CollectEntryType || next == token.SequenceEndType {
				out.Add(token.New("null", "", &place)) // the parser wants a value there
			}
			from = at + 1
		}
	}
	if from == 0 {
		return tokens, nil
	}
	out.Add(tokens[from:]...)
	out[len(out)-1].Next = nil
	return out, nil
}

// isSplit reports whether tokens begin with a plain scalar, a colon and a
// plain scalar that have nothing between them.
func isSplit(t token.Tokens) bool {
	return len(t) > 2 && t[1].Type == token.MappingValueType && isPlain(t[0]) && isPlain(t[2]) &&
		touches(t[0], t[1]) && touches(t[1], t[2])
}

// endsKey reports whether tokens begin with a text whose last colon ends a key.
func endsKey(t token.Tokens) bool {
	if len(t) < 2 || t[0].Type != token.StringType || len(t[0].Value) < 2 || !strings.HasSuffix(t[0].Value, ":") || !strings.HasSuffix(t[0].Origin, ":") {
		return false
	}
	switch t[1].Type {
	case token.CollectEntryType, token.SequenceEndType, token.SequenceStartType, token.MappingStartType:
		return true
	}
	return false
}

func isPlain(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.BinaryIntegerType, token.OctetIntegerType,
		token.HexIntegerType, token.BoolType, token.NullType, token.InfinityType, token.NanType:
		return true
	}
	return false
}

// touches reports whether b begins where a ends. The origin of a token holds
// the space around it.
func touches(a, b *token.Token) bool {
	return strings.TrimRight(a.Origin, " \t\r\n") == a.Origin && strings.TrimLeft(b.Origin, " \t\r\n") == b.Origin &&
		a.Position.Line == b.Position.Line
}

// rejoin makes one scalar of a key, its colon and the text after it, or a key
// and a value where the text has a ": " of its own.
func rejoin(key, colon, rest *token.Token) (token.Tokens, *Error) {
	name, value, parted := cutColon(rest.Value)
	text := key.Value + ":" + name
	origin := strings.TrimRight(key.Origin, " \t\r\n") + ":" + name
	joined := token.Tokens{token.String(text, origin, key.Position)}
	if !parted {
		return joined, nil
	}
	place := *rest.Position
	place.Offset += len(name)
	place.Column += len(name)
	joined = append(joined, token.MappingValue(&place))
	if value == "" {
		return joined, nil
	}
	found := lexer.Tokenize(value)
	if len(found) != 1 || found.InvalidToken() != nil || !isPlain(found[0]) && !isQuoted(found[0]) {
		return nil, &Error{
			Line: colon.Position.Line, Column: colon.Position.Column,
			Message: "the value of " + printable(text) + " cannot be told from its key", Fix: "put the key in quotes",
		}
	}
	place.Offset += 2
	place.Column += 2
	found[0].Position = &place
	found[0].Prev, found[0].Next = nil, nil
	return append(joined, found[0]), nil
}

func isQuoted(t *token.Token) bool {
	return t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType
}

// cutColon parts a text at the first colon that ends a key.
func cutColon(s string) (key, value string, ok bool) {
	for i := range len(s) {
		if s[i] == ':' && (i+1 == len(s) || isSpace(s[i+1])) {
			return s[:i], strings.TrimSpace(s[i+1:]), true
		}
	}
	return s, "", false
}
