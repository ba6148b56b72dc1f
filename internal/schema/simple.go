package schema

import (
	"encoding/json"
	"math"
	"regexp"
)

// Check says which part of a schema cannot be used and why, as [Read] does, or
// nil. Most schemas of tools have few and plain words, and those take little
// time.
func Check(raw json.RawMessage) error {
	var root map[string]any
	if len(raw) <= mostBytes && Depth(raw) <= mostDepth && json.Unmarshal(raw, &root) == nil && root != nil {
		if d := root["$schema"]; d == draft07 || d == draft2020 {
			delete(root, "$schema") // what is simple is the same in both
		}
		if kind, said := root["type"]; isSimple(root) && (!said || kind == "object") {
			return nil
		}
	}
	_, err := Read(raw)
	return err
}

// isSimple reports whether a value is surely a schema that can be used: one of
// words that lead nowhere but down, each of the right type.
func isSimple(v any) bool {
	words, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for word, value := range words {
		if !isSimpleWord(word, value) {
			return false
		}
	}
	return true
}

func isSimpleWord(word string, value any) bool {
	switch word {
	case "description", "title", "format", "$comment":
		_, ok := value.(string)
		return ok
	case "type":
		if list, ok := value.([]any); ok {
			return len(list) > 0 && each(value, isType)
		}
		return isType(value)
	case "pattern":
		text, ok := value.(string)
		if !ok {
			return false
		}
		_, err := regexp.Compile(goPattern(text))
		return err == nil
	case "default", "const":
		return value != nil
	case "enum", "examples":
		_, ok := value.([]any)
		return ok
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		_, ok := value.(float64)
		return ok
	case "minLength", "maxLength", "minItems", "maxItems":
		n, ok := value.(float64)
		return ok && n >= 0 && n <= 1<<31 && n == math.Trunc(n)
	case "required":
		return each(value, func(one any) bool { _, ok := one.(string); return ok })
	case "anyOf", "oneOf", "allOf":
		return each(value, isSimple)
	case "items", "propertyNames":
		return isSimple(value)
	case "example", "x-mcp-header": // these are no words of a schema
		return true
	case "additionalProperties":
		_, ok := value.(bool)
		return ok || isSimple(value)
	case "properties":
		all, ok := value.(map[string]any)
		for _, one := range all {
			ok = ok && isSimple(one)
		}
		return ok
	}
	return false
}

func isType(value any) bool {
	switch value {
	case "null", "boolean", "string", "number", "integer", "array", "object":
		return true
	}
	return false
}

func each(value any, f func(any) bool) bool {
	list, ok := value.([]any)
	for _, one := range list {
		ok = ok && f(one)
	}
	return ok
}
