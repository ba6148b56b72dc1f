package mcpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
)

const (
	// exitTime is how long a server may take to end once its input is closed,
	// as the protocol has it; then it is stopped.
	exitTime = 500 * time.Millisecond

	// termTime is between being asked to end and being killed.
	termTime = 2 * time.Second

	// mostStderr is how much is kept of what a server says on standard error.
	mostStderr = 8 << 10
)

// A process is a running stdio server. It is a link.Process.
type process struct {
	tool   *sandbox.Process
	in     *os.File
	out    *os.File
	errs   *tail
	hide   func(string) string
	cancel context.CancelFunc
	once   sync.Once

	isolation json.RawMessage // that holds it
	held      string          // the same
}

// launch starts a server in its sandbox. The process is the caller's to close;
// it ends with ctx as well.
func (g *Gateway) launch(ctx context.Context, def *Server) (*process, error) {
	x := g.expander(def)
	c, err := x.command(def, g.cfg.Path)
	if err != nil {
		return nil, err
	}
	spec, err := g.spec(def, c)
	if err != nil {
		return nil, err
	}
	defer spec.Work.Close()
	var in, out *os.File
	if spec.StdinFile, in, err = os.Pipe(); err != nil {
		return nil, err
	}
	defer spec.StdinFile.Close()
	if out, spec.StdoutFile, err = os.Pipe(); err != nil {
		in.Close()
		return nil, err
	}
	defer spec.StdoutFile.Close()
	p := &process{in: in, out: out, errs: &tail{}, hide: x.hide}
	spec.Stderr = p.errs
	ctx, p.cancel = context.WithCancel(ctx)
	if p.tool, err = sandbox.Start(ctx, spec); err != nil {
		p.cancel()
		in.Close()
		out.Close()
		return nil, errors.New(x.hide(err.Error()))
	}
	p.isolation, _ = json.Marshal(p.tool.Isolation()) // plain data cannot fail
	p.held = string(p.isolation)
	return p, nil
}

// spec makes out how a server is held. Its Work is the caller's to close.
func (g *Gateway) spec(def *Server, c command) (sandbox.Spec, error) {
	dir := c.dir
	if dir == "" {
		if g.cfg.Work == "" {
			return sandbox.Spec{}, errors.New("missing cwd, and no default folder for servers is configured")
		}
		dir = filepath.Join(g.cfg.Work, fileName(def.Name))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return sandbox.Spec{}, fmt.Errorf("create the server's folder: %w", err)
		}
	}
	for _, own := range g.cfg.Hide { // what is not there cannot be hidden, and a server could make it
		if err := os.MkdirAll(own, 0o700); err != nil {
			return sandbox.Spec{}, fmt.Errorf("hide Ken's own folders: %w", err)
		}
	}
	limits := g.cfg.Limits
	limits.Wall, limits.CPU, limits.Grace = -1, -1, termTime
	limits.Output, limits.OutputStop = 1<<10, -1
	spec := sandbox.Spec{
		Path: c.path, Args: c.argv, Env: c.env, Limits: limits, Require: g.cfg.Require,
		Open: g.open(def),
	}
	if def.Profile != ProfileImported {
		if closed, ok := errors.AsType[*sandbox.ClosedError](sandbox.Reachable(c.path, g.cfg.Require)); ok {
			return spec, fmt.Errorf("%w; %s", closed, closed.Fix())
		}
		spec.Read, spec.Write = def.Read, def.Write
		if len(def.Hosts) > 0 {
			proxy, err := egress.New(egress.Config{Allow: def.Hosts, Networks: def.Networks})
			if err != nil {
				return spec, fmt.Errorf("hosts: %w", err)
			}
			spec.Egress = proxy
		}
	}
	var err error
	if spec.Work, err = os.OpenRoot(dir); err != nil {
		return spec, fmt.Errorf("open the server's folder: %w", err)
	}
	return spec, nil
}

// open says what a server is left of the machine. A grant that would show Ken's own
// folders is refused by the sandbox.
func (g *Gateway) open(def *Server) sandbox.Open {
	imported := def.Profile == ProfileImported
	return sandbox.Open{Files: imported, Network: imported, Hide: slices.Concat(g.cfg.Hide, g.cfg.HideFiles)}
}

// fileName makes a name fit for a folder.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

func (p *process) Stdin() io.WriteCloser { return p.in }

func (p *process) Stdout() io.Reader { return p.out }

func (p *process) Done() <-chan struct{} { return p.tool.Done() }

func (p *process) Pid() int { return p.tool.Pid() }

// Stderr returns the last of what the server said there, without the values that
// were put into its definition.
func (p *process) Stderr() string { return p.hide(p.errs.text()) }

// Err says how the process ended; nil while it runs.
func (p *process) Err() error {
	select {
	case <-p.tool.Done():
	default:
		return nil
	}
	o, err := p.tool.Wait()
	switch {
	case err != nil:
		return errors.New(p.hide(err.Error()))
	case o.End == sandbox.Exited:
		return fmt.Errorf("exit status %d", o.ExitCode)
	case o.Limit != "":
		return fmt.Errorf("%s, at its limit of %s", o.Signal, o.Limit)
	case o.Signal != "":
		return errors.New(o.Signal)
	}
	return errors.New(string(o.End))
}

// Close ends the process and all that it started: by closing its input, then by
// force.
func (p *process) Close() error {
	p.once.Do(func() {
		p.in.Close()
		timer := time.NewTimer(exitTime)
		defer timer.Stop()
		select {
		case <-p.tool.Done():
		case <-timer.C:
		}
		p.cancel()
		<-p.tool.Done()
		p.out.Close()
	})
	return nil
}

// A tail keeps the end of what is written to it. Its zero value is empty. It is
// safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if len(b) > mostStderr {
		b, t.cut = b[len(b)-mostStderr:], true
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - mostStderr; over > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
	return n, nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.buf
	for t.cut && len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	out := strings.ToValidUTF8(string(text), "\uFFFD")
	if t.cut {
		out = "[…] " + out
	}
	return out
}
