//go:build unix

package scripttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/serve/shim"
	"ken/internal/testkit"
	"time"
)

// Commands of scripts about MCP clients. They read and write what is on the
// wire by hand, so that a script says exactly what a client would see.

// A client is a "ken mcp" that a script talks to.
type client struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bytes.Buffer
	read   chan struct{} // closed when it says no more

	mu      sync.Mutex
	last    int
	replies map[string]json.RawMessage // by id
	heard   []string                   // methods of notifications
	says    []string                   // what the person answers, next first
	asked   []json.RawMessage          // what the person was asked
	faults  []error
}

func clientOf(ts *testscript.TestScript, name string) *client {
	c := of(ts).clients[name]
	if c == nil {
		ts.Fatalf("there is no client %q", name)
	}
	return c
}

// mcp NAME [-v VERSION] [-as CLIENT] [-person] ARGS…: starts "ken mcp ARGS…" in
// the current folder and begins a session of that version, as that client, with
// a person who can be asked or without. With -v none nothing is said first. The
// answer to initialize is in the file answer.
func mcpClient(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: mcp NAME [-v VERSION] [-as CLIENT] [-person] ARGS…")
	}
	name, version, as, caps := args[0], "2025-06-18", "script", "{}"
	args = args[1:]
	for len(args) > 0 {
		switch {
		case args[0] == "-v" && len(args) > 1:
			version, args = args[1], args[2:]
			continue
		case args[0] == "-as" && len(args) > 1:
			as, args = args[1], args[2:]
			continue
		case args[0] == "-person":
			caps, args = `{"elicitation":{}}`, args[1:]
			continue
		}
		break
	}
	if of(ts).clients[name] != nil {
		ts.Fatalf("there is a client %q already", name)
	}
	c := startClient(ts, slices.Contains(args, "--standalone"), append([]string{"mcp"}, args...))
	of(ts).clients[name] = c
	if version == "none" {
		return
	}
	reply := c.ask(ts, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":%q,"version":"1"}}`, version, caps, as))
	if bytes.Contains(reply, []byte(`"error":`)) {
		ts.Fatalf("initialize: %s", reply)
	}
	ts.Check(c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

func startClient(ts *testscript.TestScript, alone bool, args []string) *client {
	c := &client{cmd: program(ts, args...), read: make(chan struct{}), replies: map[string]json.RawMessage{}}
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	ts.Check(err)
	out, err := c.cmd.StdoutPipe()
	ts.Check(err)
	c.in = in
	if !alone {
		place := placeOf(ts)
		ts.Defer(func() {
			for _, other := range of(ts).clients { // one that stays would start another
				_ = other.cmd.Process.Kill()
			}
			endDaemon(ts, place)
		})
	}
	ts.Check(c.cmd.Start())
	ts.Defer(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
		}
	})
	go c.listen(out)
	return c
}

// listen keeps what comes, and answers what is asked.
func (c *client) listen(out io.Reader) {
	defer close(c.read)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			c.hear(line)
		}
		if err != nil {
			return
		}
	}
}

// personTime is how long a person reads a question. Ken takes a faster answer for
// the client's own.
const personTime = 1200 * time.Millisecond

func (c *client) hear(line []byte) {
	var m struct {
		Version string `json:"jsonrpc"`
		ID      json.RawMessage
		Method  string
		Params  json.RawMessage
	}
	err := json.Unmarshal(line, &m)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil || m.Version != "2.0":
		c.faults = append(c.faults, fmt.Errorf("this is no MCP: %q", line))
	case m.Method == "":
		c.replies[string(m.ID)] = bytes.Clone(line)
	case len(m.ID) == 0:
		c.heard = append(c.heard, m.Method)
	case m.Method == "elicitation/create" && len(c.says) > 0:
		c.asked = append(c.asked, m.Params)
		word := c.says[0]
		c.says = c.says[1:]
		result, thinks := fmt.Sprintf(`{"action":"accept","content":{"decision":%q}}`, word), personTime
		if word == "decline" || word == "cancel" {
			result, thinks = fmt.Sprintf(`{"action":%q}`, word), 0
		}
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		time.AfterFunc(thinks, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.faults = append(c.faults, c.write(line))
		})
	default:
		c.faults = append(c.faults, fmt.Errorf("nobody answers %s", line))
		c.faults = append(c.faults, c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)))
	}
}

