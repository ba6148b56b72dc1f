package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/executor/browser/devtools"
	"ken/internal/run/sandbox/egress"
	"ken/internal/untrusted"
)

//go:embed page.js
var pageScript string

// A pageError is what a page does not allow, in words for a model.
type pageError struct{ text string }

func (e *pageError) Error() string { return e.text }

func unable(format string, values ...any) error { return &pageError{fmt.Sprintf(format, values...)} }

// about is a page as it says itself.
type about struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Type  string `json:"type"`
	State string `json:"state"`
	Text  string `json:"text"`
	Cut   bool   `json:"cut"`
	Error string `json:"error"`
}

// eval calls a function of page.js with arguments.
func (i *instance) eval(ctx context.Context, function string, result any, args ...any) error {
	raw, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		return err
	}
	expression := pageScript + "." + function + "(..." + string(raw) + ")"
	for try := 0; ; try++ {
		err := i.evalOnce(ctx, expression, result)
		said, ok := errors.AsType[*devtools.Error](err)
		if !ok || try == 20 || !strings.Contains(said.Message, "context") && !strings.Contains(said.Message, "navigated") && !strings.Contains(said.Message, "frame") {
			return err
		}
		// The page was exchanged for another one meanwhile.
		if _, err := i.until(ctx, 250*time.Millisecond, func() bool { return !i.loading }); err != nil {
			return err
		}
	}
}

func (i *instance) world(ctx context.Context) (int, error) {
	var world struct {
		ID int `json:"executionContextId"`
	}
	err := i.call(ctx, "Page.createIsolatedWorld", params{"frameId": i.target, "worldName": "ken"}, &world)
	return world.ID, err
}

func (i *instance) evalOnce(ctx context.Context, expression string, result any) error {
	world, err := i.world(ctx)
	if err != nil {
		return err
	}
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := i.call(ctx, "Runtime.evaluate", params{"expression": expression, "contextId": world, "returnByValue": true, "awaitPromise": true}, &out); err != nil {
		return err
	}
	if out.Exception != nil {
		return unable("the page could not be read: %s", untrusted.Line(out.Exception.Text+" "+out.Exception.Exception.Description, 300))
	}
	if result == nil || len(out.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(out.Result.Value, result)
}

// run does what a plan says.
func (i *instance) run(ctx context.Context, p *plan) (capability.Result, error) {
	i.mu.Lock()
	i.story = story{}
	i.mu.Unlock()
	i.proxy.Refill()
	if err := i.proxy.Allow(p.allow()); err != nil {
		return capability.Result{}, &capability.Error{Kind: capability.Invalid, Op: "grant network to", Target: string(p.call.Target), Err: err}
	}
	if p.url != nil {
		i.mu.Lock()
		if h := allowing(p.url); !slices.Contains(i.hosts, h) {
			i.hosts = append(i.hosts, h)
		}
		i.mu.Unlock()
		if p.verb != verbDownload || p.args.Element != "" {
			if err := i.open(ctx, p.url); err != nil {
				return capability.Result{}, err
			}
		}
	}
	switch p.verb {
	case verbWait:
		return i.wait(ctx, p)
	case verbFill:
		return i.fill(ctx, p)
	case verbClick:
		return i.click(ctx, p)
	case verbSelect:
		return i.choose(ctx, p)
	case verbUpload:
		return i.upload(ctx, p)
	case verbScreenshot:
		return i.screenshot(ctx, p)
	case verbPDF:
		return i.pdf(ctx, p)
	case verbDownload:
		return i.download(ctx, p)
	}
	return i.read(ctx, p.args.As, p.args.Element, mostRead(p))
}

// mostRead is how many characters of a page the result of a call has.
func mostRead(p *plan) int {
	if n := p.capability.Run.MaxOutputSize; n > 0 {
		return min(n, mostText)
	}
	return mostText
}

// open opens an address and waits until it is loaded, or as good as.
func (i *instance) open(ctx context.Context, u *url.URL) error {
	i.mu.Lock()
	i.status, i.loading = 0, true
	clear(i.sent)
	i.mu.Unlock()
	var out struct {
		Error    string `json:"errorText"`
		Download bool   `json:"isDownload"`
	}
	// A server that never answers must not use up the time of the call: the page
	// would be lost with the browser.
	within, cancel := context.WithTimeout(ctx, openLimit(ctx))
	defer cancel()
	to := params{"url": u.String(), "frameId": i.target}
	err := i.call(within, "Page.navigate", to, &out)
	if err == nil && out.Error == "net::ERR_ABORTED" && !out.Download {
		// Chromium had to start its network process again.
		out.Error = ""
		err = i.call(within, "Page.navigate", to, &out)
	}
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		if err := i.call(ctx, "Page.stopLoading", nil, nil); err != nil {
			return err
		}
		return unable("%s did not answer in time", untrusted.Line(u.Host, 200))
	case err != nil:
		return err
	case out.Download:
		return unable("the address is a file and not a page; use download to save it")
	case out.Error != "":
		if why := i.refusal(u.String()); why != "" {
			return unable("%s", why)
		}
		return unable("%s cannot be opened: %s", untrusted.Line(u.Host, 200), untrusted.Line(out.Error, 100))
	}
	if err := i.loaded(ctx); err != nil {
		return err
	}
	return i.allowedPage(ctx)
}

