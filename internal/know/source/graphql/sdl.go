package graphql

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parseSDL reads a schema in the schema language. Directives are skipped, except
// for deprecated.
func parseSDL(text string) (s *schema, err error) {
	p := &sdlParser{lexer: lexer{text: text, line: 1}, types: map[string]*typeDef{}, out: &schema{}}
	p.next()
	for p.err == nil && p.tok != "" {
		p.definition()
	}
	if p.err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, p.err)
	}
	if len(p.out.Types) == 0 {
		return nil, errors.New("the document has no types")
	}
	root := func(at **named, name string) {
		if t := p.types[name]; *at == nil && !p.rooted && t != nil && t.Kind == "OBJECT" {
			*at = &named{name}
		}
	}
	root(&p.out.QueryType, "Query")
	root(&p.out.MutationType, "Mutation")
	root(&p.out.SubscriptionType, "Subscription")
	return p.out, nil
}

// A lexer makes tokens of a text. A token is a name, a number, a sign, or a text
// with its quotes.
type lexer struct {
	text string
	at   int
	line int
	tok  string // "" at the end
	from int    // where tok begins
	err  error
}

func (l *lexer) next() {
	l.space()
	l.from = l.at
	rest := l.text[l.at:]
	switch {
	case rest == "":
	case strings.HasPrefix(rest, `"""`):
		l.block(rest)
	case rest[0] == '"':
		n := 1
		for n < len(rest) && rest[n] != '"' && rest[n] != '\n' {
			if rest[n] == '\\' {
				n++
			}
			n++
		}
		if n >= len(rest) || rest[n] != '"' {
			l.fail("a text in quotes does not end")
			return
		}
		l.at += n + 1
	case strings.HasPrefix(rest, "..."):
		l.at += 3
	case wordByte(rest[0]) || rest[0] == '-':
		n := 1
		for n < len(rest) && (wordByte(rest[n]) || strings.IndexByte(".+-", rest[n]) >= 0) {
			n++
		}
		l.at += n
	case strings.IndexByte("!$&():=@[]{|}", rest[0]) >= 0:
		l.at++
	default:
		l.fail("unexpected character " + clip(rest[:1], 1))
		return
	}
	l.tok = l.text[l.from:l.at]
}

func (l *lexer) block(rest string) {
	for n := 3; n < len(rest); n++ {
		if strings.HasPrefix(rest[n:], `\"""`) {
			n += 3
		} else if strings.HasPrefix(rest[n:], `"""`) {
			l.line += strings.Count(rest[:n], "\n")
			l.at += n + 3
			return
		}
	}
	l.fail(`a text in """ does not end`)
}

// space skips what separates tokens.
func (l *lexer) space() {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\n':
			l.line++
		case c == ' ', c == '\t', c == '\r', c == ',':
		case c == '#':
			end := strings.IndexByte(l.text[l.at:], '\n')
			if end < 0 {
				end = len(l.text) - l.at
			}
			l.at += end - 1
		default:
			return
		}
		l.at++
	}
}

