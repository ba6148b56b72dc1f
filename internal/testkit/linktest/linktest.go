//go:build unix

// Package linktest has MCP servers for tests of links: programs and others that do
// what no SDK would let one do.
package linktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/internal/run/mcpgateway/link"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Main is called first in TestMain: the test binary is the bad server, too.
func Main() {
	if mode := os.Getenv(serverEnv); mode != "" {
		serve(mode)
		os.Exit(0)
	}
}

// serverEnv makes this binary an MCP server that behaves badly in the way it
// names.
const serverEnv = "KEN_LINK_TEST_SERVER"

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

// Start starts the bad server in a mode.
func Start(mode string) func(context.Context) (link.Process, error) {
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

// InProcess runs run with the two ends a server has.
func InProcess(run func(in io.ReadCloser, out io.WriteCloser)) func(context.Context) (link.Process, error) {
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

// SDK runs a server of the SDK.
func SDK(s *mcp.Server) func(context.Context) (link.Process, error) {
	return InProcess(func(in io.ReadCloser, out io.WriteCloser) {
		_ = s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
	})
}

// hang waits as a server does that is stuck. Where all goroutines wait for each
// other, Go would end the program.
func hang() {
	for range time.Tick(time.Hour) {
	}
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

// A Line is a message as a hand-written server reads it.
type Line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Old speaks 2025-03-26 by hand, so that a test sees what is sent, and
// sends what it wants. handle is given all that the handshake leaves.
func Old(capabilities string, handle func(m Line, say func(format string, args ...any))) func(context.Context) (link.Process, error) {
	return InProcess(func(in io.ReadCloser, out io.WriteCloser) {
		say := func(format string, args ...any) {
			if fmt.Fprintf(out, format+"\n", args...); format == "" {
				_ = in.Close() // it is gone
			}
		}
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			var m Line
			if json.Unmarshal(lines.Bytes(), &m) != nil {
				continue
			}
			switch m.Method {
			case "server/discover":
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
			case "initialize":
				say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26","capabilities":%s,"serverInfo":{"name":"old","version":"1"}}}`, m.ID, capabilities)
				handle(m, say)
			default:
				handle(m, say)
			}
		}
	})
}

// Asker is a server that asks with a request in each call, and answers the call
// with what it is told.
func Asker(request string) func(context.Context) (link.Process, error) {
	var call json.RawMessage
	return Old(`{"tools":{}}`, func(m Line, say func(string, ...any)) {
		switch {
		case m.Method == "tools/call":
			call = m.ID
			say(`{"jsonrpc":"2.0","id":"r",%s}`, request)
		case string(m.ID) == `"r"`:
			say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, call, m.Result)
		}
	})
}

// NewAsker is a server of 2026-07-28, by hand, that asks with a form and then
// says what it heard.
func NewAsker(t testing.TB, form, state string) func(context.Context) (link.Process, error) {
	return InProcess(func(in io.ReadCloser, out io.WriteCloser) {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			var m struct {
				Line
				Params struct {
					InputResponses map[string]json.RawMessage `json:"inputResponses"`
					RequestState   string                     `json:"requestState"`
				} `json:"params"`
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Errorf("the server is sent %s: %v", lines.Bytes(), err)
			}
			if m.ID == nil {
				continue
			}
			res := map[string]any{"resultType": "complete"}
			switch {
			case m.Method == "server/discover":
				res["supportedVersions"], res["capabilities"] = []string{"2026-07-28"}, map[string]any{"tools": map[string]any{}}
			case m.Params.InputResponses["which"] == nil:
				res["resultType"], res["requestState"] = "input_required", state
				res["inputRequests"] = map[string]any{"which": map[string]any{
					"method": "elicitation/create", "params": map[string]any{"message": "?", "requestedSchema": json.RawMessage(form)}}}
			default:
				heard := string(m.Params.InputResponses["which"]) + " " + m.Params.RequestState
				res["content"] = []any{map[string]any{"type": "text", "text": heard}}
			}
			text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": res})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(out, "%s\n", text)
		}
	})
}
