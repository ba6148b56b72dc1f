package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/executor/browser/devtools"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
	"ken/internal/untrusted"
)

// An instance is a running browser with one page.
type instance struct {
	key  key
	turn chan struct{} // holds one: a call at a time

	// Of the Executor, under its lock.
	users int
	used  time.Time
	idle  *time.Timer

	program // set before the first call

	stopping sync.Once

	mu      sync.Mutex // for all that follows
	stop    context.CancelFunc
	over    bool          // it was ended
	changed chan struct{} // closed at the next event
	hosts   []string      // that calls named, as the proxy allows them
	saving  *download     // that a call waits for
	uploads int
	view
	story
}

// A program is a browser that was started.
type program struct {
	conn    *devtools.Conn
	process *sandbox.Process
	proxy   *egress.Proxy
	work    *os.Root
	room    *room
	target  string // the page, and its main frame
	session string // of the protocol, for the page
}

// A view is what events say of the page.
type view struct {
	at      string // its address
	status  int    // of HTTP
	loading bool
	sent    map[string]bool // requests that have no answer yet
	pages   int             // how many documents were shown
	crashed bool
}

// A story is what happened during one call.
type story struct {
	notes   []string
	refused []egress.Connection
	traffic struct{ made, refused, bytes int64 }
}

// mostNotes is how many events of one call its result tells about.
const mostNotes = 10

func newInstance(k key) *instance {
	i := &instance{key: k, turn: make(chan struct{}, 1), changed: make(chan struct{}), view: view{sent: map[string]bool{}}, stop: func() {}}
	i.turn <- struct{}{}
	return i
}

// take waits for the instance to be free.
func (i *instance) take(ctx context.Context) error {
	select {
	case <-i.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (i *instance) give() { i.turn <- struct{}{} }

// gone reports whether the browser has ended.
func (i *instance) gone() bool {
	i.mu.Lock()
	over := i.over || i.crashed
	conn := i.conn
	i.mu.Unlock()
	if over || conn == nil {
		return over
	}
	select {
	case <-conn.Done():
		return true
	default:
		return false
	}
}

// kill ends the processes of the browser, without waiting.
func (i *instance) kill() {
	i.mu.Lock()
	i.over = true
	stop := i.stop
	i.mu.Unlock()
	stop()
}

// end ends the browser, waits until the call that uses it and all its processes
// are gone, and removes what it had.
func (i *instance) end() {
	i.kill()
	<-i.turn
	defer i.give()
	i.stopping.Do(func() {
		if i.conn != nil {
			i.conn.Close()
		}
		if i.process != nil {
			<-i.process.Done()
		}
		if i.room != nil {
			i.room.remove()
		}
		if i.work != nil {
			i.work.Close()
		}
	})
}

func (i *instance) allowed() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.hosts)
}

func (i *instance) address() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.at
}

// bringUp starts the browser of an instance, with an empty page.
func (e *Executor) bringUp(ctx context.Context, i *instance) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	work, err := executor.OpenDir(e.root, i.key.extension+"/work", 0o700)
	if err != nil {
		return &capability.Error{Kind: capability.Denied, Op: "open the work directory of", Target: i.key.extension, Rule: "extensions/" + i.key.extension + "/work",
			Err: err, Fix: "it must be a plain folder of the extension's own; remove what is in its place"}
	}
	sweep(work)
	i.work, i.room = work, &room{work: work}
	var networks []netip.Prefix
	if e.cfg.Networks != nil {
		networks = e.cfg.Networks()
	}
	var most, rate int64
	if e.cfg.Network != nil {
		most, rate = e.cfg.Network()
	}
	i.proxy, err = egress.New(egress.Config{Networks: networks, NoMetadata: true, MaxBytes: most, Rate: rate, Connections: 64, Report: i.passed})
	if err != nil {
		return err
	}
	life, stop := context.WithTimeout(context.Background(), longestLife)
	i.mu.Lock()
	i.stop = stop
	over := i.over
	i.mu.Unlock()
	if over {
		stop()
	}
	conn, process, err := e.start(life, work, i.room, i.proxy, i.on)
	if err != nil {
		return err
	}
	i.process = process
	i.mu.Lock()
	i.conn = conn
	i.mu.Unlock()
	defer context.AfterFunc(ctx, i.kill)()
	if err := i.newPage(ctx); err != nil {
		i.kill()
		o, _ := process.Wait()
		said := strings.TrimSpace(o.Stderr.Text())
		return fmt.Errorf("start Chromium: %w: %s", err, untrusted.Line(executor.Clip(said, 600), 700))
	}
	return nil
}