func (c *client) write(line string) error {
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// send makes a request and gives its id.
func (c *client) send(ts *testscript.TestScript, method, params string) (id string) {
	c.mu.Lock()
	c.last++
	id = strconv.Itoa(c.last)
	c.asked = nil
	c.mu.Unlock()
	ts.Check(c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)))
	return id
}

// ask makes a request and puts the answer into the file answer, and what the
// person was asked meanwhile into the file asked.
func (c *client) ask(ts *testscript.TestScript, method, params string) json.RawMessage {
	return c.answer(ts, c.send(ts, method, params), method+" "+params)
}

// answer waits for the answer to a request.
func (c *client) answer(ts *testscript.TestScript, id, what string) json.RawMessage {
	var reply json.RawMessage
	var asked []json.RawMessage
	var faults error
	there := testkit.Until(func() bool {
		over := ended(c.read)
		c.mu.Lock()
		defer c.mu.Unlock()
		reply, asked, faults = c.replies[id], c.asked, errors.Join(c.faults...)
		return reply != nil || over
	})
	if !there || reply == nil {
		ts.Fatalf("%s has no answer; %v\n%s", what, faults, c.stderrNow())
	}
	ts.Check(faults)
	ts.Check(os.WriteFile(ts.MkAbs("answer"), reply, 0o644))
	all, err := json.Marshal(append([]json.RawMessage{}, asked...))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("asked"), all, 0o644))
	return reply
}

// stderrNow returns what the program said, once it has ended.
func (c *client) stderrNow() string {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	return c.stderr.String()
}

// call [-until|-while PATTERN] NAME METHOD [PARAMS]: makes a request. The answer is in
// the file answer and, where it is of a tool, its text is stdout. It must
// succeed; ! call: it must be an error, or the tool must have failed. With -until
// it is made again until the answer is like that, with -while as long as it is.
func call(ts *testscript.TestScript, neg bool, args []string) {
	pattern, want := regexp.MustCompile(""), true
	if len(args) > 2 && (args[0] == "-until" || args[0] == "-while") {
		var err error
		want = args[0] == "-until"
		pattern, err = regexp.Compile(args[1])
		ts.Check(err)
		args = args[2:]
	}
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: [!] call [-until|-while PATTERN] NAME METHOD [PARAMS]")
	}
	params := "{}"
	if len(args) == 3 {
		params = args[2]
	}
	c := clientOf(ts, args[0])
	var reply json.RawMessage
	if !testkit.Until(func() bool { reply = c.ask(ts, args[1], params); return pattern.Match(reply) == want }) {
		ts.Fatalf("call %s = %s; want that it matches %q: %t", strings.Join(args, " "), reply, pattern, want)
	}
	text, failed := said(reply)
	_, _ = io.WriteString(ts.Stdout(), text)
	if failed != neg {
		ts.Fatalf("call %s = %s", strings.Join(args, " "), reply)
	}
}

// send NAME METHOD [PARAMS]: makes a request as call does, and does not wait for
// its answer. $SENT is its id.
func send(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: send NAME METHOD [PARAMS]")
	}
	params := "{}"
	if len(args) == 3 {
		params = args[2]
	}
	ts.Setenv("SENT", clientOf(ts, args[0]).send(ts, args[1], params))
}

