package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"

	"ken/capability"
	"ken/internal/address"
)

// Config is what a handler is told. Server, URL and Keep are needed.
type Config struct {
	Server    string // its name, as in "ken login NAME"
	URL       string // of its endpoint
	Principal capability.Principal

	// ClientID and ClientSecret are those of a client that was registered by
	// hand. Without, Ken uses ClientMetadata, the https address of a document
	// about itself, where the authorization server takes one, or registers.
	ClientID, ClientSecret, ClientMetadata string

	Scopes []string // asked for besides what the server names

	// Machine says how to get a token without a person.
	Machine Machine

	// Keep keeps tokens and client secrets sealed.
	Keep Keeper

	// Ask returns a person the address to log in at: https, or http on this
	// machine. It may return before the person has done anything. Nil: no
	// login is possible here.
	Ask func(ctx context.Context, address string) error

	// Interactive lets Authorize ask as well. Otherwise only Login does.
	Interactive bool

	// Redirect is where the browser comes back to, host and port on this
	// machine [127.0.0.1:0, any port].
	Redirect string

	HTTP *http.Client     // whose transport and proxy are used [http.DefaultTransport]
	Now  func() time.Time // [time.Now]
}

// ErrLogin is the cause where a person must log in.
var ErrLogin = errors.New("not logged in")

// A Handler is an [auth.OAuthHandler] for one server and principal. It may be
// used by any number of goroutines, and several processes may have one with the
// same keeper. It holds nothing that needs closing.
type Handler struct {
	conf  Config
	url   *url.URL
	fetch *http.Client
	turn  chan struct{} // held while tokens are asked for

	mu      sync.Mutex
	current *grant
	loaded  bool
	unsaved bool
	asked   map[string]bool // scopes that were asked for and did not help

	failed   attempt // the last renewal, if it failed
	replaced attempt // the last token that replaced a rejected one
	inARow   int     // how many of those were rejected in a row, each within sharedFor
	obtained attempt // the last token that was obtained without a person

	nonces map[string]string // by origin: what its proofs must have in them
}

// An attempt is the outcome of a renewal. Requests that wait for the same
// renewal share it: it is not repeated within sharedFor.
type attempt struct {
	access string
	at     time.Time
	err    error
}

// sharedFor is how long other requests share a renewal.
const sharedFor = 5 * time.Second

// mostInARow is how often in a row a token is renewed because the last one was
// rejected. If a server accepts none of them, a person must log in again.
const mostInARow = 3

// of reports whether the attempt was about a token, a moment ago.
func (a attempt) of(access string, now time.Time) bool {
	return a.access == access && access != "" && now.Sub(a.at) < sharedFor
}

var _ auth.OAuthHandler = (*Handler)(nil)

// New makes the handler of a server.
func New(c Config) (*Handler, error) {
	refuse := func(err error, fix string) (*Handler, error) {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "set up login of", Target: c.Server, Err: err, Fix: fix}
	}
	u, err := url.Parse(c.URL)
	switch {
	case c.Server == "" || c.Keep == nil:
		return refuse(errors.New("missing name or keeper"), "give both")
	case err != nil || u.Host == "" || u.User != nil:
		return refuse(errors.New("the url is not valid"), "write it as https://HOST/PATH, without a user")
	case u.Scheme != "https" && !(u.Scheme == "http" && address.Loopback(u.Hostname())):
		return refuse(errors.New("the token would be sent unencrypted"), "write https:// in mcp.servers."+c.Server+".url")
	}
	if c.Redirect == "" {
		c.Redirect = "127.0.0.1:0"
	}
	if host, _, err := net.SplitHostPort(c.Redirect); err != nil || !address.Loopback(host) {
		return refuse(fmt.Errorf("the redirect address %s is not on this machine", c.Redirect), "use 127.0.0.1:PORT")
	}
	if c.ClientMetadata != "" {
		if m, err := url.Parse(c.ClientMetadata); err != nil || m.Scheme != "https" || strings.Trim(m.Path, "/") == "" {
			return refuse(errors.New("the address of the client's metadata is not valid"), "write it as https://HOST/PATH")
		}
	}
	if fix, err := c.checkMachine(); err != nil {
		return refuse(err, fix)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Scopes = slices.Clone(c.Scopes)
	h := &Handler{conf: c, url: u, turn: make(chan struct{}, 1), asked: map[string]bool{}}
	h.fetch = h.fetcher(c.HTTP)
	return h, nil
}

// TokenSource returns the source of tokens for requests to the server. Its Token
// is nil without a login, so that the server may say what it wants.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return source{h, ctx}, nil
}

type source struct {
	h   *Handler
	ctx context.Context
}

func (s source) Token() (*oauth2.Token, error) {
	g, err := s.h.grant(s.ctx)
	if err != nil || g == nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: g.Access, TokenType: "Bearer", Expiry: g.Expires}, nil
}

// grant returns what a request is made with, renewed where its time is over, or
// nil where there is nothing.
func (h *Handler) grant(ctx context.Context) (*grant, error) {
	h.mu.Lock()
	g, loaded, unsaved := h.current, h.loaded, h.unsaved
	h.mu.Unlock()
	if loaded && !unsaved && (g == nil || g.fresh(h.conf.Now())) {
		return g, nil
	}
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	defer h.done()
	g, err := h.known(ctx)
	if err != nil || g == nil || g.fresh(h.conf.Now()) {
		return g, err
	}
	next, err := h.renewed(ctx, g)
	if errors.Is(err, errRefused) {
		return nil, nil // the server will say what it wants
	}
	if err != nil {
		return nil, h.unavailable("renew the login to", err)
	}
	return next, nil
}