// fail ends the reading.
func (l *lexer) fail(why string) {
	if l.err == nil {
		l.err = errors.New(why)
	}
	l.tok, l.at = "", len(l.text)
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

type sdlParser struct {
	lexer
	types  map[string]*typeDef
	out    *schema
	rooted bool // the schema names its root types
}

// take consumes a sign and reports whether it was there.
func (p *sdlParser) take(sign string) bool {
	if p.tok != sign {
		return false
	}
	p.next()
	return true
}

func (p *sdlParser) expect(sign string) {
	if !p.take(sign) {
		p.fail("expected " + sign + ", not " + clip(p.tok, 40))
	}
}

func (p *sdlParser) name() string {
	n := p.tok
	if !isName(n) {
		p.fail("expected a name, not " + clip(n, 40))
		return ""
	}
	p.next()
	return n
}

// description reads the text before a definition.
func (p *sdlParser) description() string {
	if !strings.HasPrefix(p.tok, `"`) {
		return ""
	}
	text := p.tok
	p.next()
	if block, ok := strings.CutPrefix(text, `"""`); ok {
		return strings.TrimSpace(strings.ReplaceAll(strings.TrimSuffix(block, `"""`), `\"""`, `"""`))
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n").Replace(text[1 : len(text)-1])
}

// kindOf returns the kind of the type that a word defines, or "".
func kindOf(word string) string {
	switch word {
	case "scalar", "interface", "union", "enum":
		return strings.ToUpper(word)
	case "type":
		return "OBJECT"
	case "input":
		return "INPUT_OBJECT"
	}
	return ""
}

func (p *sdlParser) definition() {
	about := p.description()
	p.take("extend")
	word := p.name()
	switch kind := kindOf(word); {
	case p.err != nil:
	case word == "schema":
		p.roots()
	case word == "directive":
		p.directiveDefinition()
	case kind != "":
		p.typeDefinition(kind, about)
	default:
		p.fail("expected a definition of a type, not " + clip(word, 40))
	}
}

// roots reads the types of the operations.
func (p *sdlParser) roots() {
	p.directives()
	if !p.take("{") {
		return
	}
	p.rooted = true
	for p.err == nil && !p.take("}") {
		p.description()
		operation := p.name()
		p.expect(":")
		of := &named{p.name()}
		switch operation {
		case "query":
			p.out.QueryType = of
		case "mutation":
			p.out.MutationType = of
		case "subscription":
			p.out.SubscriptionType = of
		}
	}
}

func (p *sdlParser) directiveDefinition() {
	p.expect("@")
	p.name()
	p.inputs("(", ")")
	p.take("repeatable")
	p.expect("on")
	p.take("|")
	for p.name(); p.take("|"); p.name() {
	}
}

func (p *sdlParser) typeDefinition(kind, about string) {
	n := p.name()
	t := p.types[n]
	if t == nil {
		t = &typeDef{Kind: kind, Name: n, Description: about}
		p.types[n], p.out.Types = t, append(p.out.Types, t)
	}
	if p.take("implements") {
		p.take("&")
		for p.name(); p.take("&"); p.name() {
		}
	}
	p.directives()
	switch {
	case t.Kind == "UNION":
		if p.take("=") {
			for p.take("|"); p.err == nil; {
				t.PossibleTypes = append(t.PossibleTypes, named{p.name()})
				if !p.take("|") {
					break
				}
			}
		}
	case t.Kind == "INPUT_OBJECT":
		t.InputFields = append(t.InputFields, p.inputs("{", "}")...)
	case p.tok != "{":
	case t.Kind == "ENUM":
		p.next()
		for p.err == nil && !p.take("}") {
			p.description()
			t.EnumValues = append(t.EnumValues, named{p.name()})
			p.directives()
		}
	default:
		p.next()
		for p.err == nil && !p.take("}") {
			f := &fieldDef{Description: p.description(), Name: p.name()}
			f.Args = p.inputs("(", ")")
			p.expect(":")
			f.Type = p.reference(0)
			f.Deprecated = p.directives()
			t.Fields = append(t.Fields, f)
		}
	}
}

// inputs reads arguments, or the members of an input object, where they begin here.
func (p *sdlParser) inputs(open, end string) (out []*inputDef) {
	if !p.take(open) {
		return nil
	}
	for p.err == nil && !p.take(end) {
		i := &inputDef{Description: p.description(), Name: p.name()}
		p.expect(":")
		i.Type = p.reference(0)
		if p.take("=") {
			text := p.value()
			i.DefaultValue = &text
		}
		p.directives()
		out = append(out, i)
	}
	return out
}

// reference reads a type. The kind of a named one does not matter to its readers.
func (p *sdlParser) reference(level int) *typeRef {
	if level > maxWraps {
		p.fail("a type has too many lists in it")
		return nil
	}
	var r *typeRef
	if p.take("[") {
		r = &typeRef{Kind: list, OfType: p.reference(level + 1)}
		p.expect("]")
	} else {
		r = &typeRef{Name: p.name()}
	}
	if p.take("!") {
		r = &typeRef{Kind: nonNull, OfType: r}
	}
	return r
}

// value skips a value and returns its text.
func (p *sdlParser) value() string {
	from, end := p.from, p.at
	var open []string
	for p.err == nil && p.tok != "" {
		switch p.tok {
		case "[":
			open = append(open, "]")
		case "{":
			open = append(open, "}")
		case "]", "}":
			if len(open) == 0 || open[len(open)-1] != p.tok {
				p.fail("unexpected " + p.tok)
				return ""
			}
			open = slices.Delete(open, len(open)-1, len(open))
		case "$":
			p.next() // a variable is two tokens
		}
		end = p.at
		p.next()
		if len(open) == 0 {
			break
		}
	}
	return p.text[from:end]
}

// directives skips directives, and reports whether one is deprecated.
func (p *sdlParser) directives() (deprecated bool) {
	for p.take("@") {
		deprecated = p.name() == "deprecated" || deprecated
		if p.take("(") {
			for p.err == nil && !p.take(")") {
				p.name()
				p.expect(":")
				p.value()
			}
		}
	}
	return deprecated
}
