//go:build linux

package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestUnixSockets: a tool that may make unix sockets connects its own processes
// with them, and reaches no socket of the machine. One that may not makes none,
// and without a root of its own none may.
func TestUnixSockets(t *testing.T) {
	testkit.Programs(t, "/usr/bin/python3")
	t.Parallel()
	python, err := filepath.EvalSymlinks("/usr/bin/python3")
	must(t, err)
	dir, err := os.MkdirTemp("", "sock") // a short name
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	outer := filepath.Join(dir, "daemon")
	l, err := net.Listen("unix", outer)
	must(t, err)
	defer l.Close()
	must(t, os.Chmod(outer, 0o777))
	const script = `import socket, sys
def tried(what, path):
    try:
        s = socket.socket(socket.AF_UNIX)
        if what == "own":
            s.bind(path)
            s.listen()
            first, s = s, socket.socket(socket.AF_UNIX)
        s.connect(path)
        print(what, "ok")
    except OSError as e:
        print(what, e.strerror)
tried("own", "/tmp/own")
tried("reach", sys.argv[1])
`
	spec := func(sockets bool) Spec {
		return Spec{Path: python, Args: []string{"python3", "-I", "-c", script, outer}, Work: inside(t), Require: BestEffort, Open: Open{UnixSockets: sockets}}
	}
	for _, egress := range []Egress{nil, noEgress{}} {
		s := spec(true)
		s.Egress = egress
		o, err := runIn(t.Context(), Full, s)
		if got := o.Stdout.Text(); err != nil || !strings.Contains(got, "own ok") || strings.Contains(got, "reach ok") {
			t.Errorf("with sockets, egress %v: %q %q, %v", egress, got, o.Stderr.Text(), err)
		}
		s.Open.UnixSockets = false
		o, err = runIn(t.Context(), Full, s)
		if got := o.Stdout.Text(); err != nil || !strings.Contains(got, "own Operation not permitted") || strings.Contains(got, " ok") {
			t.Errorf("without sockets, egress %v: %q, %v", egress, got, err)
		}
	}
	_, err = runIn(t.Context(), Landlock, spec(true))
	if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Layer != "sockets" {
		t.Errorf("with sockets in the landlock profile: %v, want a refusal", err)
	}
}
