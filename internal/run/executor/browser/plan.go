package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/address"
	"ken/internal/run/executor"
)

// What can be done with a page.
const (
	verbOpen       = "open"
	verbWait       = "wait"
	verbRead       = "read"
	verbFill       = "fill"
	verbClick      = "click"
	verbSelect     = "select"
	verbUpload     = "upload"
	verbScreenshot = "screenshot"
	verbPDF        = "pdf"
	verbDownload   = "download"
	verbClose      = "close"
)

// Verbs are the names of the runners, after "browser.".
func Verbs() []string {
	return []string{verbOpen, verbWait, verbRead, verbFill, verbClick, verbSelect, verbUpload, verbScreenshot, verbPDF, verbDownload, verbClose}
}

// arguments are those of all verbs. Which of them a verb takes, takes says.
type arguments struct {
	URL     string `json:"url"`
	As      string `json:"as"`
	Element string `json:"element"`
	Text    string `json:"text"`

	// Selector is another name of Element, where that is only read.
	Selector string `json:"selector"`

	Submit  bool     `json:"submit"`
	Value   string   `json:"value"`
	Values  []string `json:"values"`
	File    string   `json:"file"`
	Seconds float64  `json:"seconds"`
	Full    bool     `json:"full"`
}

// The forms of a reading.
const (
	asText   = "text"
	asTree   = "tree"
	asTables = "tables"
	asLinks  = "links"
)

// takes returns the arguments of a verb, those first that it needs.
func takes(verb string) (needs, may []string) {
	switch verb {
	case verbOpen:
		return []string{"url"}, []string{"as", "element", "selector"}
	case verbRead:
		return nil, []string{"as", "element", "selector", "url"}
	case verbWait:
		return nil, []string{"text", "element", "seconds", "url"}
	case verbFill:
		return []string{"element", "text"}, []string{"submit", "url"}
	case verbClick:
		return []string{"element"}, []string{"url"}
	case verbSelect:
		return []string{"element"}, []string{"value", "values", "url"}
	case verbUpload:
		return []string{"element", "file"}, []string{"url"}
	case verbScreenshot:
		return nil, []string{"element", "full", "url"}
	case verbPDF:
		return nil, []string{"url"}
	case verbDownload:
		return nil, []string{"element", "url"}
	}
	return nil, nil
}

// A plan is what a call comes to.
type plan struct {
	call       capability.Call
	capability *capability.Capability
	verb       string
	args       arguments
	given      int
	workspace  string // that files are uploaded from
	extension  string
	key        key
	url        *url.URL  // nil: the page that is open
	open       *instance // the browser of the session, or nil
	reached    []string  // the hosts that its calls named before, as the proxy has them
}

func (e *Executor) plan(ctx context.Context, call capability.Call) (*plan, error) {
	c, _, err := e.cfg.Lookup(ctx, call.Target)
	if err != nil {
		return nil, err
	}
	if call.CapabilityHash != "" && call.CapabilityHash != c.Hash {
		return nil, executor.Outdated("browse", call)
	}
	p := &plan{call: call, capability: c, workspace: e.cfg.Workspace}
	if c.Run != nil {
		p.verb, _ = strings.CutPrefix(c.Run.Runner, "browser.")
	}
	if !slices.Contains(Verbs(), p.verb) {
		return nil, &capability.Error{Kind: capability.Unavailable, Op: "browse", Target: string(call.Target), Err: errors.New("nothing can run it"), Fix: "the runners are browser." + strings.Join(Verbs(), ", browser.")}
	}
	if p.extension, err = executor.WorkName(c); err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "browse", Target: string(call.Target), Err: err, Fix: "rename the extension"}
	}
	if p.args, err = executor.Decode[arguments](call); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, executor.BadArguments(call, err, "browser."+p.verb+" takes "+listed(p.verb))
	}
	if p.url != nil && address.Metadata(p.url.Hostname()) {
		return nil, &capability.Error{
			Kind: capability.Denied, Op: "browse", Target: string(call.Target), Rule: "link-local and metadata addresses",
			Err: fmt.Errorf("%s is such an address, and none is ever reached", p.url.Hostname()),
		}
	}
	p.key = key{call.Principal.Tenant, call.Principal.ID, call.Session, p.extension}
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.browsers[p.key]; i != nil && !i.gone() {
		p.open, p.reached = i, i.allowed()
	}
	return p, nil
}

