package trailapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
)

// An output is what a call wrote while it ran.
type output struct {
	Type   string `json:"type"` // output
	Text   string `json:"text"`
	Stderr bool   `json:"stderr,omitempty"`
	Left   int    `json:"left,omitempty"` // bytes before Text that were left out, because the client was slow
}

// A progress is how far a call says it is.
type progress struct {
	Type    string  `json:"type"` // progress
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"` // 0: unknown
	Message string  `json:"message,omitempty"`
}

// A stage is how far Ken has come with a call.
type stage struct {
	Type    string `json:"type"` // stage
	Percent int    `json:"percent"`
	Stage   string `json:"stage"`
}

type ended struct {
	Type string `json:"type"` // result
	invoked
}

type failed struct {
	Type    string         `json:"type"` // problem
	Problem map[string]any `json:"problem"`
}

// stream makes the call and sends what it writes, and then how it ended. The
// call goes with the connection.
func (a *api) stream(w http.ResponseWriter, r *wire.Request, run func(context.Context, *live) (invoked, error)) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	type outcome struct {
		out invoked
		err error
	}
	l := &live{redact: a.Redact, news: make(chan struct{}, 1)}
	l.err.of = l
	done := make(chan outcome, 1)
	go func() {
		out, err := run(ctx, l)
		done <- outcome{out, err}
	}()
	events, err := wire.NewEvents(w)
	if err != nil {
		cancel()
		<-done // what the call wrote is not written to later
		return err
	}
	send := func(v any) {
		if err != nil {
			return
		}
		var data []byte
		if data, err = json.Marshal(v); err == nil {
			err = events.Event("", "", data)
		}
		if err != nil {
			cancel() // the client has gone
		}
	}
	alive := time.NewTicker(a.keepAlive)
	defer alive.Stop()
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for {
		select {
		case <-l.news:
			l.take(false, send)
		case <-flush.C:
			l.take(true, send)
		case <-alive.C:
			if err == nil {
				if err = events.Comment("still running"); err != nil {
					cancel()
				}
			}
		case o := <-done:
			l.take(true, send)
			if o.err == nil {
				send(ended{"result", o.out})
				return nil // where that could not be sent, the client has gone
			}
			p, _ := problem.Of(o.err)
			send(failed{"problem", p.Document()})
			return o.err // it was told; what is Ken's own fault is logged besides
		}
	}
}

const (
	flushEvery = 500 * time.Millisecond
	mostWaits  = 256 << 10 // bytes of output that wait for a slow client
	longLine   = 4 << 10   // a line that is longer is not waited for
)

// A live takes what a call writes and never makes it wait. It is a
// [capability.Streams], a [capability.Reporter] and a [runner.Stager].
type live struct {
	redact func(string) string
	news   chan struct{} // has one when there is something to take

	mu    sync.Mutex
	out   pending
	err   stderr
	last  *progress
	far   []stage // that were not sent yet
	stage string  // the newest of all
}

// pending is output that was not sent yet.
type pending struct {
	text []byte
	left int
}

func (p *pending) add(b []byte) {
	p.text = append(p.text, b...)
	if n := len(p.text) - mostWaits; n > 0 {
		p.text = append([]byte(nil), p.text[n:]...)
		p.left += n
	}
}

// take returns the whole lines; with all, or where a line is long, also the
// beginning of one, up to its last whole character. A secret that is redacted is
// so mostly seen whole.
func (p *pending) take(all bool) (text []byte, left int) {
	n := bytes.LastIndexByte(p.text, '\n') + 1
	if all || len(p.text)-n > longLine {
		n = len(p.text)
		for i := 1; i < utf8.UTFMax && i <= n; i++ {
			if c := p.text[n-i]; utf8.RuneStart(c) {
				if c >= utf8.RuneSelf && !utf8.FullRune(p.text[n-i:]) {
					n -= i
				}
				break
			}
		}
	}
	text, left = p.text[:n:n], p.left
	p.text, p.left = p.text[n:], 0
	return text, left
}

// Write takes standard output.
func (l *live) Write(b []byte) (int, error) { return l.add(&l.out, b) }

// Stderr takes standard error.
func (l *live) Stderr() io.Writer { return &l.err }

type stderr struct {
	of *live
	pending
}

func (s *stderr) Write(b []byte) (int, error) { return s.of.add(&s.pending, b) }

func (l *live) add(p *pending, b []byte) (int, error) {
	l.mu.Lock()
	p.add(b)
	l.mu.Unlock()
	l.tell()
	return len(b), nil
}

func (l *live) tell() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// Progress keeps the newest.
func (l *live) Progress(done, total float64, message string) {
	l.mu.Lock()
	l.last = &progress{"progress", done, total, message}
	l.mu.Unlock()
	l.tell()
}

// Stage keeps a stage that differs from the one before.
func (l *live) Stage(percent int, name string) {
	l.mu.Lock()
	if l.stage != name {
		l.stage = name
		l.far = append(l.far, stage{"stage", percent, name})
	}
	l.mu.Unlock()
	l.tell()
}

// Note is for logs, which a client of this API does not have.
func (l *live) Note(string, string, json.RawMessage) {}

// take sends what has come since the last time.
func (l *live) take(all bool, send func(any)) {
	l.mu.Lock()
	out, outLeft := l.out.take(all)
	errs, errLeft := l.err.take(all)
	stages, far := l.far, l.last
	l.far, l.last = nil, nil
	l.mu.Unlock()
	for _, s := range stages {
		send(s)
	}
	for _, o := range []output{{"output", string(out), false, outLeft}, {"output", string(errs), true, errLeft}} {
		if o.Text == "" && o.Left == 0 {
			continue
		}
		if l.redact != nil {
			o.Text = l.redact(o.Text)
		}
		send(o)
	}
	if far != nil {
		if l.redact != nil {
			far.Message = l.redact(far.Message)
		}
		send(*far)
	}
}
