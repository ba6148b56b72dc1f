package output

import (
	"fmt"
	"io"
	"sync"
	"time"

	"ken/internal/run/runner"
)

// Progress shows on a terminal how far a call has come, if the call takes a while
// and prints nothing. The zero value shows nothing.
type Progress struct {
	mu    sync.Mutex
	w     io.Writer // nil: nowhere
	state runner.State
	began time.Time
	shown bool
	stop  chan struct{}
}

// patience is how long a call may take before anything is shown of it.
const patience = 700 * time.Millisecond

// Observe takes a change of state; it does not block.
func (p *Progress) Observe(t runner.Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = t.State
}

// Begin shows progress on w until the returned function is called.
func (p *Progress) Begin(w io.Writer) (end func()) {
	p.mu.Lock()
	p.w, p.began, p.stop = w, time.Now(), make(chan struct{})
	stop := p.stop
	p.mu.Unlock()
	done := make(chan struct{})
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
	percent, stage := p.state.Progress()
	fmt.Fprintf(p.w, "\r\x1b[K%3d %% %s, %d s; Ctrl-C ends it", percent, stage, int(now.Sub(p.began).Seconds()))
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
