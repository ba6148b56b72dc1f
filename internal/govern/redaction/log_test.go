package redaction_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"ken/internal/govern/redaction"
	"ken/internal/secret"
)

// TestHandler: what is logged has no secret in it, wherever it stands.
func TestHandler(t *testing.T) {
	const value = "sealed-1a2b3c4d"
	r := redaction.New(secret.New(secret.Config{Dir: t.TempDir()}))
	var out bytes.Buffer
	log := slog.New(r.Handler(slog.NewJSONHandler(&out, nil)))
	log.Info("before", "text", value)
	if !strings.Contains(out.String(), value) {
		t.Errorf("before it was known: %s", &out)
	}
	out.Reset()
	r.Hold(value)
	err := errors.New("Post http://localhost/?key=" + value + ": refused")
	log.With("kept", value).WithGroup("g").Warn("message "+value, "text", "a "+value, "error", err, "list", []string{value},
		slog.Group("inner", "text", value), "count", 7, "plain", []string{"x"})
	text := out.String()
	if strings.Contains(text, value) || strings.Count(text, "[redacted]") != 6 || !strings.Contains(text, `"count":7`) || !strings.Contains(text, `"plain":["x"]`) {
		t.Errorf("logged: %s", text)
	}
}
