package redaction

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a handler that passes records on to next without the secrets
// that the Redactor holds at that moment, in the message and in attributes.
func (r *Redactor) Handler(next slog.Handler) slog.Handler { return logHandler{r, next} }

type logHandler struct {
	r    *Redactor
	next slog.Handler
}

func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h logHandler) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, h.r.Held(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return logHandler{h.r, h.next.WithAttrs(clean)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.r, h.next.WithGroup(name)}
}

// attr returns an attribute without secrets. A value that has none stays as it is.
func (h logHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.r.Held(v.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, one := range v.Group() {
			group = append(group, h.attr(one))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := h.r.Held(text); clean != text {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}
