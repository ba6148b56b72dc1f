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
func joinPlain(tokens token.Tokens) (token.Tokens, *Error) {
	at := nextSplit(tokens, 0)
	if at < 0 {
		return tokens, nil
	}
	var out token.Tokens
	from := 0
	for ; at >= 0; at = nextSplit(tokens, from) {
		out.Add(tokens[from:at]...)
		joined, err := rejoin(tokens[at], tokens[at+1], tokens[at+2])
		if err != nil {
			return nil, err
		}
		out.Add(joined...)
		from = at + 3
	}
	out.Add(tokens[from:]...)
	last := out[len(out)-1]
	last.Next = nil
	return out, nil
}

// nextSplit finds, from an index on, a plain scalar, a colon and a plain
// scalar with nothing between them, or gives -1.
func nextSplit(tokens token.Tokens, from int) int {
	for i := from; i+2 < len(tokens); i++ {
		if tokens[i+1].Type == token.MappingValueType && isPlain(tokens[i]) && isPlain(tokens[i+2]) &&
			touches(tokens[i], tokens[i+1]) && touches(tokens[i+1], tokens[i+2]) {
			return i
		}
	}
	return -1
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
