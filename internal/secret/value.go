package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

const (
	hidden  = "[secret]"
	longest = 64 << 10

	// Shortest is how many bytes a value needs for the redactor to look for
	// it: shorter ones are part of ordinary words.
	Shortest = 6
)

// A Value is a secret. The zero Value is none. It can be copied; it cannot be
// printed, not even as a field of something else.
type Value struct {
	// A pointer, because fmt prints unexported fields of others without
	// asking them, and of a pointer it shows the address only.
	text *string
}

// Of makes a Value of a text.
func Of(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{&text}
}

// ReadValue reads a value from a file, a pipe or a terminal, without the line
// break at its end.
func ReadValue(r io.Reader) (Value, error) {
	data, err := io.ReadAll(io.LimitReader(r, longest+3))
	if err != nil {
		return Value{}, fmt.Errorf("read secret: %w", err)
	}
	data = bytes.TrimSuffix(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\r'})
	v := Of(string(data))
	return v, v.check()
}

// check refuses what no header and no environment can carry.
func (v Value) check() error {
	bad := func(what, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "read secret", Err: errors.New(what), Fix: fix}
	}
	switch text := v.Reveal(); {
	case text == "":
		return bad("the value is empty", "give a value, or remove the secret")
	case len(text) > longest:
		return bad(fmt.Sprintf("the value is longer than %d bytes", longest), "keep it in a file of its own and write file:PATH")
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return bad("the value is not text", "encode it, for instance as base64")
	}
	return nil
}

// Reveal returns the secret itself.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// Empty reports whether there is no secret.
func (v Value) Empty() bool { return v.Reveal() == "" }

// String hides the value.
func (v Value) String() string { return hidden }

// GoString hides the value.
func (v Value) GoString() string { return hidden }

// Format hides the value from every verb.
func (v Value) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// MarshalJSON hides the value.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MarshalText hides the value.
func (v Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalBinary hides the value from encoding/gob too.
func (v Value) MarshalBinary() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the value.
func (v Value) LogValue() slog.Value { return slog.StringValue(hidden) }
