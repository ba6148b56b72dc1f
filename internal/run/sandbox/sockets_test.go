//go:build linux

package sandbox

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnixSockets: a tool that may make unix sockets connects its own processes
// with them, and reaches no socket of the machine. One that may not makes none,
// and without a root of its own none may.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	python, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Skip("there is no python3: install the package python3")
	}
	dir, err := os.MkdirTemp("", "sock") // a short name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	outer := filepath.Join(dir, "daemon")
	l, err := net.Listen("unix", outer)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(outer, 0o777); err != nil {
		t.Fatal(err)
	}
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
	for _, egress := range []Egress{nil, refuseEgress{}} {
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
