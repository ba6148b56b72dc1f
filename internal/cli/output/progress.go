package output

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"ken/internal/run/runner"
)

// Progress shows on a terminal that a command or a call is still at work, if it
// takes a while and prints nothing. The zero value shows nothing.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: nowhere
	what  string    // empty: the stage of the call is shown
	state runner.State
	began time.Time
	shown bool
}

// patience is how long something may take before anything is shown of it.
const patience = 700 * time.Millisecond

// Observe takes a change of state; it does not block.
func (p *Progress) Observe(t runner.Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = t.State
}

// Begin shows the stage of a call on w until the returned function is called.
func (p *Progress) Begin(w io.Writer) (end func()) { return p.Work(w, "") }

// Work shows on w what is done, as in "Reading the catalog", until there is output
// or the returned function is called. Nothing is shown on a w that is nil.
func (p *Progress) Work(w io.Writer, what string) (end func()) {
	if w == nil {
		return func() {}
	}
	p.Hide() // of what was done before
	p.mu.Lock()
	p.w, p.what, p.began = w, what, time.Now()
	p.mu.Unlock()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(patience / 2)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				p.show(now)
			}
		}
	}()
	return func() {
		p.Hide()
		close(stop)
		<-done
	}
}

func (p *Progress) show(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil || now.Sub(p.began) < patience {
		return
	}
	text := p.what + " …"
	if p.what == "" {
		percent, stage := p.state.Progress()
		text = fmt.Sprintf("%3d %% %s,", percent, stage)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s %d s; Ctrl-C ends it", text, int(now.Sub(p.began).Seconds()))
	p.shown = true
}

// Hide removes what was shown and shows nothing more, because there is output or
// a question.
func (p *Progress) Hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	p.w, p.shown = nil, false
}

// An Aside is standard error of a command: what is written there removes the
// progress line first.
type Aside struct {
	W      io.Writer
	Before func()
}

// Write implements [io.Writer].
func (a Aside) Write(b []byte) (int, error) {
	a.Before()
	return a.W.Write(b)
}

// Screen returns w if it is a terminal, and otherwise nil.
func Screen(w io.Writer) io.Writer {
	if a, ok := w.(Aside); ok {
		w = a.W
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}
