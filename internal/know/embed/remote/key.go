package remote

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Key is the API key of a service. It is sent to that service and never shown:
// no verb of fmt, no JSON and no error contains it. The zero Key means none.
type Key struct {
	text *string // behind a pointer, where even a struct's dump does not follow
}

// NewKey returns the key of a text, without white space around it; none for an
// empty one.
func NewKey(text string) Key {
	text = strings.TrimSpace(text)
	if text == "" {
		return Key{}
	}
	return Key{&text}
}

// Format writes that there is a key, or none, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) {
	what := "(no key)"
	if k.text != nil {
		what = "(a key)"
	}
	_, _ = io.WriteString(f, what) // a State keeps its own errors
}

// check refuses what no header can carry.
func (k Key) check() error {
	if k.text != nil && strings.ContainsFunc(*k.text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("the key holds a line end or another character that no header can carry")
	}
	return nil
}
