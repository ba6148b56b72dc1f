//go:build unix

package link_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// serverEnv makes this binary an MCP server that behaves badly in the way it
// names.
const serverEnv = "KEN_LINK_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(serverEnv); mode != "" {
		serve(mode)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A child is a real process as a [link.Process].
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	stderr lockedBuffer
	done   chan struct{}
	err    error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(mode string) func(context.Context) (link.Process, error) {
	return func(context.Context) (link.Process, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), serverEnv+"="+mode)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c := &child{cmd: cmd, done: make(chan struct{})}
		cmd.Stderr = &c.stderr
		if c.in, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		c.out, cmd.Stdout = r, w
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		_ = w.Close()
		go func() {
			c.err = cmd.Wait()
			close(c.done)
		}()
		return c, nil
	}
}

func (c *child) Stdin() io.WriteCloser { return c.in }
func (c *child) Stdout() io.Reader     { return c.out }
func (c *child) Done() <-chan struct{} { return c.done }
func (c *child) Stderr() string        { return c.stderr.String() }
func (c *child) Pid() int              { return c.cmd.Process.Pid }

func (c *child) Err() error { return c.err }

func (c *child) Close() error {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-c.done
	return nil
}

// A pipe is a server in this process as a [link.Process].
type pipe struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan struct{}
	once sync.Once
	also func()
}

func (p *pipe) Stdin() io.WriteCloser { return p.in }
func (p *pipe) Stdout() io.Reader     { return p.out }
func (p *pipe) Done() <-chan struct{} { return p.done }
func (p *pipe) Stderr() string        { return "" }

func (p *pipe) Close() error {
	p.once.Do(func() {
		_ = p.in.Close()
		_ = p.out.CloseWithError(io.EOF)
		p.also()
		close(p.done)
	})
	return nil
}

// inProcess runs run with the two ends a server has.
func inProcess(run func(in io.ReadCloser, out io.WriteCloser)) func(context.Context) (link.Process, error) {
	return func(context.Context) (link.Process, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			run(inR, outW)
			_ = inR.Close()
			_ = outW.Close()
		})
		return &pipe{in: inW, out: outR, done: make(chan struct{}), also: wg.Wait}, nil
	}
}

// sdkServer runs an SDK server; old makes it speak 2025-11-25 at most.
func sdkServer(s *mcp.Server) func(context.Context) (link.Process, error) {
	return inProcess(func(in io.ReadCloser, out io.WriteCloser) {
		_ = s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
	})
}

func newServer(old bool) *mcp.Server {
	var opts mcp.ServerOptions
	if old {
		opts.SupportedProtocolVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	}
	return mcp.NewServer(&mcp.Implementation{Name: "tester", Title: "The Tester", Version: "1.2"}, &opts)
}

func open(t testing.TB, cfg link.Config) *link.Link {
	t.Helper()
	cfg.Name = "tester"
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	l, err := link.Open(ctx, cfg)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// hang waits as a server does that is stuck. Where all goroutines wait for each
// other, Go would end the program.
func hang() {
	for range time.Tick(time.Hour) {
	}
}

// to opens a link to a server.
func to(t testing.TB, start func(context.Context) (link.Process, error)) *link.Link {
	t.Helper()
	return open(t, link.Config{Target: link.Target{Start: start}})
}

func wantText(t *testing.T, l *link.Link, call capability.Call, tool, want string) {
	t.Helper()
	if res, err := l.Call(soon(t), call, tool); err != nil || textOf(res) != want {
		t.Errorf("Call(%s) = %v, %v, want %s", tool, res, err, want)
	}
}

// wantErr fails unless an error is of a kind and says some words. None is long or
// has an escape of a terminal.
func wantErr(t *testing.T, what string, err error, kind capability.ErrorKind, says ...string) {
	t.Helper()
	if err == nil || capability.KindOf(err) != kind || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%s: error = %v, want %v", what, err, kind)
		return
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want it to say %q", what, err, want)
		}
	}
}

func callOf(args string) capability.Call {
	return capability.Call{Target: "mcp:tester/x", Arguments: json.RawMessage(args), Principal: capability.Principal{ID: "ann"}}
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func textOf(res capability.Result) string {
	var all []string
	for _, p := range res.Parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "|")
}

func inquiryOf(t *testing.T, err error) *capability.Inquiry {
	t.Helper()
	q, ok := errors.AsType[*capability.Inquiry](err)
	if !ok || capability.KindOf(err) != capability.InputNeeded {
		t.Fatalf("error = %v, want an inquiry", err)
	}
	return q
}

