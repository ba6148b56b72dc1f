package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/untrusted"
)

// longestQuote is how many characters of a service's own words are shown.
const longestQuote = 300

// A refusal is an answer with a status other than 200.
type refusal struct {
	status   int
	words    string // the service's own; foreign, and never shown as they are
	location string // where a redirect points; the same holds for it
	wait     time.Duration
}

func (r *refusal) Error() string {
	return fmt.Sprintf("service answered %d %s", r.status, http.StatusText(r.status))
}

// passing reports whether asking again may help.
func (r *refusal) passing() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// A nonsense is an answer with status 200 that is no answer.
type nonsense struct{ error }

func (n *nonsense) Unwrap() error { return n.error }

// A silence is an attempt that took too long. It is not ctx's own error, which
// would mean that the caller had run out of patience.
type silence struct{ error }

// explain says what went wrong, and what to do about it.
func (e *Embedder) explain(err error, texts int) error {
	out := &capability.Error{Kind: capability.Unavailable, Op: "make vectors at", Target: e.shown}
	model := untrusted.Line(e.cfg.Model, 100)
	what := fmt.Sprintf("%d texts, model %s", texts, model)
	if texts == 1 {
		what = "1 text, model " + model
	}
	var refusal *refusal
	var silence *silence
	var nonsense *nonsense
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		out.Kind, out.Err = capability.Timeout, fmt.Errorf("%s: %w", what, err)
	case errors.As(err, &refusal):
		out.Err = fmt.Errorf("%s: %w%s", what, refusal, e.quote(refusal))
		out.Kind, out.Fix = refusal.mend(model)
	case errors.As(err, &silence):
		out.Kind, out.Err = capability.Timeout, fmt.Errorf("%s: %w", what, silence.error)
		out.Fix = "it may still be loading the model; look whether it works"
	case errors.As(err, &nonsense):
		out.Kind = capability.Invalid
		out.Err = fmt.Errorf("%s: %s", what, e.say(nonsense.Error()))
		out.Fix = "check that discovery.embeddingUrl is an OpenAI-compatible service and that " + model + " is an embedding model whose vectors always have the same length"
	default:
		out.Err = fmt.Errorf("%s: %w", what, e.plain(err))
		out.Fix = connectMend(err, model)
	}
	return out
}

// plain drops the address from an error, since its query may hold a key, and
// keeps what the error is for errors.Is.
func (e *Embedder) plain(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return &shownError{e.say(err.Error()), err}
}

// A shownError says something in other words.
type shownError struct {
	words string
	err   error
}

func (s *shownError) Error() string { return s.words }
func (s *shownError) Unwrap() error { return s.err }

// quote returns a service's own words.
func (e *Embedder) quote(r *refusal) string {
	if r.status >= 300 && r.status < 400 {
		if u, err := url.Parse(r.location); err == nil && u.Host != "" {
			return " to " + e.say((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
		}
		return ""
	}
	if words := e.say(r.words); words != "" {
		return fmt.Sprintf(" and says “%s”", words)
	}
	return ""
}

// say makes foreign words fit to show. Words that repeat a part of the key, or of
// what stands behind the ? of the address, are not shown at all: there are too
// many ways to write it.
func (e *Embedder) say(words string) string {
	if e.repeats(words) {
		return "(words that repeat a secret)"
	}
	return untrusted.Line(words, longestQuote)
}

// repeats reports whether words have eight characters in a row of a secret, in
// whatever case, or the whole of a shorter one.
func (e *Embedder) repeats(words string) bool {
	said := []string{strings.ToLower(words)}
	for _, decode := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := decode(words); err == nil {
			said = append(said, strings.ToLower(plain))
		}
	}
	for _, secret := range e.secrets() {
		run := min(8, len(secret))
		for at := 0; run >= 4 && at+run <= len(secret); at++ {
			for _, text := range said {
				if strings.Contains(text, secret[at:at+run]) {
					return true
				}
			}
		}
	}
	return false
}

// secrets returns what must not be shown, in small letters.
func (e *Embedder) secrets() []string {
	var out []string
	if e.cfg.APIKey.text != nil {
		out = append(out, strings.ToLower(*e.cfg.APIKey.text))
	}
	if u, err := url.Parse(e.cfg.URL); err == nil {
		for _, values := range u.Query() {
			for _, v := range values {
				out = append(out, strings.ToLower(v))
			}
		}
	}
	return out
}

// mend says what to do about a refusal.
func (r *refusal) mend(model string) (capability.ErrorKind, string) {
	switch s := r.status; {
	case s >= 300 && s < 400:
		return capability.Denied, "redirects are not followed; if you trust that address, set discovery.embeddingUrl to it"
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return capability.Denied, "discovery.embeddingKeyEnv must name the environment variable that holds a key of this service"
	case s == http.StatusNotFound:
		return capability.NotFound, "check discovery.embeddingUrl, which mostly ends in /v1, and that the service has the model; with Ollama: ollama pull " + model
	case s == http.StatusTooManyRequests && r.wait > longestWait:
		return capability.Unavailable, fmt.Sprintf("it asks to wait %s", duration.Text(r.wait.Round(time.Second)))
	case s == http.StatusTooManyRequests:
		return capability.Unavailable, "it is asked too often, or the account is used up; look there"
	case s >= 500:
		return capability.Unavailable, "look into the log of the service"
	}
	return capability.Invalid, "check that " + model + " is an embedding model of this service"
}

// connectMend says what to do when there was no answer.
func connectMend(err error, model string) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "check the host in discovery.embeddingUrl"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "is the service running? With Ollama: ollama serve, then ollama pull " + model
	}
	return "check discovery.embeddingUrl, and look into the log of the service"
}
