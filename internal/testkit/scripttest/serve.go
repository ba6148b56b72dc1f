//go:build unix

package scripttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// Commands of scripts about "ken serve".

// A served is a "ken serve" that a script started.
type served struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when it has ended
	err  error         // with this, then
}

// serve ARGS…: starts "ken serve" on a free port and sets $URL, and $TOKEN and
// $PAGE, the link that signs in, where it wants one; the server is interrupted at
// the end of the script and must then stop cleanly.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve cannot be negated")
	}
	cmd := program(ts, append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	var hello struct{ URL, TokenFile, Page string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&hello); err != nil || hello.URL == "" {
		_ = cmd.Wait()
		ts.Fatalf("ken serve said nothing: %v\n%s", err, stderr.String())
	}
	running := &served{cmd: cmd, over: make(chan struct{})}
	go func() {
		running.err = cmd.Wait()
		close(running.over)
	}()
	of(ts).server = running
	ts.Defer(func() {
		if !ended(running.over) {
			_ = cmd.Process.Signal(syscall.SIGINT) // the process may be exiting already
		}
		if <-running.over; running.err != nil {
			failAtEnd(ts, "ken serve ended with %v\n%s", running.err, stderr.String())
		}
	})
	ts.Setenv("URL", hello.URL)
	ts.Setenv("PAGE", hello.Page)
	ts.Setenv("TOKEN", "")
	if hello.TokenFile != "" {
		ts.Setenv("TOKEN", strings.TrimSpace(ts.ReadFile(hello.TokenFile)))
	}
}

// get [-s STATUS] [-H NAME=VALUE]… URL: asks with the token of serve, unless a
// header says otherwise (Authorization= sends none). The body is in the file
// response. The status must be STATUS, or one of success; ! get: one of failure.
func get(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodGet, args)
}

// post [-s STATUS] [-H NAME=VALUE]… URL BODY: as get, with a body of JSON; @FILE
// is what a file holds. Of a stream of events the file response has the data of
// the last. The headers are in the file headers.
func post(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodPost, args)
}

// put [-s STATUS] [-H NAME=VALUE]… URL BODY: as post.
func put(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodPut, args)
}

// remove [-s STATUS] [-H NAME=VALUE]… URL: as get, with DELETE.
func remove(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodDelete, args)
}

func request(ts *testscript.TestScript, neg bool, method string, args []string) {
	req, want := requestOf(ts, method, args)
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	ts.Check(err)
	got = lastEvent(resp.Header.Get("Content-Type"), got)
	ts.Check(os.WriteFile(ts.MkAbs("response"), got, 0o644))
	var headers bytes.Buffer
	ts.Check(resp.Header.Write(&headers))
	ts.Check(os.WriteFile(ts.MkAbs("headers"), headers.Bytes(), 0o644))
	fine := (resp.StatusCode < 400) != neg
	if want != "" {
		fine = strconv.Itoa(resp.StatusCode) == want
	}
	if !fine {
		ts.Fatalf("%s %s: %s\n%s", method, req.URL, resp.Status, got)
	}
	// Whatever is no success says so in one way. Only MCP has one of its own.
	if resp.StatusCode >= 400 && !isMCP(req) && resp.Header.Get("Content-Type") != "application/problem+json" {
		ts.Fatalf("%s %s: %s is no problem document\n%s", method, req.URL, resp.Status, got)
	}
}

func isMCP(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/mcp") }

// requestOf makes a request of a command's arguments, and the status that it is
// to have.
func requestOf(ts *testscript.TestScript, method string, args []string) (req *http.Request, want string) {
	header := http.Header{"Authorization": {"Bearer " + ts.Getenv("TOKEN")}}
	if ts.Getenv("TOKEN") == "" {
		delete(header, "Authorization")
	}
	takesBody := method == http.MethodPost || method == http.MethodPut
	if takesBody {
		header.Set("Content-Type", "application/json")
	}
	for ; len(args) > 2 && (args[0] == "-H" || args[0] == "-s"); args = args[2:] {
		name, value, _ := strings.Cut(args[1], "=")
		switch {
		case args[0] == "-s":
			want = args[1]
		case value == "":
			header.Del(name)
		default:
			header.Set(name, value)
		}
	}
	if takesBody && len(args) != 2 || !takesBody && len(args) != 1 {
		ts.Fatalf("usage: [!] get|remove [-s STATUS] [-H NAME=VALUE]… URL, or post|put … URL BODY")
	}
	body := ""
	if takesBody {
		body = args[1]
	}
	if file, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(file)
	}
	req, err := http.NewRequest(method, args[0], strings.NewReader(body))
	ts.Check(err)
	if isMCP(req) && takesBody {
		header.Set("Accept", "application/json, text/event-stream")
	}
	req.Header, req.Host = header, header.Get("Host")
	return req, want
}

// lastEvent returns the data of the last event of a stream that has any.
func lastEvent(kind string, body []byte) []byte {
	if !strings.HasPrefix(kind, "text/event-stream") {
		return body
	}
	var last []byte
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && len(bytes.TrimSpace(data)) > 0 {
			last = data
		}
	}
	return last
}

// header NAME HEADER: puts a header of the last response into the environment.
func header(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: header NAME HEADER")
	}
	for line := range strings.Lines(ts.ReadFile("headers")) {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, args[1]) {
			ts.Setenv(args[0], strings.TrimSpace(value))
			return
		}
	}
	ts.Fatalf("the response has no header %s", args[1])
}

// interrupt: sends the server that was started last what Ctrl-C sends.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: interrupt")
	}
	ts.Check(serverOf(ts).cmd.Process.Signal(syscall.SIGINT))
}

// stopped [STATUS]: waits until the server that was started last has ended, with
// that status or well; with ! it has not.
func stopped(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) > 1 || neg && len(args) > 0 {
		ts.Fatalf("usage: [!] stopped [STATUS]")
	}
	s := serverOf(ts)
	if neg {
		if ended(s.over) {
			ts.Fatalf("ken serve has ended with %v", s.err)
		}
		return
	}
	if !testkit.Until(func() bool { return ended(s.over) }) {
		ts.Fatalf("ken serve does not end")
	}
	want := append(args, "0")[0]
	if got := statusOf(ts, s.err); got != want {
		ts.Fatalf("ken serve: status %s, want %s", got, want)
	}
	s.err = nil // it was looked at
}

func serverOf(ts *testscript.TestScript) *served {
	s := of(ts).server
	if s == nil {
		ts.Fatalf("nothing is served")
	}
	return s
}

// hold: from now on the model waits in the middle of each answer; ! hold: it
// goes on.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: [!] hold")
	}
	m := theModel(ts)
	if neg {
		if m.hold != nil {
			close(m.hold)
			m.hold = nil
		}
		return
	}
	hold := make(chan struct{})
	m.hold = hold
	m.mu.Lock()
	defer m.mu.Unlock()
	answers := m.answers
	m.answers = func(seen llmtest.Seen) llmtest.Reply {
		reply := answers(seen)
		reply.Hold = hold
		return reply
	}
}