// newPage makes the page of a new browser.
func (i *instance) newPage(ctx context.Context) error {
	var made struct {
		TargetID string `json:"targetId"`
	}
	if err := i.conn.Call(ctx, "", "Target.createTarget", params{"url": "about:blank"}, &made); err != nil {
		return err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := i.conn.Call(ctx, "", "Target.attachToTarget", params{"targetId": made.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	i.mu.Lock()
	i.target, i.session = made.TargetID, attached.SessionID
	i.mu.Unlock()
	for _, c := range []struct {
		session, method string
		params          params
	}{
		{"", "Target.setDiscoverTargets", params{"discover": true}},
		{"", "Browser.setDownloadBehavior", params{"behavior": "deny", "eventsEnabled": true}},
		{i.session, "Page.enable", nil},
		{i.session, "Network.enable", params{"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}},
		{i.session, "Fetch.enable", params{"patterns": barredPatterns()}},
	} {
		if err := i.conn.Call(ctx, c.session, c.method, c.params, nil); err != nil {
			return err
		}
	}
	return nil
}

// params are those of a method of the protocol.
type params map[string]any

// barredSchemes are those of addresses that no page opens or loads.
func barredSchemes() []string {
	return []string{"file", "filesystem", "chrome", "chrome-untrusted", "chrome-extension", "devtools", "view-source", "ftp", "content"}
}

func barredPatterns() []params {
	var out []params
	for _, s := range barredSchemes() {
		out = append(out, params{"urlPattern": s + ":*"})
	}
	return out
}

// call calls a method of the page.
func (i *instance) call(ctx context.Context, method string, p params, result any) error {
	return i.conn.Call(ctx, i.session, method, p, result)
}

// passed counts what went through the proxy.
func (i *instance) passed(c egress.Connection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.traffic.bytes += c.Up + c.Down
	if c.Refused == "" {
		i.traffic.made++
		return
	}
	i.traffic.refused++
	host, _, _ := net.SplitHostPort(c.Host)
	if len(i.refused) < 1000 && !slices.Contains(ownHosts(), host) {
		i.refused = append(i.refused, c)
	}
}

// ownHosts are those that Chromium itself asks, whatever page is open. It does
// without.
func ownHosts() []string {
	return []string{
		"update.googleapis.com", "passwordsleakcheck-pa.googleapis.com", "optimizationguide-pa.googleapis.com", "content-autofill.googleapis.com",
		"safebrowsing.googleapis.com", "clients2.google.com", "clientservices.googleapis.com", "accounts.google.com", "android.clients.google.com",
		"mtalk.google.com", "redirector.gvt1.com", "edgedl.me.gvt1.com",
	}
}

// note keeps something to tell in the result of the call. The lock is held.
func (i *instance) note(text string) {
	if len(i.notes) == mostNotes {
		i.notes = append(i.notes, "More of this happened.")
	}
	if len(i.notes) < mostNotes && !slices.Contains(i.notes, text) {
		i.notes = append(i.notes, text)
	}
}

// on takes an event of the browser.
func (i *instance) on(conn *devtools.Conn, ev devtools.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if ev.Session == "" {
		i.ofBrowser(conn, ev)
	} else if ev.Session == i.session {
		i.ofPage(conn, ev)
	}
	close(i.changed)
	i.changed = make(chan struct{})
}

// later calls a method of which the answer does not matter.
func later(conn *devtools.Conn, session, method string, p params) {
	go conn.Call(context.Background(), session, method, p, nil) // it returns when the browser answers or ends
}

func (i *instance) ofBrowser(conn *devtools.Conn, ev devtools.Event) {
	var v struct {
		TargetInfo struct {
			TargetID string `json:"targetId"`
			Type     string `json:"type"`
			URL      string `json:"url"`
			Opener   string `json:"openerId"`
		} `json:"targetInfo"`
		TargetID string  `json:"targetId"`
		GUID     string  `json:"guid"`
		URL      string  `json:"url"`
		Name     string  `json:"suggestedFilename"`
		State    string  `json:"state"`
		Total    float64 `json:"totalBytes"`
		Received float64 `json:"receivedBytes"`
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	switch ev.Method {
	case "Target.targetCreated", "Target.targetInfoChanged":
		t := v.TargetInfo
		if t.Type != "page" || t.TargetID == i.target || i.target == "" {
			return
		}
		if t.URL == "" || t.URL == "about:blank" {
			if ev.Method == "Target.targetCreated" && t.Opener != "" {
				return // its address follows
			}
		}
		i.note("The page opened another window, which was closed: " + untrusted.Line(t.URL, 500) + ". To see it, open that address.")
		later(conn, "", "Target.closeTarget", params{"targetId": t.TargetID})
	case "Target.targetDestroyed":
		i.crashed = i.crashed || v.TargetID == i.target
	case "Target.targetCrashed":
		i.crashed = i.crashed || v.TargetID == i.target
	case "Browser.downloadWillBegin":
		if i.saving == nil || i.saving.guid != "" {
			i.note("The page offered the file " + untrusted.Line(v.Name, 100) + ", which was not saved. To save it, use download.")
			return
		}
		i.saving.guid, i.saving.name, i.saving.url = v.GUID, v.Name, v.URL
	case "Browser.downloadProgress":
		if i.saving == nil || i.saving.guid != v.GUID {
			return
		}
		i.saving.state, i.saving.received = v.State, int64(v.Received)
		if most := i.saving.most; int64(v.Received) > most || int64(v.Total) > most {
			i.saving.tooLong = true
			later(conn, "", "Browser.cancelDownload", params{"guid": v.GUID})
		}
	}
}

func (i *instance) ofPage(conn *devtools.Conn, ev devtools.Event) {
	var v struct {
		FrameID string `json:"frameId"`
		Type    string `json:"type"`
		Message string `json:"message"`
		URL     string `json:"url"`
		Frame   struct {
			ID       string `json:"id"`
			URL      string `json:"url"`
			ParentID string `json:"parentId"`
		} `json:"frame"`
		Response struct {
			Status int `json:"status"`
		} `json:"response"`
		RequestID string `json:"requestId"`
		Request   struct {
			URL string `json:"url"`
		} `json:"request"`
		Code    int             `json:"responseStatusCode"`
		Headers []params        `json:"responseHeaders"`
		Kind    string          `json:"resourceType"`
		Reason  json.RawMessage `json:"responseErrorReason"`
	}
	switch ev.Method {
	case "Network.dataReceived", "Network.requestWillBeSentExtraInfo", "Network.responseReceivedExtraInfo":
		return
	}
	if json.Unmarshal(ev.Params, &v) != nil {
		return
	}
	switch ev.Method {
	case "Page.javascriptDialogOpening":
		accept := v.Type == "beforeunload" // it asks whether to stay
		if !accept {
			i.note("The page showed a dialog, which was dismissed: " + untrusted.Line(v.Message, 300))
		}
		later(conn, i.session, "Page.handleJavaScriptDialog", params{"accept": accept})
	case "Page.frameStartedLoading", "Page.frameStartedNavigating":
		if v.FrameID == i.target {
			i.loading = true
		}
	case "Page.frameStoppedLoading":
		if v.FrameID == i.target {
			i.loading = false
		}
	case "Page.frameNavigated":
		if v.Frame.ParentID == "" {
			i.at = v.Frame.URL
			i.pages++
		}
	case "Page.navigatedWithinDocument":
		if v.FrameID == i.target {
			i.at = v.URL
		}
	case "Network.requestWillBeSent":
		if len(i.sent) < 10_000 {
			i.sent[v.RequestID] = true
		}
	case "Network.loadingFinished", "Network.loadingFailed":
		delete(i.sent, v.RequestID)
	case "Network.responseReceived":
		if v.Type == "Document" && v.FrameID == i.target {
			i.status = v.Response.Status
		}
	case "Inspector.targetCrashed":
		i.crashed = true
	case "Fetch.requestPaused":
		i.paused(conn, v.RequestID, v.Request.URL, v.FrameID, v.Code, v.Headers)
	}
}

// paused decides on a request that waits: one of a barred scheme fails, and an
// answer that a call downloads becomes a file.
func (i *instance) paused(conn *devtools.Conn, id, address, frame string, status int, headers []params) {
	if u, err := url.Parse(address); err != nil || slices.Contains(barredSchemes(), strings.ToLower(u.Scheme)) {
		i.note("The page asked for " + untrusted.Line(address, 200) + ", which was denied: only http and https are opened.")
		later(conn, i.session, "Fetch.failRequest", params{"requestId": id, "errorReason": "AccessDenied"})
		return
	}
	if i.saving != nil && frame == i.target && status >= 200 && status < 300 {
		kept := slices.DeleteFunc(slices.Clone(headers), func(h params) bool {
			name, _ := h["name"].(string)
			said, _ := h["value"].(string)
			return strings.EqualFold(name, "Content-Disposition") && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(said)), "attachment")
		})
		if !slices.ContainsFunc(kept, func(h params) bool {
			name, _ := h["name"].(string)
			return strings.EqualFold(name, "Content-Disposition")
		}) {
			kept = append(kept, params{"name": "Content-Disposition", "value": "attachment"})
		}
		later(conn, i.session, "Fetch.continueResponse", params{"requestId": id, "responseCode": status, "responseHeaders": kept})
		return
	}
	later(conn, i.session, "Fetch.continueRequest", params{"requestId": id})
}

// until waits until ok reports true, which is asked under the lock after each
// event. It returns false when time is over.
func (i *instance) until(ctx context.Context, most time.Duration, ok func() bool) (bool, error) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		i.mu.Lock()
		done, crashed, changed := ok(), i.crashed, i.changed
		i.mu.Unlock()
		switch {
		case crashed:
			return false, errCrashed
		case done:
			return true, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-i.conn.Done():
			return false, devtools.ErrGone
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

var errCrashed = errors.New("the page crashed")
