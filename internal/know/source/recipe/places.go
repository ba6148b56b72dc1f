package recipe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/internal/know/source/format"
)

// An argvPlace is what a schema says of a parameter that bears on the arguments
// its value makes.
type argvPlace struct {
	flag     string // "x-ken-flag"
	boolean  bool   // and nothing else
	optional bool   // neither required nor with a default
}

// isSwitch: alone as an argument it is its flag, or nothing.
func (p argvPlace) isSwitch() bool { return p.boolean && p.flag != "" }

// PlacesOf returns the places of a schema's parameters, by name. A schema that
// says nothing of itself has none.
func PlacesOf(schema json.RawMessage) map[string]argvPlace {
	var doc struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &doc) != nil {
		return nil
	}
	out := make(map[string]argvPlace, len(doc.Properties))
	for name, raw := range doc.Properties {
		var p struct {
			Type    any             `json:"type"`
			Flag    string          `json:"x-ken-flag"`
			Default json.RawMessage `json:"default"`
		}
		_ = json.Unmarshal(raw, &p) // "true" is a schema too, and says nothing
		given := len(p.Default) > 0 && string(p.Default) != "null"
		out[name] = argvPlace{flag: p.Flag, boolean: p.Type == "boolean", optional: !given && !slices.Contains(doc.Required, name)}
	}
	return out
}

// An argvError is something wrong with one argument of a recipe. A grave one
// costs the capability.
type argvError struct {
	Index              int
	Grave              bool
	code, message, fix string
}

func (e argvError) Report(u *format.Unit, p string, line int) {
	say := u.Warn
	if e.Grave {
		say = u.Fault
	}
	say(e.code, p, line, fmt.Sprintf("argv[%d]: %s", e.Index, e.message), e.fix)
}

// CheckPlaces finds arguments that would do something else than they seem to:
// values that are read as code, switches that are none, and options whose value
// may be missing. It is given arguments that CheckArgv has nothing against.
func CheckPlaces(argv []string, places map[string]argvPlace) []argvError {
	var out []argvError
	for i, element := range argv {
		p, alone := lonePlace(element, places)
		if !alone {
			continue
		}
		name := strings.Trim(element, "{}")
		switch {
		case p.isSwitch() && !strings.HasPrefix(p.flag, "-"):
			out = append(out, argvError{i, true, "bad-recipe", fmt.Sprintf("the flag %q of %s does not begin with a dash", p.flag, name), "write it as the program knows it, as in --" + name})
		case p.boolean && p.flag == "":
			out = append(out, argvError{i, false, "no-flag", fmt.Sprintf("%s becomes the word true or false", element), "for a switch, give it a flag: flag: --" + name + " (x-ken-flag in a schema)"})
		case p.optional && !p.isSwitch() && i > 1 && takesNext(argv[i-1]):
			out = append(out, argvError{i, false, "loose-option", fmt.Sprintf("%s may be left out, and %s could then take the argument behind it as its value", name, argv[i-1]),
				fmt.Sprintf("write the two in one, as in --name={%s}, or require it, or give it a default; if %s takes no value, move it", name, argv[i-1])})
		}
	}
	if i := codeInPlaces(argv, places); i >= 0 {
		out = append(out, argvError{i, true, "placeholder-in-code", "a parameter inside code is read as code", "pass it as an argument of its own, after the code"})
	}
	return out
}

// lonePlace returns the place of an argument that is one value and nothing else.
func lonePlace(element string, places map[string]argvPlace) (argvPlace, bool) {
	m := Placeholder().FindStringSubmatch(element)
	if m == nil || m[0] != element || m[2] != "" {
		return argvPlace{}, false
	}
	p, known := places[m[1]]
	return p, known
}

// takesNext: an option that may have its value in the next argument.
func takesNext(element string) bool {
	return len(element) > 1 && element[0] == '-' && !strings.ContainsAny(element, "={") && element != "--" && element != "--end-of-options"
}

// codeInPlaces is placeholderInCode for arguments that may be left out or be
// switches: with all of them there, with none, and with either kind.
func codeInPlaces(argv []string, places map[string]argvPlace) int {
	for _, values := range []bool{true, false} {
		for _, switches := range []bool{true, false} {
			var made []string
			var from []int
			for i, element := range argv {
				p, alone := lonePlace(element, places)
				switch {
				case alone && p.isSwitch():
					if !switches {
						continue
					}
					element = p.flag
				case alone && p.optional && !values:
					continue
				}
				made, from = append(made, element), append(from, i)
			}
			if i := placeholderInCode(made); i >= 0 {
				return from[i]
			}
		}
	}
	return switchToCode(argv, places)
}

// switchToCode finds a switch that makes an interpreter read code: with it,
// what is meant as a file or a word would be code.
func switchToCode(argv []string, places map[string]argvPlace) int {
	for i, program := range argv {
		in, ok := interpreterOf(program)
		if !ok || in.flags == "" {
			continue
		}
		for j, element := range argv[i+1:] {
			if p, alone := lonePlace(element, places); alone && p.isSwitch() && in.opensCode(p.flag) {
				return i + 1 + j
			}
		}
	}
	return -1
}
