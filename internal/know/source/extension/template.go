package extension

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/internal/know/source/pattern"
	"ken/internal/know/source/recipe"
)

// A commandTemplate is a command line written as text, taken apart without a
// shell: Argv has one element per argument, and a "{name}" in it stands for a
// parameter wherever it is, so that a value never becomes two arguments.
type commandTemplate struct {
	argv       []string
	parameters []templateParameter // in the order of their first use
}

type templateParameter struct {
	name string
	list bool // "{name...}", one argument per item

	// alone: it is an argument of its own somewhere. option: it stands only
	// within options, as in "--limit={limit}", which are left out without it.
	alone, option bool
}

// optionValue reports whether a parameter at a byte of an argument is the value
// of an option written in one with it.
func optionValue(element string, at int) bool { return at > 0 && element[0] == '-' }

// place notes where in the arguments the parameters stand.
func (t *commandTemplate) place() {
	for i := range t.parameters {
		p := &t.parameters[i]
		p.alone, p.option = false, true
		for _, element := range t.argv {
			for _, m := range recipe.Placeholder().FindAllStringSubmatchIndex(element, -1) {
				if element[m[2]:m[3]] == p.name {
					p.alone = p.alone || m[0] == 0 && m[1] == len(element)
					p.option = p.option && optionValue(element, m[0])
				}
			}
		}
	}
}

// A templateError says what is wrong with a template, and where: the position
// counts characters from 1.
type templateError struct {
	position     int
	message, fix string
}

func (e *templateError) Error() string {
	return fmt.Sprintf("position %d: %s; %s", e.position, e.message, e.fix)
}

const (
	MaxTemplate     = 8 << 10
	maxTemplateArgs = 256
)

// templateParam matches a parameter where a brace opens.
var templateParam = pattern.Lazy(`^\{([A-Za-z_][A-Za-z0-9_-]*)(\.\.\.)?\}`)

// parseTemplate takes a template apart: blanks part the arguments, quotes and
// backslashes keep them together. What only a shell would understand is
// refused even in quotes, because its author expects a shell.
func parseTemplate(text string) (commandTemplate, *templateError) {
	text = strings.TrimSpace(text)
	if text == "" {
		return commandTemplate{}, &templateError{1, "the template is empty", "write the program and its arguments"}
	}
	if len(text) > MaxTemplate {
		return commandTemplate{}, &templateError{1, fmt.Sprintf("the template has %d bytes, more than %d", len(text), MaxTemplate), "put the steps into a program of their own"}
	}
	p := templateParser{text: text}
	for p.at < len(p.text) {
		if err := p.step(); err != nil {
			return commandTemplate{}, err
		}
	}
	if p.quote != 0 {
		return commandTemplate{}, p.fault(p.opened, fmt.Sprintf("the quote %c that opens here never closes", p.quote), "close it, or remove it")
	}
	p.endElement()
	if len(p.out.argv) > maxTemplateArgs {
		return commandTemplate{}, p.fault(0, fmt.Sprintf("the template has %d arguments, more than %d", len(p.out.argv), maxTemplateArgs), "take a list as {name...}")
	}
	if err := p.checkLists(); err != nil {
		return commandTemplate{}, err
	}
	if strings.ContainsRune(p.out.argv[0], '{') {
		return commandTemplate{}, p.fault(0, "the program itself is a parameter", "name the program; only its arguments can be parameters")
	}
	p.out.place()
	return p.out, nil
}

// listTemplate makes a template of a command line that is a list already. No
// one expects a shell there, so what a shell would act on are characters like
// any other, and so are braces around anything but a name. The error's position
// is the number of the argument, from 0.
func listTemplate(argv []string) (commandTemplate, *templateError) {
	size := 0
	for i, element := range argv {
		size += len(element)
		switch {
		case i >= maxTemplateArgs:
			return commandTemplate{}, &templateError{0, fmt.Sprintf("there are %d arguments, more than %d", len(argv), maxTemplateArgs), "take a list as {name...}"}
		case size > MaxTemplate:
			return commandTemplate{}, &templateError{i, fmt.Sprintf("the arguments have more than %d bytes", MaxTemplate), "put the steps into a program of their own"}
		}
		if at := strings.IndexFunc(element, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }); at >= 0 {
			r, _ := utf8.DecodeRuneInString(element[at:])
			return commandTemplate{}, &templateError{i, fmt.Sprintf("it holds the control character %U", r), "remove it"}
		}
	}
	if len(argv) == 0 {
		return commandTemplate{}, &templateError{0, "there is no program", "write the program and its arguments, as in [git, status]"}
	}
	t := commandTemplate{argv: argv}
	for i, element := range argv {
		for _, m := range recipe.Placeholder().FindAllStringSubmatch(element, -1) {
			p := templateParameter{name: m[1], list: m[2] != ""}
			at := slices.IndexFunc(t.parameters, func(known templateParameter) bool { return known.name == p.name })
			switch {
			case at < 0:
				t.parameters = append(t.parameters, p)
			case t.parameters[at].list != p.list:
				return commandTemplate{}, &templateError{i, p.name + " is one value in one place and a list in another", "write it the same way everywhere"}
			}
		}
	}
	t.place()
	return t, nil
}