// serve is the bad server. It is hand-written: the SDK's would not do this.
func serve(mode string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	say := func(format string, args ...any) {
		fmt.Fprintf(out, format+"\n", args...)
		_ = out.Flush()
	}
	if mode == "noise" {
		say("\uFEFFstarting up…\r\n\r\n   \nListening {not json}\n[1,2,3]\n{\"hello\":\"world\"}\n{\"jsonrpc\":\"2.0\"}")
	}
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name   string `json:"name"`
				Cursor string `json:"cursor"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch m.Method {
		case "server/discover":
			switch mode {
			case "dies of discover":
				os.Exit(3)
			case "hangs at initialize", "ignores discover":
				continue
			}
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
		case "initialize":
			switch mode {
			case "hangs at initialize":
				continue
			case "dies at initialize":
				fmt.Fprintln(os.Stderr, "no such database: \x1b[31mprod\x1b[0m")
				os.Exit(7)
			case "speaks another version":
				say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2099-01-01","capabilities":{},"serverInfo":{"name":"bad","version":"1"}}}`, m.ID)
				continue
			}
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bad","version":"1"}}}`+"\r", m.ID)
		case "tools/list":
			serveList(mode, m.ID, m.Params.Cursor, say)
		case "tools/call":
			serveCall(mode, m.Params.Name, m.ID, say)
		case "ping":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
	}
}

func serveList(mode string, id json.RawMessage, cursor string, say func(string, ...any)) {
	page := func(tools []string, next string) {
		say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s],"nextCursor":%q}}`, id, strings.Join(tools, ","), next)
	}
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"%s}}`, name, more)
	}
	switch mode {
	case "ten thousand tools":
		tools := make([]string, 12_000)
		for i := range tools {
			tools[i] = tool(fmt.Sprintf("tool_%d", i), "")
		}
		page(tools, "")
	case "odd tools":
		page([]string{
			tool("twice", `,"title":"first"`), tool("twice", `,"title":"second"`), tool("", ""), "null",
			tool(strings.Repeat("n", 300), ""),
			tool("marked", `,"properties":{"o":{"type":"object","x-mcp-header":"O"}}`),
			tool("schema", `,"description":"`+strings.Repeat("d", 85<<10)+`"`),
		}, "")
	case "same cursor":
		page([]string{tool("a"+cursor, "")}, "again")
	case "endless cursors":
		page([]string{tool(fmt.Sprintf("a%d", len(cursor)), "")}, cursor+"x")
	default:
		page([]string{tool("echo", "")}, "")
	}
}

func serveCall(mode, name string, id json.RawMessage, say func(string, ...any)) {
	ok := func(text string) {
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
	}
	switch name {
	case "hang":
	case "die":
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(9)
	case "flood stdout":
		for range 50_000 {
			say("debug: still here")
		}
		ok("done")
	case "flood notifications":
		for range 20_000 {
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			say(`{"jsonrpc":"2.0","method":"notifications/made/up","params":{"x":1}}`)
		}
		ok("done")
	case "flood requests":
		for i := range 20_000 {
			say(`{"jsonrpc":"2.0","id":"r%d","method":"elicitation/create","params":{"message":"?"}}`, i)
		}
		ok("done")
	case "invalid":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[`, id)
		say(`{"jsonrpc":"1.0","id":%s,"result":{}}`, id)
		ok("after")
	case "wrong shape":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":"a string"}}`, id)
	case "huge":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, strings.Repeat("h", 50<<20))
	case "huge backwards":
		say(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`, strings.Repeat("h", 50<<20), id)
	case "huge unknown":
		say(`{"result":{"content":[{"type":"text","text":"%s"}]},"id":%s,"zzz":"%s"}`, strings.Repeat("h", 50<<20), id, strings.Repeat("z", 2000))
	case "endless":
		fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s`, id, strings.Repeat("h", 17<<20))
		hang() // the line never ends
	case "endless unknown":
		fmt.Fprintf(os.Stdout, `{"result":{"content":[{"type":"text","text":"%s`, strings.Repeat("h", 65<<20))
		hang()
	case "deep":
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":%s%s}}`, id, strings.Repeat("[", 20_000), strings.Repeat("]", 20_000))
	case "deep backwards":
		say(`{"result":{"content":%s%s},"jsonrpc":"2.0","id":%s}`, strings.Repeat("[", 20_000), strings.Repeat("]", 20_000), id)
	case "deep unknown":
		say(`{"result":{"content":%s%s},"id":%s,"zzz":"%s"}`, strings.Repeat("[", 20_000), strings.Repeat("]", 20_000), id, strings.Repeat("z", 2000))
	case "deep batch":
		say(`[{"jsonrpc":"2.0","id":%s,"result":%s%s}]`, id, strings.Repeat("[", 20_000), strings.Repeat("]", 20_000))
	case "huge batch":
		say(`[%s{"jsonrpc":"2.0","id":%s,"result":{}}]`, strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 10_000), id)
	case "batch":
		say(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"batched"}]}}]`, id)
	case "slow reader":
		hang() // it reads nothing any more
	default:
		ok(mode)
	}
}
