// Package api makes HTTP requests: the capabilities whose recipe names a runner
// "api.*".
//
//   - api.rest makes the request of an OpenAPI operation, or of a recipe with a
//     method and a URL.
//   - api.graphql makes the request of a query or mutation of a GraphQL API.
//   - api.get, api.post and so on take the URL as an argument.
//
// Policy is told the hosts of a call before it is made, and the call reaches no
// others: a redirect to another host is not followed. Every address is checked
// when it is dialled, after the name was resolved. Link-local and metadata
// addresses are never dialled, whatever the settings say.
//
// Credentials are secrets. They are added to a request after it was decided on,
// and are sent to the host of the operation alone.
package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/result"
)

// Config says what requests may reach and how much they may use.
type Config struct {
	// Lookup returns the capability that a call means. Required.
	Lookup executor.Lookup

	// Secret returns the value of a secret. Nil knows none.
	Secret func(name string) (string, bool)

	// Save keeps a secret that a server replaced, such as a refresh token. Nil:
	// it is kept until the program ends.
	Save func(name, value string) error

	// Hold is told every text that must not be seen in results and records. Nil:
	// none is told.
	Hold func(text string)

	// Redact takes secrets out of what is kept. Nil changes nothing.
	Redact func(text string) string

	// Results keeps the whole of an answer of which a part was selected. Nil
	// keeps nothing.
	Results *result.Store

	// Networks are private or local addresses that may be reached. Nil: none.
	Networks func() []netip.Prefix

	// Limits are asked for at every call. Nil: the defaults.
	Limits func() Limits

	// Pace returns how often a host may be asked, if Limits.Rate is for several processes
	// together. Nil: each counts by itself.
	Pace func(host string, perSecond float64, burst int) Pace
}

// A Pace says when a host may be asked again.
type Pace interface {
	// Wait returns when the host may be asked. If that would take longer than most, it
	// counts nothing and returns how long it would take. The error is that of ctx, or why
	// no turn can be had.
	Wait(ctx context.Context, most time.Duration) (time.Duration, error)
}

// Limits bound a call. A zero field means the default in brackets.
type Limits struct {
	Bytes   int64         // of an answer, once it is decompressed [8 MiB]
	Rate    float64       // requests a second to one host; negative is no limit [10]
	Retries int           // of a safe or keyed request; negative is none [2]
	Pages   int           // that one call reads at most [20]
	Timeout time.Duration // of a call [300 s]
}

func (e *Executor) limits() Limits {
	var l Limits
	if e.cfg.Limits != nil {
		l = e.cfg.Limits()
	}
	if l.Bytes <= 0 {
		l.Bytes = 8 << 20
	}
	if l.Rate == 0 {
		l.Rate = 10
	}
	if l.Retries == 0 {
		l.Retries = 2
	}
	if l.Pages <= 0 {
		l.Pages = 20
	}
	if l.Timeout <= 0 {
		l.Timeout = 300 * time.Second
	}
	return l
}

// An Executor makes requests. It is safe for concurrent use.
type Executor struct {
	cfg       Config
	transport *http.Transport
	sleep     func(ctx context.Context, d time.Duration) error

	mu         sync.Mutex
	operations map[operationKey]*operation
	hosts      map[string]*pace
	tokens     map[tokenKey]*token
	held       map[[sha256.Size]byte]bool // what Hold was told
	cache      cache
}

// New makes an Executor.
func New(cfg Config) (*Executor, error) {
	if cfg.Lookup == nil {
		return nil, errors.New("make api executor: missing Config.Lookup")
	}
	e := &Executor{
		cfg: cfg, sleep: sleep, operations: map[operationKey]*operation{},
		hosts: map[string]*pace{}, tokens: map[tokenKey]*token{}, held: map[[sha256.Size]byte]bool{}, cache: newCache(),
	}
	e.transport = e.newTransport()
	return e, nil
}

// Close ends the unused connections. Running calls go on.
func (e *Executor) Close() error {
	e.transport.CloseIdleConnections()
	return nil
}

// Facts says which hosts a call reaches, and how the request begins.
func (e *Executor) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return executor.Facts{}, err
	}
	if c != nil && c.Hash != p.capability.Hash {
		return executor.Facts{}, executor.Outdated("call", call)
	}
	return executor.Facts{
		Hosts: p.hosts(), Required: []string{executor.PermNetwork}, Args: p.args,
		Line: p.line(), Destructive: p.method == http.MethodDelete,
		Isolation: json.RawMessage(isolation),
	}, nil
}

const isolation = `{"profile":"in-process"}`

var _ executor.Checker = (*Executor)(nil)

// Check says whether the credentials of a call are there.
func (e *Executor) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, err := e.plan(ctx, call)
	if err == nil {
		err = e.missing(call, p)
	}
	return capability.Result{}, err
}

// Invoke makes the request. An answer that says that it failed is a failed
// result.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return capability.Result{}, err
	}
	if err := e.missing(call, p); err != nil {
		return capability.Result{}, err
	}
	limits := e.limits()
	timeout := limits.Timeout
	if t := time.Duration(p.capability.Run.TimeoutSec) * time.Second; t > 0 {
		timeout = min(timeout, t)
	}
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	x := &exchange{Executor: e, call: call, plan: p, limits: limits}
	if n := int64(p.capability.Run.MaxOutputSize); n > 0 {
		x.limits.Bytes = min(x.limits.Bytes, n)
	}
	return x.run(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// An exchange is one call on its way.
type exchange struct {
	*Executor
	call   capability.Call
	plan   *plan
	limits Limits

	attempts int
	cached   string // "hit" or "revalidated"
	pages    int
	more     bool // there is a further page
}

func (x *exchange) run(ctx context.Context) (capability.Result, error) {
	a, err := x.fetch(ctx, x.plan.url)
	if err != nil {
		return capability.Result{}, err
	}
	x.pages = 1
	a, err = x.follow(ctx, a)
	if err != nil {
		return capability.Result{}, err
	}
	r := x.result(a)
	r.Meta["attempts"] = strconv.Itoa(x.attempts)
	if x.cached != "" {
		r.Meta["cache"] = x.cached
	}
	if x.plan.pages > 1 {
		r.Meta["pages"] = strconv.Itoa(x.pages)
	}
	return r, nil
}

// safe methods change nothing, by the word of HTTP.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
