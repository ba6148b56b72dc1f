package llm

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Kind says what sort of failure an [Error] is, and so what to do about it.
type Kind uint8

const (
	Unknown     Kind = iota
	Auth             // the key is missing or wrong
	Rate             // too many requests; later they would pass
	Quota            // the account is used up; they would not
	Overloaded       // the provider's own trouble: 5xx, overloaded
	TooLong          // the conversation does not fit the model's window
	Invalid          // the request is wrong and would be again
	Unsupported      // the model or wire lacks the feature that Feature names
	Unreachable      // no answer: refused, no such host, broken before the first chunk
	Cut              // the stream broke off after the first chunk
	Malformed        // the provider answered something that is not its wire
)

func (k Kind) String() string {
	names := [...]string{"unknown", "auth", "rate", "quota", "overloaded", "too-long", "invalid", "unsupported", "unreachable", "cut", "malformed"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[Unknown]
}

// An Error is why a model did not answer, or not to the end.
type Error struct {
	Kind     Kind
	Provider string // "openai", "anthropic", "gemini"
	Model    string
	Status   int    // of HTTP; zero: there was none
	Code     string // the vendor's own
	Message  string // the vendor's own words, bounded; they came from outside
	Feature  string // with Unsupported: [Inline], [Search], or the name of a parameter

	RetryAfter time.Duration // the server's hint; zero: none
	Tries      int           // requests that were made
	Fix        string        // what to do about it
	Err        error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ask " + e.Provider)
	if e.Model != "" {
		b.WriteString(" " + e.Model)
	}
	b.WriteString(": " + e.Kind.String())
	if e.Status != 0 {
		b.WriteString(" (HTTP " + strconv.Itoa(e.Status) + ")")
	}
	if e.Feature != "" {
		b.WriteString(": " + e.Feature)
	}
	switch {
	case e.Message != "":
		b.WriteString(": " + e.Message)
	case e.Err != nil:
		b.WriteString(": " + e.Err.Error())
	}
	if e.Tries > 1 {
		b.WriteString(", after " + strconv.Itoa(e.Tries) + " tries")
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error; one that is no [Error] is [Unknown].
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Unknown
}
