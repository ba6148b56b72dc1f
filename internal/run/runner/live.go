package runner

import (
	"encoding/json"
	"io"
	"sync"

	"ken/capability"
	"ken/internal/govern/audit"
)

// liveWriter takes the secrets that Ken knows out of what a call writes while it
// runs, and stops writing when the call has ended.
type liveWriter struct {
	secrets  secrets
	mu       sync.Mutex
	w        *audit.Stream
	stderr   *liveWriter         // nil: standard error goes the same way
	reporter capability.Reporter // nil: progress is not asked for
	closed   bool
}

func (s secrets) newLive(w io.Writer) *liveWriter {
	l := &liveWriter{secrets: s, w: s.redactor.Stream(w)}
	if two, ok := w.(capability.Streams); ok {
		l.stderr = &liveWriter{w: s.redactor.Stream(two.Stderr())}
	}
	l.reporter, _ = w.(capability.Reporter)
	return l
}

// as returns the writer with what the caller's has besides.
func (l *liveWriter) as() io.Writer {
	switch {
	case l.stderr != nil && l.reporter != nil:
		return struct {
			liveStreams
			liveReporter
		}{liveStreams{l}, liveReporter{l}}
	case l.stderr != nil:
		return liveStreams{l}
	case l.reporter != nil:
		return struct {
			*liveWriter
			liveReporter
		}{l, liveReporter{l}}
	}
	return l
}

// liveStreams is a liveWriter that has standard error apart.
type liveStreams struct{ *liveWriter }

// Stderr makes it a capability.Streams.
func (l liveStreams) Stderr() io.Writer { return l.stderr }

// liveReporter reports until the call has ended, one thing at a time.
type liveReporter struct{ live *liveWriter }

func (r liveReporter) Progress(done, total float64, message string) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if !r.live.closed {
		r.live.reporter.Progress(done, total, r.live.secrets.redactor.Held(message))
	}
}

func (r liveReporter) Note(level, logger string, data json.RawMessage) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if !r.live.closed {
		if clean, same := r.live.secrets.hideBytes(data); !same {
			if data = json.RawMessage(clean); !json.Valid(data) {
				data = json.RawMessage(`"a secret was taken out"`)
			}
		}
		r.live.reporter.Note(level, logger, data)
	}
}

func (l *liveWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	return l.w.Write(p)
}

func (l *liveWriter) close() {
	if l.stderr != nil {
		l.stderr.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_ = l.w.Close() // the reader has gone; the result has it all
	}
	l.closed = true
}
