package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ken/capability"
	"sync"
)

const (
	mostArgs    = 4096
	longestArg  = 128 << 10 // what one argument may have on Linux
	longestArgv = 1 << 20
)

var (
	placeholder = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*?)(\.\.\.)?\}`)
	})
	toolName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)
	})
)

// Tool returns the program that an exec runner stands for: "exec.postman_cli" is
// postman. Only one suffix, at the end, is taken off, and what is left must be
// a plain name.
func Tool(runner string) (string, error) {
	name, ok := strings.CutPrefix(runner, "exec.")
	if !ok {
		return "", errors.New("the runner is not an exec runner")
	}
	for _, suffix := range []string{"_cli", "_tool"} {
		if short, cut := strings.CutSuffix(name, suffix); cut {
			name = short
			break
		}
	}
	if !toolName().MatchString(name) {
		return "", errors.New("the runner names no program; write exec. and a name in lower case, as in exec.git")
	}
	return name, nil
}

// Argv makes the argument list of a call, the program's name first.
//
// A recipe with a template gives one element per element: "{name}" is replaced
// within its element and never makes two, "{name...}" becomes one per item.
// "{name}" alone, of a boolean that has a flag in the schema, is a switch: the
// flag when the value is true, and nothing otherwise.
//
// What is not given, and neither has a default nor is required, leaves out an
// element that is "{name}" alone or an option such as "--limit={limit}". In any
// other element, as "./{name}", its absence is an error.
//
// A recipe without one gives the program, the action, the flags in the order
// of the schema, and the positional arguments.
//
// A value that begins with a dash could be read as an option that was not meant
// to offer. It is refused where it would stand as an element of its own, unless
// it is a number that the schema calls one, stands behind a literal "--", or
// the capability's Meta lets it through.
func Argv(c *capability.Capability, schema, arguments json.RawMessage) ([]string, error) {
	s, err := readSchema(schema)
	if err != nil {
		return nil, err
	}
	return s.argv(c, arguments)
}

func (s schema) argv(c *capability.Capability, arguments json.RawMessage) ([]string, error) {
	values, err := s.values(arguments)
	if err != nil {
		return nil, err
	}
	b := builder{schema: s, values: values, dashes: c.Run.Passthrough}
	if len(c.Run.Argv) > 0 {
		err = b.template(c.Run.Argv)
	} else {
		var tool string
		if tool, err = Tool(c.Run.Runner); err == nil {
			err = b.plain(tool, c.Run.Action, c.Run.EndOfOptions)
		}
	}
	if err != nil {
		return nil, err
	}
	return b.argv, b.check()
}

// A builder puts an argument list together.
type builder struct {
	schema schema
	values map[string]any
	argv   []string
	dashes bool // values may begin with a dash
}

func (b *builder) template(elements []string) error {
	if placeholder().MatchString(elements[0]) {
		return errors.New("the program itself is a parameter")
	}
	b.argv = append(b.argv, elements[0])
	for i, element := range elements[1:] {
		if element == "--" {
			b.dashes = true
		}
		if err := b.element(element); err != nil {
			return fmt.Errorf("argv[%d]: %w", i+1, err)
		}
	}
	return nil
}

func (b *builder) element(element string) error {
	found := placeholder().FindAllStringSubmatchIndex(element, -1)
	if found == nil {
		b.argv = append(b.argv, element)
		return nil
	}
	alone := found[0][0] == 0 && found[0][1] == len(element)
	if alone {
		return b.value(element[found[0][2]:found[0][3]], found[0][4] >= 0)
	}
	var out strings.Builder
	last := 0
	for _, m := range found {
		name := element[m[2]:m[3]]
		v, ok := b.values[name]
		_, known := b.schema.find(name)
		switch {
		case !known:
			return noParameter(name)
		case m[4] >= 0:
			return fmt.Errorf("the list %s must be a whole argument, not a part of one", name)
		case !ok && strings.HasPrefix(element, "-") && m[0] > 0:
			return nil // an option without its value is no option
		case !ok:
			return fmt.Errorf("%s is missing", name)
		}
		text, err := scalar(name, v)
		if err != nil {
			return err
		}
		if m[0] == 0 {
			if err := b.mayStand(name, text); err != nil {
				return err
			}
		}
		out.WriteString(element[last:m[0]])
		out.WriteString(text)
		last = m[1]
	}
	out.WriteString(element[last:])
	b.argv = append(b.argv, out.String())
	return nil
}

// noParameter: leaving such an element out would hide a slip of the author's.
func noParameter(name string) error {
	return fmt.Errorf("the schema has no argument %s", name)
}

// value adds a value as an element of its own, a list as several.
func (b *builder) value(name string, list bool) error {
	p, known := b.schema.find(name)
	v, ok := b.values[name]
	switch {
	case !known:
		return noParameter(name)
	case !ok:
		return nil // values has seen to what is required
	case !list && p.isSwitch():
		if v == true {
			b.argv = append(b.argv, p.flag)
		}
		return nil
	}
	items, isList := v.([]any)
	switch {
	case list && !isList:
		return fmt.Errorf("%s is not a list", name)
	case !list && isList:
		return fmt.Errorf("%s is a list, want one value", name)
	case !isList:
		items = []any{v}
	}
	for _, item := range items {
		text, err := scalar(name, item)
		if err != nil {
			return err
		}
		if err := b.mayStand(name, text); err != nil {
			return err
		}
		b.argv = append(b.argv, text)
	}
	return nil
}

// mayStand refuses a value that would be read as an option.
func (b *builder) mayStand(name, text string) error {
	if b.dashes || len(text) < 2 || text[0] != '-' || b.schema.numeric(name) {
		return nil
	}
	return fmt.Errorf("%s begins with a dash, so the program would read it as an option; rewrite it (./-name for a file), or declare the option as a flag in the manifest", name)
}

// plain makes the arguments of a recipe without a template.
func (b *builder) plain(tool, action string, endOfOptions bool) error {
	b.argv = append(b.argv, tool)
	if action != "" {
		b.argv = append(b.argv, action)
	}
	for _, p := range b.schema.properties {
		if v, ok := b.values[p.name]; ok && p.flag != "" {
			if err := b.flag(p, v); err != nil {
				return err
			}
		}
	}
	if endOfOptions {
		b.argv = append(b.argv, "--")
		b.dashes = true
	}
	for _, p := range b.schema.positional() {
		v, ok := b.values[p.name]
		if !ok {
			continue
		}
		_, list := v.([]any)
		if err := b.value(p.name, list); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) flag(p property, v any) error {
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	for _, item := range items {
		switch item {
		case true:
			b.argv = append(b.argv, p.flag)
			continue
		case false:
			continue
		}
		text, err := scalar(p.name, item)
		if err != nil {
			return err
		}
		if err := b.mayStand(p.name, text); err != nil {
			return err
		}
		b.argv = append(b.argv, p.flag, text)
	}
	return nil
}

func (b *builder) check() error {
	if len(b.argv) > mostArgs {
		return fmt.Errorf("the command has %d arguments, more than %d", len(b.argv), mostArgs)
	}
	total := 0
	for i, arg := range b.argv {
		total += len(arg) + 1
		if len(arg) >= longestArg || total > longestArgv {
			return fmt.Errorf("argument %d makes the command longer than the system allows", i)
		}
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d contains a NUL byte", i)
		}
	}
	return nil
}

func scalar(name string, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("%s must be a string, a number, true or false", name)
}
