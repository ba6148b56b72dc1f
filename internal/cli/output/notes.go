package output

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Notes returns a handler that writes log records as sentences for a person at a
// terminal: "ken: warning: the server does not start: no such file (server files)".
func Notes(w io.Writer) slog.Handler { return &notes{w: w, mu: new(sync.Mutex)} }

type notes struct {
	w     io.Writer
	mu    *sync.Mutex // shared by all that write to w
	attrs []slog.Attr
}

// Enabled reports whether records of a level are written.
func (n *notes) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle writes one line.
func (n *notes) Handle(_ context.Context, r slog.Record) error {
	var b, details strings.Builder
	b.WriteString("ken: ")
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString("error: ")
	case r.Level >= slog.LevelWarn:
		b.WriteString("warning: ")
	}
	b.WriteString(Line(r.Message))
	add := func(a slog.Attr) bool {
		value := Line(a.Value.Resolve().String())
		switch {
		case value == "":
		case a.Key == "err" || a.Key == "error" || a.Key == "why":
			b.WriteString(": " + value)
		case details.Len() == 0:
			details.WriteString(Line(a.Key) + " " + value)
		default:
			details.WriteString(", " + Line(a.Key) + " " + value)
		}
		return true
	}
	for _, a := range n.attrs {
		add(a)
	}
	r.Attrs(add)
	if details.Len() > 0 {
		b.WriteString(" (" + details.String() + ")")
	}
	b.WriteByte('\n')
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := io.WriteString(n.w, b.String())
	return err
}

// WithAttrs returns a handler that adds attributes to each record.
func (n *notes) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &notes{n.w, n.mu, append(slices.Clip(n.attrs), attrs...)}
}

// WithGroup returns the same handler: names of groups say nothing to a person.
func (n *notes) WithGroup(string) slog.Handler { return n }
