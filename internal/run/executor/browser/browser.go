// Package browser opens web pages in Chromium: the capabilities whose recipe
// names a runner "browser.*".
//
// Chromium runs in the sandbox, as programs of extensions do, and is spoken to
// over two pipes. It has a new profile for each session, and all processes of it
// end together. Its only way to the network is the proxy of the sandbox: it
// reaches the hosts that a call names in an address, and those that the recipe
// names. Policy is told these hosts before each call.
//
// What a page says is untrusted. Its script cannot change how it is read, since
// that runs in a world of its own. Dialogs are dismissed, further windows are
// closed, and files are saved only by a call that asks for one.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
)

// Config says where browsers work and what they may reach.
type Config struct {
	// Extensions is the folder that holds the work directory of each extension,
	// ID/work. Required.
	Extensions string

	// Lookup returns the capability that a call means. Required.
	Lookup executor.Lookup

	// Workspace is the absolute folder whose files can be uploaded. Empty: none.
	Workspace string

	// Path lists the folders of programs, as PATH does. Empty:
	// [executor.DefaultPath]. No program is taken from the folders of Avoid.
	Path  string
	Avoid []string

	// Networks are private or local addresses that may be reached. Nil: none.
	// Link-local and metadata addresses are never reached.
	Networks func() []netip.Prefix

	// Network returns how many bytes one call may send and receive, and how many
	// in a second. Nil and zero: the defaults of the proxy.
	Network func() (bytes, rate int64)

	// Most is how many browsers run at once, and Idle how long one lives that no
	// call uses. Both are asked at every use. Nil: 4, and 5 minutes.
	Most func() int
	Idle func() time.Duration

	// Limits bound a browser. Wall bounds a call [300 s].
	Limits sandbox.Limits

	// Require is the least isolation. Empty: [sandbox.RequireLandlock].
	Require sandbox.Requirement
}

const (
	longestLife   = 60 * time.Minute // of any browser
	startLimit    = 30 * time.Second
	mostText      = 1 << 20 // characters of a page that are read
	mostInline    = 8 << 20 // bytes of a file that a result holds
	scratch       = 512 << 20
	tasks         = 1024
	loadLimit     = 20 * time.Second        // after which a page that still loads is read as it is
	settleLimit   = 1500 * time.Millisecond // for what a page loads by its script
	quietTime     = 150 * time.Millisecond
	mostUpload    = 64 << 20
	mostPicture   = 4 << 20
	mostHeight    = 8000 // pixels of a picture
	waitDefault   = 10 * time.Second
	downloadLimit = 1 << 30
)

// An Executor runs browsers. It is safe for concurrent use.
type Executor struct {
	cfg      Config
	root     *os.Root
	programs *executor.Programs

	mu       sync.Mutex
	closed   bool
	browsers map[key]*instance
}

// A key names the browser of a session. Extensions do not share one: each has
// its own work directory and its own hosts.
type key struct{ tenant, principal, session, extension string }

// New opens the folder of extensions, which is made when missing.
func New(cfg Config) (*Executor, error) {
	if cfg.Lookup == nil {
		return nil, errors.New("browser executor: no lookup; give it the catalog's")
	}
	if !filepath.IsAbs(cfg.Extensions) {
		return nil, fmt.Errorf("browser executor: the folder of extensions %q is not absolute", cfg.Extensions)
	}
	if err := os.MkdirAll(cfg.Extensions, 0o700); err != nil {
		return nil, fmt.Errorf("browser executor: %w", err)
	}
	root, err := os.OpenRoot(cfg.Extensions)
	if err != nil {
		return nil, fmt.Errorf("browser executor: %w", err)
	}
	if cfg.Limits.Wall <= 0 {
		cfg.Limits.Wall = 300 * time.Second
	}
	if cfg.Most == nil {
		cfg.Most = func() int { return 4 }
	}
	if cfg.Idle == nil {
		cfg.Idle = func() time.Duration { return 5 * time.Minute }
	}
	return &Executor{
		cfg: cfg, root: root, browsers: map[key]*instance{},
		programs: executor.NewPrograms(cfg.Path, append(slices.Clip(cfg.Avoid), cfg.Extensions)...).Within(cfg.Require),
	}, nil
}

