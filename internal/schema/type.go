// Package schema holds what all validators of JSON Schemas have in common.
package schema

import "math"

// TypeOf returns the JSON Schema type of a decoded value, the narrowest there is:
// a whole number is an integer.
func TypeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
