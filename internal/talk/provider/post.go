package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"ken/internal/duration"
	"ken/llm"
)

const (
	mostFault = 64 << 10 // bytes that are read of an answer that is an error
	mostBody  = 64 << 20 // bytes of an answer
)

var (
	errBodySize = fmt.Errorf("the answer has more than %d bytes", mostBody)
	errSilent   = errors.New("the server fell silent")
)

// Post sends a body as JSON and gives the answer of a server that accepted it.
// The caller closes its body, which is bounded and ends with an error when the
// server says nothing for [Config.Silence].
//
// Any other status is an [llm.Error]. classify gives its kind, code, message,
// feature and fix by the vendor's body, of which it sees at most 64 KiB; nil,
// from it or in its place, means what the status says. Post fills in the rest
// and cleans it: no secret of a header that was sent stands in the error.
func Post(ctx context.Context, cfg Config, path string, header http.Header, body []byte, classify func(status int, h http.Header, body []byte) *llm.Error) (*http.Response, error) {
	watched, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(watched, http.MethodPost, cfg.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		cancel(nil)
		return nil, &llm.Error{
			Kind: llm.Invalid, Provider: cfg.Name, Model: cfg.Model, Err: inner(err),
			Fix: "set base_url to an address that begins with https:// or http://",
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	for _, h := range []http.Header{header, cfg.Header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	timer := time.AfterFunc(cfg.silence(), func() { cancel(errSilent) })
	resp, err := cfg.client().Do(req)
	if err != nil {
		timer.Stop()
		defer cancel(nil)
		return nil, cfg.unreachable(ctx, watched, err, req.Header)
	}
	resp.Body = &answer{from: resp.Body, left: mostBody, ctx: watched, timer: timer, silence: cfg.silence(), cancel: cancel}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, cfg.refused(ctx, resp, req.Header, classify)
}

// unreachable is the error of a request that got no answer.
func (c Config) unreachable(ctx, watched context.Context, err error, sent http.Header) error {
	if ctx.Err() != nil {
		return c.ended(ctx)
	}
	e := &llm.Error{Kind: llm.Unreachable, Provider: c.Name, Model: c.Model, Err: inner(err), Fix: c.fix(llm.Unreachable)}
	if errors.Is(context.Cause(watched), errSilent) {
		e.Err = errSilent
	}
	// Errors of the transport may quote what a proxy or server wrote.
	if text := e.Err.Error(); words(text, mostMessage, c.hidden(sent)) != text {
		e.Message = words(text, mostMessage, c.hidden(sent))
		e.Err = nil
	}
	return e
}

// refused is the error of an answer with a status that is no success.
func (c Config) refused(ctx context.Context, resp *http.Response, sent http.Header, classify func(int, http.Header, []byte) *llm.Error) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostFault))
	if err != nil && ctx.Err() != nil {
		return c.ended(ctx)
	}
	e := &llm.Error{}
	var said *llm.Error
	if classify != nil {
		said = classify(resp.StatusCode, resp.Header, body)
	}
	switch {
	case resp.StatusCode/100 == 3:
		e.Kind = llm.Invalid
		e.Message = "the server sends elsewhere"
		if to, err := resp.Location(); err == nil {
			e.Message += ", to " + bare(to.String())
		}
		e.Fix = "set base_url to that address if you trust it: keys are not sent after redirects"
	case said != nil:
		*e = *said
	default:
		e.Kind = StatusKind(resp.StatusCode)
		e.Message = string(body)
	}
	e.Provider, e.Status = c.Name, resp.StatusCode
	if e.Model == "" {
		e.Model = c.Model
	}
	if e.RetryAfter == 0 {
		e.RetryAfter = RetryAfter(resp.Header)
	}
	if e.Fix == "" {
		e.Fix = c.fix(e.Kind)
	}
	clean(e, c.hidden(sent))
	return e
}

// inner leaves out the address of a request, which may hold a secret.
func inner(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// bare is an address without what may be secret in it.
func bare(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "(not an address)"
	}
	return words(u.Scheme+"://"+u.Host+u.EscapedPath(), 200, nil)
}

// An answer is the body of a response: bounded, and cut off when nothing comes.
type answer struct {
	from    io.ReadCloser
	left    int64
	ctx     context.Context // of the request
	timer   *time.Timer     // ends ctx
	silence time.Duration
	cancel  context.CancelCauseFunc
}

func (a *answer) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, errBodySize
	}
	n, err := a.from.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if n > 0 {
		a.timer.Reset(a.silence)
	}
	if err != nil && err != io.EOF && errors.Is(context.Cause(a.ctx), errSilent) {
		err = fmt.Errorf("%w for %s", errSilent, duration.Text(a.silence))
	}
	return n, err
}

func (a *answer) Close() error {
	a.timer.Stop()
	a.cancel(nil)
	return a.from.Close()
}