// answers NAME ID: waits for the answer to what was sent, as call does.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] answers NAME ID")
	}
	reply := clientOf(ts, args[0]).answer(ts, args[1], "request "+args[1])
	text, failed := said(reply)
	_, _ = io.WriteString(ts.Stdout(), text)
	if failed != neg {
		ts.Fatalf("answers %s = %s", strings.Join(args, " "), reply)
	}
}

// said returns the text of an answer, and whether it is an error.
func said(reply []byte) (text string, failed bool) {
	var m struct {
		Error  *struct{ Message string }
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		return err.Error(), true
	}
	if m.Error != nil {
		return m.Error.Message + "\n", true
	}
	for _, part := range m.Result.Content {
		text += part.Text + "\n"
	}
	return text, m.Result.IsError
}

// says NAME ANSWER…: what the person at a client answers next, in order: a
// decision, decline or cancel. Whatever is asked beyond that is a mistake.
func says(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: says NAME ANSWER…")
	}
	c := clientOf(ts, args[0])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says = append(c.says, args[1:]...)
}

// told NAME METHOD waits until a client has had such a notification, and
// forgets those that it had.
func told(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: told NAME METHOD")
	}
	c := clientOf(ts, args[0])
	if !testkit.Until(func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.Contains(c.heard, args[1]) {
			return false
		}
		c.heard = nil
		return true
	}) {
		ts.Fatalf("%s was never told %s", args[0], args[1])
	}
}

// leave NAME: the client closes its end, and "ken mcp" must end well.
// ! leave NAME: it ends by itself, and not well. What it said is stderr.
func leave(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] leave NAME")
	}
	c := clientOf(ts, args[0])
	delete(of(ts).clients, args[0])
	if !neg {
		ts.Check(c.in.Close())
	}
	if !testkit.Until(func() bool { return ended(c.read) }) {
		ts.Fatalf("ken mcp does not end\n%s", c.stderrNow())
	}
	err := c.cmd.Wait()
	_, _ = io.WriteString(ts.Stderr(), c.stderr.String())
	if (err != nil) != neg {
		ts.Fatalf("ken mcp ended with %v\n%s", err, c.stderr.String())
	}
	if len(c.says) > 0 {
		ts.Fatalf("%s was never asked for %q", args[0], c.says)
	}
}

// placeOf says where the daemon of a script is met.
func placeOf(ts *testscript.TestScript) shim.Place {
	place, err := shim.Where(ts.Getenv, ts.MkAbs("."))
	ts.Check(err)
	return place
}

// daemon waits until the daemon that listens serves so many and sets $DAEMON to
// its process id.
func daemonIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: daemon CLIENTS")
	}
	place := placeOf(ts)
	var g shim.Greeting
	var err error
	if !testkit.Until(func() bool { g, err = shim.Ask(place); return err == nil && strconv.Itoa(g.Clients) == args[0] }) {
		ts.Fatalf("the daemon serves %d, %v; want %s", g.Clients, err, args[0])
	}
	ts.Setenv("DAEMON", strconv.Itoa(g.PID))
}

// signal KILL|TERM PID ends a process that the script started, and waits until
// it is gone.
func signal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal KILL|TERM PID")
	}
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	if pid < 2 {
		ts.Fatalf("%d is nobody's process", pid)
	}
	sig := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}[args[0]]
	ts.Check(syscall.Kill(pid, sig))
	if !testkit.Until(func() bool { return isGone(pid) }) {
		ts.Fatalf("%d does not end", pid)
	}
}

// isGone reports whether a process has ended, whether or not anybody has asked.
func isGone(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

// endDaemon ends the daemon that a script has left.
func endDaemon(ts *testscript.TestScript, place shim.Place) {
	g, err := shim.Ask(place)
	if err != nil {
		return
	}
	if err := syscall.Kill(g.PID, syscall.SIGTERM); err == nil && !testkit.Until(func() bool { return isGone(g.PID) }) {
		failAtEnd(ts, "the daemon does not end")
	}
}
