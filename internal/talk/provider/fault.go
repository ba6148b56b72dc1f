package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ken/internal/address"
	"ken/internal/untrusted"
	"ken/llm"
)

// mostMessage bounds the words of a vendor in an error, in characters.
const mostMessage = 600

// errNothing is an attempt that ended without a word.
var errNothing = errors.New("the answer was empty")

// StatusKind is the kind of failure that a status of HTTP means where the
// vendor's body says nothing better.
func StatusKind(status int) llm.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.Auth
	case http.StatusPaymentRequired:
		return llm.Quota
	case http.StatusRequestEntityTooLarge:
		return llm.TooLong
	case http.StatusTooManyRequests:
		return llm.Rate
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return llm.Overloaded
	case http.StatusNotImplemented:
		return llm.Invalid
	}
	switch {
	case status >= 500:
		return llm.Overloaded
	case status >= 300:
		return llm.Invalid
	}
	return llm.Malformed
}

// RetryAfter reads the server's hint: retry-after-ms, or retry-after in seconds
// or as a date. Zero: there is none, or it has passed. A date counts from the
// server's own clock where the answer has one.
func RetryAfter(h http.Header) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	text := h.Get("Retry-After")
	if d, ok := number(text, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// number reads a count of units, and gives no more than a year.
func number(text string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || f != f {
		return 0, false
	}
	const year = 365 * 24 * time.Hour
	return time.Duration(max(0, min(f*float64(unit), float64(year)))), true
}

// Broken is the error of a stream that could not be read on: [llm.Malformed]
// where it broke a bound, else [llm.Cut]. [Generate] calls it for errors that
// are no [llm.Error].
func Broken(err error) *llm.Error {
	if errors.Is(err, ErrEventSize) || errors.Is(err, errBodySize) {
		return &llm.Error{Kind: llm.Malformed, Err: err}
	}
	return &llm.Error{Kind: llm.Cut, Err: err}
}

// ended is the error of a caller that gave up. It wraps ctx's error and cause.
func (c Config) ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return fmt.Errorf("ask %s: %w", strings.TrimSpace(c.Name+" "+c.Model), err)
	}
	return fmt.Errorf("ask %s: %w: %w", strings.TrimSpace(c.Name+" "+c.Model), err, cause)
}

// alike completes the error of an attempt, without changing the one it got.
func (c Config) alike(ctx context.Context, err error, started bool, try int) *llm.Error {
	if err == nil {
		err = errNothing
	}
	e := &llm.Error{}
	if found, ok := errors.AsType[*llm.Error](err); ok {
		*e = *found
	} else {
		e = Broken(err)
	}
	switch {
	case e.Kind == llm.Cut && !started:
		e.Kind = llm.Unreachable
	case e.Kind == llm.Unreachable && started:
		e.Kind = llm.Cut
	}
	if e.Provider == "" {
		e.Provider = c.Name
	}
	if e.Model == "" {
		e.Model = c.Model
	}
	e.Tries = try
	if e.Message != "" || e.Code != "" {
		key, _ := c.Secret(ctx)
		clean(e, append(given(c.Header), key))
	}
	if e.Fix == "" {
		e.Fix = c.fix(e.Kind)
	}
	return e
}

// clean bounds the vendor's words in e, takes the secrets out of them, and
// shows what cannot be seen.
func clean(e *llm.Error, secrets []string) {
	e.Message = words(e.Message, mostMessage, secrets)
	e.Code = words(e.Code, 80, secrets)
}

// words is text from outside made fit for an error. Secrets go first, so that
// no cut leaves a part of one. Done twice it changes nothing.
func words(text string, most int, secrets []string) string {
	if text == "" {
		return ""
	}
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "[key]")
		}
	}
	return untrusted.Line(text, most)
}

// secrets returns the values of the headers by which one proves who one is.
func secrets(h http.Header) []string {
	var list []string
	for name, values := range h {
		name = strings.ToLower(name)
		if !strings.Contains(name, "auth") && !strings.Contains(name, "key") &&
			!strings.Contains(name, "token") && !strings.Contains(name, "cookie") {
			continue
		}
		for _, v := range values {
			if _, rest, ok := strings.Cut(v, " "); ok {
				list = append(list, strings.TrimSpace(rest)) // Bearer …
			}
			list = append(list, v)
		}
	}
	return list
}

// hidden returns what of a request must not come back in an error.
func (c Config) hidden(sent http.Header) []string { return append(secrets(sent), given(c.Header)...) }

// given returns the values of headers that a person configured: any of them may
// be a secret. What is very short is part of too many words.
func given(h http.Header) []string {
	const least = 6
	list := secrets(h)
	for _, values := range h {
		for _, v := range values {
			if len(v) >= least {
				list = append(list, v)
			}
		}
	}
	return list
}

// fix is what helps against a kind of failure, where that is known here.
func (c Config) fix(k llm.Kind) string {
	switch k {
	case llm.Auth:
		return "check the key of " + c.Name
	case llm.Quota:
		return "check the account and its limits at " + c.Name
	case llm.Rate, llm.Overloaded:
		return "try again later"
	case llm.Unreachable:
		if u, err := url.Parse(c.BaseURL); err == nil && address.Loopback(u.Hostname()) {
			start := "start the program that serves the model"
			if c.Name == "ollama" {
				start = "start it with ollama serve"
			}
			return "nothing listens at " + bare(c.BaseURL) + "; " + start
		}
		return "check the network and the base URL " + bare(c.BaseURL)
	case llm.Malformed:
		return "check that the base URL " + bare(c.BaseURL) + " speaks this wire"
	}
	return ""
}