// openLimit leaves time to tell what happened.
func openLimit(ctx context.Context) time.Duration {
	until, ok := ctx.Deadline()
	if !ok {
		return loadLimit
	}
	return min(loadLimit, time.Until(until)*3/4)
}

// loaded waits until the page is loaded, and then a while for what its script
// loads.
func (i *instance) loaded(ctx context.Context) error {
	done, err := i.until(ctx, openLimit(ctx), func() bool { return !i.loading })
	if err != nil {
		return err
	}
	if !done {
		i.mu.Lock()
		i.note("The page was still loading when it was read.")
		i.mu.Unlock()
		return nil
	}
	return i.quiet(ctx)
}

// quiet waits until the page has asked for nothing more for a moment.
func (i *instance) quiet(ctx context.Context) error {
	for end := time.Now().Add(settleLimit); time.Now().Before(end); {
		if _, err := i.until(ctx, time.Until(end), func() bool { return len(i.sent) == 0 && !i.loading }); err != nil {
			return err
		}
		if more, err := i.until(ctx, quietTime, func() bool { return len(i.sent) > 0 || i.loading }); err != nil || !more {
			return err
		}
	}
	return nil
}

// refusal returns why the proxy refused the host of a page, or "".
func (i *instance) refusal(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.refused {
		if strings.EqualFold(c.Host, net.JoinHostPort(strings.ToLower(u.Hostname()), port)) {
			return "the way to the network refused " + untrusted.Line(c.Host, 200) + ": " + untrusted.Line(c.Refused, 300) + reach(c.Refused)
		}
	}
	return ""
}

// reach says what allows a host.
func reach(why string) string {
	if strings.Contains(why, egress.NotListed) {
		return ". A call reaches the hosts that it opens, and those that its recipe names in hosts; to go there, open the address"
	}
	if strings.Contains(why, egress.Spent) {
		return ". Changed by: sandbox.networkBytes"
	}
	return ""
}

// allowedPage leaves a page that no call may be on.
func (i *instance) allowedPage(ctx context.Context) error {
	var a about
	if err := i.eval(ctx, "about", &a); err != nil {
		return err
	}
	i.mu.Lock()
	i.at = a.URL
	i.mu.Unlock()
	if why := i.refusal(a.URL); why != "" {
		return i.blank(ctx, unable("%s", why))
	}
	scheme, _, _ := strings.Cut(a.URL, ":")
	switch scheme {
	case "http", "https", "about", "blob", "data":
		return nil
	}
	if scheme == "chrome-error" {
		return i.blank(ctx, unable("the page could not be loaded"))
	}
	return i.blank(ctx, unable("the page led to %s, which was left: only http and https are opened", untrusted.Line(a.URL, 200)))
}

func (i *instance) blank(ctx context.Context, why error) error {
	if err := i.call(ctx, "Page.navigate", params{"url": "about:blank"}, nil); err != nil {
		return err
	}
	return why
}

// read returns the page, or an element of it.
func (i *instance) read(ctx context.Context, as, element string, most int) (capability.Result, error) {
	var a about
	var err error
	if as == asTree {
		if a, err = i.tree(ctx, element, most); err != nil {
			return capability.Result{}, err
		}
	} else if err = i.eval(ctx, "read", &a, as, element, most); err != nil {
		return capability.Result{}, err
	}
	if a.Error != "" {
		return capability.Result{}, unable("%s", a.Error)
	}
	r := i.page(a)
	r.Meta["truncated"] = strconv.FormatBool(a.Cut)
	switch {
	case strings.TrimSpace(a.Text) != "":
		r.Parts = append(r.Parts, capability.Part{Text: strings.ToValidUTF8(a.Text, "\uFFFD"), MIME: executor.MIMEStdout})
	case a.Type == "application/pdf":
		r.Parts = append(r.Parts, capability.Part{Text: "The page is a PDF. Use download to save it."})
	default:
		r.Parts = append(r.Parts, capability.Part{Text: "It has no " + map[string]string{asTables: "tables", asLinks: "links"}[as] + map[bool]string{true: "text that is shown"}[as != asTables && as != asLinks] + "."})
	}
	if a.Cut {
		r.Parts = append(r.Parts, capability.Part{Text: fmt.Sprintf("Only the first %d characters were read. Read a part of the page: give element.", most)})
	}
	return r, nil
}

