package rows

import (
	"fmt"

	"ken/internal/know/source/jsonscan"
)

// mistyped says of a key what its value is and what it should be.
func (out *Row) mistyped(name string, key rowKey, value []byte) {
	want := key.wants()
	if is := jsonKind(value); is != want.kind {
		out.Notes = append(out.Notes, Note{fmt.Sprintf("%s is %s, want %s; it is left out", name, is, want.kind+want.form), "write " + name + " as " + want.kind + want.form})
		return
	}
	out.Notes = append(out.Notes, Note{
		fmt.Sprintf("%s holds something that it may not, and is left out: %s", name, jsonscan.Shorten(string(value))), "write it as " + want.kind + want.form,
	})
}

// A rowWant is what a value should be: its kind, and how such a one looks.
type rowWant struct{ kind, form string }

func (k rowKey) wants() rowWant {
	switch k {
	case KeySchema:
		return rowWant{"a map", ` such as {"type": "object", "properties": {…}}`}
	case keyParameters:
		return rowWant{"a list", ` such as [{"name": "path", "type": "string"}]`}
	case KeyAnnotations:
		return rowWant{"a map", ` such as {"readOnlyHint": true}`}
	case keyRun:
		return rowWant{"a map", ` such as {"runner": "exec.git", "argv": ["git", "status"]}`}
	case keyTriggers:
		return rowWant{"a map", ` such as {"keywords": ["cost"]}`}
	case keyMigrations:
		return rowWant{"a list", ` such as [{"from": "1", "to": "2", "note": "…"}]`}
	case keyTags, keyAliases, keyRequiredTools, keyRequiredSecrets, keyRequiredBins, keyRequiredPlatforms, keyPermissions:
		return rowWant{"a list", ` such as ["first", "second"]`}
	case keyAvailable, keySideEffects:
		return rowWant{"true or false", ""}
	case keyPriority, keyTokenBudget, keyMaxChars:
		return rowWant{"a number", ` such as 5`}
	}
	return rowWant{"text", ""}
}

// jsonKind says what a valid JSON value is.
func jsonKind(value []byte) string {
	switch value[0] {
	case '{':
		return "a map"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}
