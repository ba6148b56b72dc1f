package queue

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// reportEvery is how often progress is kept at most.
const reportEvery = 250 * time.Millisecond

// mostOutput is how many bytes of the end of a job's output are kept while it
// runs.
const mostOutput = 2000

// live keeps what a call says while it runs. It is a [capability.Reporter].
type live struct {
	report func(Progress)

	mu    sync.Mutex
	now   Progress
	timer *time.Timer
	over  bool
}

func newLive(report func(Progress)) *live { return &live{report: report} }

// changed keeps the progress within reportEvery. The caller holds the lock.
func (l *live) changed() {
	if l.timer == nil && !l.over {
		l.timer = time.AfterFunc(reportEvery, l.flush)
	}
}

func (l *live) flush() {
	l.mu.Lock()
	p, over := l.now, l.over
	l.timer = nil
	l.mu.Unlock()
	if over {
		return
	}
	p.At, p.Output = time.Now().UTC(), strings.ToValidUTF8(p.Output, "")
	l.report(p)
}

// close ends the reports. One that is being written may still come.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// Write keeps the end of what is written.
func (l *live) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.now.Output + string(b)
	if len(out) > mostOutput {
		out = out[len(out)-mostOutput:]
	}
	l.now.Output = out
	l.changed()
	return len(b), nil
}

// Progress keeps how far the call has come.
func (l *live) Progress(done, total float64, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Done, l.now.Total, l.now.Message = done, total, short(message, 300)
	l.changed()
}

// Note is part of the output.
func (l *live) Note(level, _ string, data json.RawMessage) {
	_, _ = l.Write([]byte(level + ": " + short(string(data), 300) + "\n"))
}