// page begins a result with what page it is of.
func (i *instance) page(a about) capability.Result {
	i.mu.Lock()
	status := i.status
	i.at = a.URL
	i.mu.Unlock()
	head := untrusted.Line(a.URL, 2000)
	if a.Title != "" {
		head = untrusted.Line(a.Title, 300) + "\n" + head
	}
	if status >= 400 {
		head += fmt.Sprintf("\nHTTP status %d", status)
	}
	r := capability.Result{Meta: map[string]string{"url": untrusted.Line(a.URL, 2000), "truncated": "false"}, Parts: []capability.Part{{Text: head}}}
	if status > 0 {
		r.Meta["http_status"] = strconv.Itoa(status)
	}
	return r
}

// done tells of an action, and of the page that it led to.
func (i *instance) done(ctx context.Context, p *plan, before int, format string, values ...any) (capability.Result, error) {
	// What the page does upon it begins in the next moments.
	if err := i.eval(ctx, "tick", nil); err != nil {
		return capability.Result{}, err
	}
	i.mu.Lock()
	moved := i.loading || i.pages != before
	i.mu.Unlock()
	text := fmt.Sprintf(format, values...)
	if moved {
		if err := i.loaded(ctx); err != nil {
			return capability.Result{}, err
		}
	}
	if err := i.allowedPage(ctx); err != nil {
		return capability.Result{}, unable("%s, and %v", text, err)
	}
	if moved {
		r, err := i.read(ctx, asText, "", mostRead(p))
		r.Parts = append([]capability.Part{{Text: text + ". It led to another page:"}}, r.Parts...)
		return r, err
	}
	var a about
	if err := i.eval(ctx, "about", &a); err != nil {
		return capability.Result{}, err
	}
	r := i.page(a)
	r.Parts = append([]capability.Part{{Text: text + ". The page is still:"}}, r.Parts...)
	return r, nil
}

func (i *instance) shown() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pages
}

// wait waits for a text, an element, or a time.
func (i *instance) wait(ctx context.Context, p *plan) (capability.Result, error) {
	most := time.Duration(p.args.Seconds * float64(time.Second))
	what := p.args.Text != "" || p.args.Element != ""
	if most == 0 {
		most = waitDefault
	}
	if until, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(until)*9/10)
	}
	begun := time.Now()
	for {
		if what {
			var ready bool
			if err := i.eval(ctx, "ready", &ready, p.args.Text, p.args.Element); err != nil {
				return capability.Result{}, err
			}
			if ready {
				break
			}
		}
		left := most - time.Since(begun)
		if left <= 0 {
			if what {
				return capability.Result{}, unable("it was not there after %.1f s", most.Seconds())
			}
			break
		}
		if _, err := i.until(ctx, min(left, 100*time.Millisecond), func() bool { return false }); err != nil {
			return capability.Result{}, err
		}
	}
	if err := i.allowedPage(ctx); err != nil {
		return capability.Result{}, err
	}
	return i.read(ctx, asText, "", mostRead(p))
}

// A spot is where an element is, or why it cannot be used.
type spot struct {
	X, Y   float64
	Called string `json:"called"`
	Chosen string `json:"chosen"`
	Typed  bool   `json:"typed"`
	Empty  bool   `json:"empty"`
	Many   bool   `json:"many"`
	Error  string `json:"error"`
}

func (i *instance) ask(ctx context.Context, function string, args ...any) (spot, error) {
	var s spot
	if err := i.eval(ctx, function, &s, args...); err != nil {
		return s, err
	}
	if s.Error != "" {
		return s, unable("%s. Read the page again for its references", strings.ToValidUTF8(s.Error, "\uFFFD"))
	}
	return s, nil
}

func (i *instance) click(ctx context.Context, p *plan) (capability.Result, error) {
	before := i.shown()
	s, err := i.press(ctx, p.args.Element)
	if err != nil {
		return capability.Result{}, err
	}
	return i.done(ctx, p, before, "Clicked %s", s.Called)
}