type templateParser struct {
	text    string
	at      int
	quote   byte // ' or ", 0 outside
	opened  int
	element strings.Builder
	started bool // an element has begun, perhaps an empty one in quotes
	out     commandTemplate
}

func (p *templateParser) fault(at int, message, fix string) *templateError {
	return &templateError{1 + utf8.RuneCountInString(p.text[:at]), message, fix}
}

// step reads one character, escape or parameter.
func (p *templateParser) step() *templateError {
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	if err := p.refuse(r, size); err != nil {
		return err
	}
	switch {
	case r == '{':
		return p.parameter()
	case r == '}':
		return p.fault(p.at, "this brace closes nothing", "write a parameter as {name}; braces mean nothing else here")
	case p.quote == 0 && (r == ' ' || r == '\t'):
		p.endElement()
		p.at += size
		return nil
	case p.quote == 0 && (r == '\'' || r == '"'):
		p.quote, p.opened, p.started = byte(r), p.at, true
		p.at += size
		return nil
	case p.quote != 0 && r == rune(p.quote):
		p.quote = 0
		p.at += size
		return nil
	case r == '\\' && p.quote != '\'':
		return p.escape()
	}
	p.put(r)
	p.at += size
	return nil
}

func (p *templateParser) put(r rune) {
	p.element.WriteRune(r)
	p.started = true
}

// refuse stops at what a shell would act on, and at what no argument may hold.
func (p *templateParser) refuse(r rune, size int) *templateError {
	const fix = "no shell reads a template: write one program with its arguments"
	switch r {
	case ';', '|', '`', '$', '>', '<':
		return p.fault(p.at, fmt.Sprintf("%c is not allowed in a template", r), fix)
	case '&':
		if p.quote == 0 || strings.HasPrefix(p.text[p.at:], "&&") {
			return p.fault(p.at, "& is not allowed in a template", fix)
		}
	case '\n', '\r':
		return p.fault(p.at, "the template goes on over a second line", fix)
	case utf8.RuneError:
		if size <= 1 {
			return p.fault(p.at, "the template is not valid UTF-8", "save the file as UTF-8")
		}
	}
	if unicode.IsControl(r) && r != '\t' {
		return p.fault(p.at, fmt.Sprintf("the template holds the control character %U", r), "remove it")
	}
	return nil
}

// escape reads a backslash and what it protects. In double quotes it protects
// only a quote and a backslash, and stands for itself elsewhere.
func (p *templateParser) escape() *templateError {
	if p.at+1 == len(p.text) {
		return p.fault(p.at, "the backslash at the end protects nothing", "remove it")
	}
	r, size := utf8.DecodeRuneInString(p.text[p.at+1:])
	if p.quote == '"' && r != '"' && r != '\\' {
		p.put('\\')
		p.at++
		return nil
	}
	p.at++
	if err := p.refuse(r, size); err != nil {
		return err
	}
	if r == '{' || r == '}' {
		return p.fault(p.at, "a brace cannot be protected", "braces only write parameters: {name}")
	}
	p.put(r)
	p.at += size
	return nil
}

// parameter reads {name} or {name...}.
func (p *templateParser) parameter() *templateError {
	m := templateParam().FindStringSubmatch(p.text[p.at:])
	if m == nil {
		return p.fault(p.at, "this brace does not begin a parameter", "write {name} with letters, digits, _ and -")
	}
	p.element.WriteString(m[0])
	p.started = true
	p.at += len(m[0])
	for _, known := range p.out.parameters {
		if known.name == m[1] {
			if known.list != (m[2] != "") {
				return p.fault(p.at-len(m[0]), fmt.Sprintf("%s is one value in one place and a list in another", m[1]), "write it the same way everywhere")
			}
			return nil
		}
	}
	p.out.parameters = append(p.out.parameters, templateParameter{name: m[1], list: m[2] != ""})
	return nil
}

func (p *templateParser) endElement() {
	if p.started {
		p.out.argv = append(p.out.argv, p.element.String())
	}
	p.element.Reset()
	p.started = false
}

// checkLists: a list stands alone, since inside an argument it has no meaning.
func (p *templateParser) checkLists() *templateError {
	for _, element := range p.out.argv {
		if strings.Contains(element, "...}") {
			if m := templateParam().FindString(element); m != element {
				return p.fault(strings.Index(p.text, "...}"), fmt.Sprintf("the list in %q is only a part of an argument", element), "let {name...} be an argument of its own")
			}
		}
	}
	return nil
}
