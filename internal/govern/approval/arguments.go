package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// readable returns the arguments of a call as a person reads them. If a text
// among them has several lines, each argument has its own line, and the lines of
// the text follow it, each after a bar, so that no text can pass for an argument.
// All other arguments are returned as they are.
func readable(arguments json.RawMessage) string {
	names, values, ok := members(arguments)
	if !ok || !slices.ContainsFunc(values, func(v json.RawMessage) bool { return strings.Contains(textOf(v), "\n") }) {
		return string(arguments)
	}
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte('\n')
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || name == "" {
			name = strconv.Quote(name)
		}
		text := textOf(values[i])
		if !strings.Contains(text, "\n") {
			fmt.Fprintf(&b, "%s: %s", name, values[i])
			continue
		}
		whole, end := strings.CutSuffix(text, "\n")
		lines := strings.Split(whole, "\n")
		count := "1 line"
		if len(lines) > 1 {
			count = strconv.Itoa(len(lines)) + " lines"
		}
		if !end {
			count += ", the last one without a newline"
		}
		fmt.Fprintf(&b, "%s: %s", name, count)
		for _, line := range lines {
			b.WriteString("\n  | " + line)
		}
	}
	return b.String()
}

// members returns the names and values of a JSON object in their order. ok is
// false for anything else, and if a name stands twice.
func members(object json.RawMessage) (names []string, values []json.RawMessage, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		var v json.RawMessage
		if err != nil || !isName || slices.Contains(names, name) || d.Decode(&v) != nil {
			return nil, nil, false
		}
		names, values = append(names, name), append(values, v)
	}
	_, err := d.Token()
	return names, values, err == nil && !d.More()
}

// textOf returns the text that a JSON value is, or "".
func textOf(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