// press clicks an element with the mouse.
func (i *instance) press(ctx context.Context, element string) (spot, error) {
	s, err := i.ask(ctx, "aim", element)
	if err != nil {
		return s, err
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		button, count := "left", 1
		if kind == "mouseMoved" {
			button, count = "none", 0
		}
		if err := i.call(ctx, "Input.dispatchMouseEvent", params{"type": kind, "x": s.X, "y": s.Y, "button": button, "clickCount": count}, nil); err != nil {
			return s, err
		}
	}
	return s, nil
}

// fill replaces the text of a field.
func (i *instance) fill(ctx context.Context, p *plan) (capability.Result, error) {
	before := i.shown()
	s, err := i.ask(ctx, "hold", p.args.Element)
	if err != nil {
		return capability.Result{}, err
	}
	switch {
	case s.Typed:
		_, err = i.ask(ctx, "put", p.args.Element, p.args.Text)
	case p.args.Text != "":
		err = i.call(ctx, "Input.insertText", params{"text": p.args.Text}, nil)
	case !s.Empty:
		err = i.strike(ctx, "Delete", 46, "")
	}
	if err == nil && p.args.Submit {
		err = i.strike(ctx, "Enter", 13, "\r")
	}
	if err != nil {
		return capability.Result{}, err
	}
	return i.done(ctx, p, before, "Filled %s with %d characters", s.Called, len([]rune(p.args.Text)))
}

func (i *instance) strike(ctx context.Context, name string, code int, text string) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		k := params{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			k["text"] = text
		}
		if err := i.call(ctx, "Input.dispatchKeyEvent", k, nil); err != nil {
			return err
		}
	}
	return nil
}

func (i *instance) choose(ctx context.Context, p *plan) (capability.Result, error) {
	before := i.shown()
	wanted := p.args.Values
	if p.args.Value != "" {
		wanted = append([]string{p.args.Value}, wanted...)
	}
	s, err := i.ask(ctx, "choose", p.args.Element, wanted)
	if err != nil {
		return capability.Result{}, err
	}
	return i.done(ctx, p, before, "Selected %s in %s", s.Chosen, s.Called)
}

// settle turns what went wrong into a failed result where a page is the cause.
func (i *instance) settle(ctx context.Context, p *plan, err error) (capability.Result, error) {
	said, ok := errors.AsType[*pageError](err)
	switch {
	case ctx.Err() != nil:
		return capability.Result{}, err // its browser is ended
	case ok:
		return capability.Result{Failed: true, Meta: map[string]string{"truncated": "false"}, Parts: []capability.Part{{Text: capitalized(said.text) + "."}}}, nil
	case errors.Is(err, errCrashed) || errors.Is(err, devtools.ErrGone):
		text := "The browser ended"
		if errors.Is(err, errCrashed) {
			text = "The page crashed"
		}
		i.kill()
		if o, err := i.process.Wait(); err == nil && o.Limit != "" {
			text += " at its limit of " + o.Limit
		}
		return capability.Result{Failed: true, Meta: map[string]string{"truncated": "false"}, Parts: []capability.Part{{Text: text + ". Open the page again."}}}, nil
	}
	if protocol, ok := errors.AsType[*devtools.Error](err); ok {
		return capability.Result{Failed: true, Meta: map[string]string{"truncated": "false"}, Parts: []capability.Part{{Text: "The browser says: " + untrusted.Line(protocol.Message, 500)}}}, nil
	}
	return capability.Result{}, err
}

func capitalized(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// tell adds to a result what happened besides, and what the record needs.
func (i *instance) tell(r *capability.Result, p *plan) {
	if r.Meta == nil {
		r.Meta = map[string]string{}
	}
	if raw, err := json.Marshal(i.process.Isolation()); err == nil {
		r.Meta["isolation"] = string(raw)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	r.Meta["tool"], r.Meta["end"], r.Meta["extension_id"], r.Meta["work_dir"] = "browser."+p.verb, "returned", p.extension, p.extension+"/work"
	r.Meta["connections"] = strconv.FormatInt(i.traffic.made, 10)
	r.Meta["connections_refused"] = strconv.FormatInt(i.traffic.refused, 10)
	r.Meta["network_bytes"] = strconv.FormatInt(i.traffic.bytes, 10)
	var hosts []string
	for _, c := range i.refused {
		if why := c.Host + " (" + c.Refused + ")"; !slices.Contains(hosts, why) && len(hosts) < 5 {
			hosts = append(hosts, why)
		}
	}
	if len(hosts) > 0 && !r.Failed {
		i.notes = append(i.notes, "Not loaded: "+untrusted.Line(strings.Join(hosts, ", "), 1000)+". A recipe names further hosts in hosts.")
	}
	if len(i.notes) > 0 {
		r.Parts = append(r.Parts, capability.Part{Text: strings.Join(i.notes, "\n")})
	}
}
