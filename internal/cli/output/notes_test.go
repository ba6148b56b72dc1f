package output

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	var b strings.Builder
	log := slog.New(Notes(&b)).With("server", "files")
	log.Debug("not for people")
	log.Info("the server starts")
	log.Warn("the server does not start", "err", errors.New("no such file\nbeside it \x1b[31m"), "try", 2)
	log.WithGroup("x").Error("it failed", "why", "")
	want := "ken: the server starts (server files)\n" +
		"ken: warning: the server does not start: no such file beside it ⟨U+001B⟩[31m (server files, try 2)\n" +
		"ken: error: it failed (server files)\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