func listed(verb string) string {
	needs, may := takes(verb)
	text := strings.Join(slices.Concat(needs, may), ", ")
	if text == "" {
		return "no arguments"
	}
	return text
}

// check reads the arguments.
func (p *plan) check() error {
	raw := p.call.Arguments
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	given, err := executor.Object(raw)
	if err != nil {
		return err
	}
	p.given = len(given)
	needs, may := takes(p.verb)
	for name := range given {
		if !slices.Contains(needs, name) && !slices.Contains(may, name) {
			return fmt.Errorf("%s is no argument of it", name)
		}
	}
	for _, name := range needs {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("argument %s is missing", name)
		}
	}
	a := &p.args
	if a.Selector != "" && a.Element != "" {
		return errors.New("element and selector mean the same; give one of them")
	}
	a.Element = cmp.Or(a.Element, a.Selector)
	if slices.Contains(needs, "element") && strings.TrimSpace(a.Element) == "" {
		return errors.New("argument element is empty")
	}
	switch {
	case len(a.Element) > 1000:
		return errors.New("argument element has more than 1000 bytes")
	case len(a.Text) > 1<<20:
		return errors.New("argument text has more than a million bytes")
	case a.As != "" && !slices.Contains([]string{asText, asTree, asTables, asLinks}, a.As):
		return errors.New("argument as is none of text, tree, tables and links")
	case a.Seconds < 0 || a.Seconds > 300:
		return errors.New("argument seconds is not from 0 to 300")
	case p.verb == verbWait && a.Text == "" && a.Element == "" && a.Seconds == 0:
		return errors.New("argument missing: give text, element or seconds to wait for")
	case p.verb == verbSelect && a.Value == "" && len(a.Values) == 0:
		return errors.New("argument value is missing")
	case p.verb == verbDownload && a.Element == "" && a.URL == "":
		return errors.New("argument missing: give url, or element for a link of the page")
	}
	if p.verb == verbUpload {
		if a.File, err = executor.CleanPath(a.File); err != nil {
			return fmt.Errorf("argument file: %w", err)
		}
	}
	if a.URL == "" {
		if _, ok := given["url"]; ok && slices.Contains(needs, "url") {
			return errors.New("argument url is empty")
		}
		return nil
	}
	p.url, err = pageAddress(a.URL)
	return err
}

// pageAddress reads the address of a page.
func pageAddress(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || len(text) > 8000:
		return nil, errors.New("argument url is not an address")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("argument url must begin with http:// or https:// and a host; files and pages of the browser itself are not opened")
	case u.User != nil:
		return nil, errors.New("argument url holds a user or password")
	case strings.Contains(u.Host, "*"):
		return nil, errors.New("argument url has a star in its host")
	}
	return u, nil
}

// allowing returns a host as the proxy allows it.
func allowing(u *url.URL) string {
	host := strings.ToLower(u.Hostname())
	if port := u.Port(); port != "" {
		return net.JoinHostPort(host, port)
	}
	return host
}

// allow lists what the browser may reach during the call, as the proxy has it.
func (p *plan) allow() []string {
	out := slices.Concat(p.capability.Run.Hosts, p.reached)
	if p.url != nil {
		out = append(out, allowing(p.url))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hosts are the same without their ports, for the rules.
func (p *plan) hosts() []string {
	var out []string
	for _, h := range p.allow() {
		if host, _, err := net.SplitHostPort(h); err == nil {
			h = host
		}
		out = append(out, strings.Trim(h, "[]"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// state returns what the call depends on besides its arguments: the page that is
// open, for an act on it. References such as e5 mean something else on another page.
// A page may change its query and fragment at any time.
func (p *plan) state() string {
	if p.url != nil || !slices.Contains([]string{verbFill, verbClick, verbSelect, verbUpload, verbDownload}, p.verb) {
		return ""
	}
	at := ""
	if p.open != nil {
		at, _, _ = strings.Cut(p.open.address(), "#")
		at, _, _ = strings.Cut(at, "?")
	}
	return "page " + at
}

// line is the call for the record and for questions. What is typed into a field
// is not part of it.
func (p *plan) line() string {
	words := []string{"browser." + p.verb}
	if p.args.Element != "" {
		words = append(words, p.args.Element)
	}
	if p.verb == verbUpload {
		words = append(words, p.args.File)
	}
	switch {
	case p.url != nil:
		words = append(words, p.url.String())
	case p.open != nil:
		if at := p.open.address(); at != "" {
			words = append(words, "on "+at)
		}
	}
	return strings.Join(words, " ")
}