// Close ends all browsers and waits for their end.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	var list []*instance
	for _, i := range e.browsers {
		list = append(list, i)
	}
	clear(e.browsers)
	e.mu.Unlock()
	for _, i := range list {
		i.end()
	}
	return e.root.Close()
}

// Facts returns the hosts that the page may reach, and the file of an upload.
func (e *Executor) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return executor.Facts{}, err
	}
	if c != nil && c.Hash != p.capability.Hash {
		return executor.Facts{}, executor.Outdated("browse", call)
	}
	f := executor.Facts{
		Hosts: p.hosts(), Required: []string{permBrowser, executor.PermNetwork}, Line: p.line(), Args: p.given, State: p.state(),
		WorkDir: filepath.Join(e.cfg.Extensions, p.extension, "work"), Isolation: executor.Planned(ctx, e.cfg.Require, sandbox.Open{}),
	}
	switch p.verb {
	case verbUpload:
		f.Paths = []executor.Path{{Name: p.args.File}}
		f.Required = append(f.Required, executor.PermRead)
	case verbDownload, verbPDF:
		f.Required = append(f.Required, executor.PermWrite)
	}
	return f, nil
}

const permBrowser = "browser"

var _ executor.Checker = (*Executor)(nil)

// Check says whether there is a browser, and a page for what needs one.
func (e *Executor) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, err := e.plan(ctx, call)
	if err == nil {
		err = e.usable(p)
	}
	return capability.Result{}, err
}

// usable returns why a call must fail, as far as that is known before.
func (e *Executor) usable(p *plan) error {
	if _, err := e.program(); err != nil {
		return &capability.Error{Kind: capability.Unavailable, Op: "browse", Target: string(p.call.Target), Err: err,
			Fix: "install Chromium (Debian: apt install chromium), or name its folder in extensions.path"}
	}
	if p.open == nil && p.args.URL == "" && p.verb != verbClose {
		return &capability.Error{Kind: capability.Invalid, Op: "browse", Target: string(p.call.Target), Err: errors.New("no page is open in this session"),
			Fix: "open one first, or give its address as url; every ken run is a session of its own"}
	}
	return nil
}

// Invoke does what a call asks for. A page that does not allow it is a failed
// result.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return capability.Result{}, err
	}
	if p.verb == verbClose {
		return e.leave(p), nil
	}
	if err := e.usable(p); err != nil {
		return capability.Result{}, err
	}
	limit := e.cfg.Limits.Wall
	if t := time.Duration(p.capability.Run.TimeoutSec) * time.Second; t > 0 {
		limit = min(limit, t)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	i, err := e.enter(ctx, p)
	if err != nil {
		return capability.Result{}, e.failed(ctx, p, err)
	}
	defer e.exit(i)
	p.open = i
	if err := executor.SameState(call, p.state(), "the page"); err != nil {
		return capability.Result{}, err
	}
	// A browser that does not answer in time is ended: a page can keep it busy
	// for ever.
	stop := context.AfterFunc(ctx, i.kill)
	r, err := i.run(ctx, p)
	if !stop() {
		i.kill() // before the next call asks whether it is there
	}
	if err != nil {
		r, err = i.settle(ctx, p, err)
	}
	if err != nil {
		return capability.Result{}, e.failed(ctx, p, err)
	}
	i.tell(&r, p)
	r.Meta["duration_ms"] = strconv.FormatInt(time.Since(begun).Milliseconds(), 10)
	return r, nil
}