// known returns the grant of the moment. The turn is held.
func (h *Handler) known(ctx context.Context) (*grant, error) {
	h.mu.Lock()
	g, loaded, unsaved := h.current, h.loaded, h.unsaved
	h.mu.Unlock()
	switch {
	case !loaded:
		g, err := h.load(ctx)
		if err != nil {
			return nil, h.unavailable("read the login to", err)
		}
		h.set(g, false)
		return g, nil
	case unsaved && g != nil:
		h.set(g, h.save(ctx, g) != nil)
	}
	return g, nil
}

func (h *Handler) set(g *grant, unsaved bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current, h.loaded, h.unsaved = g, true, unsaved
}

// renewed renews a grant and keeps it. The turn is held. Where another process
// was first its grant is used: most servers take a refresh token once.
func (h *Handler) renewed(ctx context.Context, g *grant) (*grant, error) {
	if other, err := h.load(ctx); err == nil && other != nil && other.Access != g.Access && other.fresh(h.conf.Now()) {
		h.set(other, false)
		return other, nil
	}
	h.mu.Lock()
	failed := h.failed
	h.mu.Unlock()
	if failed.of(g.Access, h.conf.Now()) {
		return nil, failed.err
	}
	next, err := h.renew(ctx, g)
	if err != nil && !errors.Is(err, errRefused) && ctx.Err() == nil {
		h.mu.Lock()
		h.failed = attempt{g.Access, h.conf.Now(), err}
		h.mu.Unlock()
	}
	if errors.Is(err, errRefused) {
		if other, loadErr := h.load(ctx); loadErr == nil && other != nil && other.Access != g.Access {
			h.set(other, false)
			return other, nil
		}
		dead := *g
		dead.Access, dead.Refresh = "", ""
		h.set(&dead, false)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	// One that cannot be kept now is kept with the next request.
	h.set(next, h.save(ctx, next) != nil)
	return next, nil
}

// Authorize is called with a request that the server refused. It renews the
// token, once; where a person is needed it fails, unless the handler is
// Interactive.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	if origin(req.URL) != origin(h.url) {
		return h.unavailable("log in to", fmt.Errorf("%s asks for a token that is meant for another server", origin(req.URL)))
	}
	c := readChallenge(resp.Header)
	if resp.StatusCode == http.StatusForbidden && c.problem != "insufficient_scope" {
		return nil // it is not about tokens: the answer to the same request says more
	}
	if err := h.wait(ctx); err != nil {
		return err
	}
	defer h.done()
	g, err := h.known(ctx)
	if err != nil {
		return err
	}
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if g != nil && g.Access != "" && sent != g.Access {
		return nil // there is another token since the request was sent
	}
	h.mu.Lock()
	if h.replaced.of(sent, h.conf.Now()) { // it replaced a rejected token, and is rejected too
		h.inARow++
	} else {
		h.inARow = 0
	}
	again := h.inARow >= mostInARow
	h.mu.Unlock()
	if h.conf.Machine.Grant != "" {
		if again {
			return h.unavailable("get a token for", errors.New("the server accepts none of the tokens that the authorization server gives"))
		}
		next, err := h.obtain(ctx, c)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.replaced = attempt{access: next.Access, at: h.conf.Now()}
		h.mu.Unlock()
		h.set(next, false)
		return nil
	}
	if resp.StatusCode == http.StatusUnauthorized && g != nil && g.Refresh != "" && !again {
		if h.moved(ctx, g, c) {
			g = nil // what was kept belongs to another authorization server
		} else if next, err := h.renewed(ctx, g); err == nil {
			h.mu.Lock()
			h.replaced = attempt{access: next.Access, at: h.conf.Now()}
			h.mu.Unlock()
			return nil
		} else if !errors.Is(err, errRefused) {
			return h.unavailable("renew the login to", err)
		}
	}
	if h.elsewhere(ctx, sent) {
		return nil
	}
	if !h.conf.Interactive || h.conf.Ask == nil {
		return h.needed(c)
	}
	return h.login(ctx, g, c)
}

// elsewhere looks for a login that was made in another process since this one
// looked last, and takes it if it is not the one that the server refused.
func (h *Handler) elsewhere(ctx context.Context, refused string) bool {
	other, err := h.load(ctx)
	if err != nil || other == nil || other.Access == refused || !other.fresh(h.conf.Now()) {
		return false
	}
	h.set(other, false)
	return true
}

// moved says that the server names another authorization server than the one
// that the grant is from.
func (h *Handler) moved(ctx context.Context, g *grant, c challenge) bool {
	p, err := h.discover(ctx, c)
	return err == nil && p.server.Issuer != g.Issuer
}

func (h *Handler) needed(c challenge) error {
	cause := ErrLogin
	if c.problem == "insufficient_scope" {
		cause = fmt.Errorf("%w for %s", ErrLogin, strings.Join(c.scopes, " "))
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "log in to", Target: h.conf.Server, Err: cause, Fix: "ken login " + h.conf.Server,
	}
}

// AdvisesLogin reports whether the advice of an error is to log in.
func AdvisesLogin(err error) bool {
	_, may := errors.AsType[*loginMayHelp](err)
	return may || errors.Is(err, ErrLogin)
}

// loginMayHelp is a failure for which the advice is to try again or to log in.
type loginMayHelp struct{ error }

func (e *loginMayHelp) Unwrap() error { return e.error }

func (h *Handler) unavailable(op string, err error) error {
	if capability.KindOf(err) != capability.Internal {
		return err
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: op, Target: h.conf.Server, Err: &loginMayHelp{err}, Fix: "try again, or log in: ken login " + h.conf.Server,
	}
}

// wait takes the turn to ask for tokens, done gives it back.
func (h *Handler) wait(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Handler) done() { <-h.turn }