// leave ends the browser of a session.
func (e *Executor) leave(p *plan) capability.Result {
	e.mu.Lock()
	i := e.browsers[p.key]
	delete(e.browsers, p.key)
	e.mu.Unlock()
	text := "No browser was open."
	if i != nil {
		i.end()
		text = "Closed the browser of this session and removed its profile."
	}
	return capability.Result{Parts: []capability.Part{{Text: text}}, Meta: map[string]string{"tool": "browser.close", "end": "returned", "truncated": "false", "isolation": string(executor.Planned(context.Background(), e.cfg.Require, sandbox.Open{}))}}
}

// failed turns an error into one of Ken's own.
func (e *Executor) failed(ctx context.Context, p *plan, err error) error {
	if own, ok := errors.AsType[*capability.Error](err); ok {
		return own
	}
	fail := func(kind capability.ErrorKind, err error, fix string) error {
		return &capability.Error{Kind: kind, Op: "browse", Target: string(p.call.Target), Err: err, Fix: fix}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fail(capability.Timeout, errors.New("time limit was over, and the browser was ended with its page"), "open the page again, or raise limits.timeout")
	case errors.Is(ctx.Err(), context.Canceled):
		return fail(capability.Unavailable, errors.New("cancelled, and the browser was ended with its page"), "")
	}
	if _, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return executor.Refused(p.call, err)
	}
	return fail(capability.Unavailable, err, "try again; ken doctor shows what the sandbox gives")
}

// enter returns the browser of a session, started if it has none, for one call
// alone.
func (e *Executor) enter(ctx context.Context, p *plan) (*instance, error) {
	for {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return nil, errors.New("the program is closing")
		}
		i := e.browsers[p.key]
		if i != nil && i.gone() {
			delete(e.browsers, p.key)
			e.mu.Unlock()
			i.end()
			continue
		}
		made := i == nil
		if made {
			if p.args.URL == "" {
				e.mu.Unlock()
				return nil, e.usable(p)
			}
			victim, ok := e.oldest()
			if !ok {
				e.mu.Unlock()
				return nil, fmt.Errorf("%d browsers are at work, the limit of limits.browsers", e.cfg.Most())
			}
			if victim != nil {
				delete(e.browsers, victim.key)
				defer victim.end()
			}
			i = newInstance(p.key)
			e.browsers[p.key] = i
		}
		i.users++
		e.mu.Unlock()
		if err := i.take(ctx); err != nil {
			e.release(i)
			return nil, err
		}
		if !made && i.gone() { // meanwhile
			e.exit(i)
			continue
		}
		if made || i.conn == nil {
			if err := e.bringUp(ctx, i); err != nil {
				e.drop(i)
				e.exit(i)
				i.end()
				return nil, err
			}
		}
		return i, nil
	}
}

// oldest returns the browser to end for a new one: nil where there is room. It
// is false if all are in use.
func (e *Executor) oldest() (*instance, bool) {
	if len(e.browsers) < e.cfg.Most() {
		return nil, true
	}
	var out *instance
	for _, i := range e.browsers {
		if i.users == 0 && (out == nil || i.used.Before(out.used)) {
			out = i
		}
	}
	return out, out != nil
}

func (e *Executor) drop(i *instance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.browsers[i.key] == i {
		delete(e.browsers, i.key)
	}
}

// exit ends the use of a browser by a call. If no other call follows, it ends.
func (e *Executor) exit(i *instance) {
	i.give()
	e.release(i)
}

func (e *Executor) release(i *instance) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i.users--
	i.used = time.Now()
	if i.users > 0 {
		return
	}
	if i.idle != nil {
		i.idle.Stop()
	}
	life := e.cfg.Idle()
	i.idle = time.AfterFunc(life, func() {
		e.mu.Lock()
		over := i.users == 0 && time.Since(i.used) >= life
		if over && e.browsers[i.key] == i {
			delete(e.browsers, i.key)
		}
		e.mu.Unlock()
		if over {
			i.end()
		}
	})
}
