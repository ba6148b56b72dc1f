package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands of scripts about "ken serve".

// serve ARGS…: starts "ken serve" on a free port and sets $URL, and $TOKEN where
// it wants one; the server is interrupted at the end of the script and must then
// stop cleanly.
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
	var hello struct{ URL, TokenFile string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&hello); err != nil {
		_ = cmd.Wait()
		ts.Fatalf("ken serve said nothing: %v\n%s", err, stderr.String())
	}
	ts.Defer(func() {
		ts.Check(cmd.Process.Signal(syscall.SIGINT))
		if err := cmd.Wait(); err != nil {
			ts.Fatalf("ken serve ended with %v\n%s", err, stderr.String())
		}
	})
	ts.Setenv("URL", hello.URL)
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

// post [-s STATUS] [-H NAME=VALUE]… URL BODY: as get. Of a stream of events the
// file response has the data of the last. The headers are in the file headers.
func post(ts *testscript.TestScript, neg bool, args []string) {
	request(ts, neg, http.MethodPost, args)
}

func request(ts *testscript.TestScript, neg bool, method string, args []string) {
	header := http.Header{"Authorization": {"Bearer " + ts.Getenv("TOKEN")}}
	if ts.Getenv("TOKEN") == "" {
		delete(header, "Authorization")
	}
	want := ""
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
	body := ""
	if method == http.MethodPost {
		if len(args) != 2 {
			ts.Fatalf("usage: [!] post [-s STATUS] [-H NAME=VALUE]… URL BODY")
		}
		body, args = args[1], args[:1]
		header.Set("Content-Type", "application/json")
		header.Set("Accept", "application/json, text/event-stream")
	}
	if len(args) != 1 {
		ts.Fatalf("usage: [!] get [-s STATUS] [-H NAME=VALUE]… URL")
	}
	req, err := http.NewRequest(method, args[0], strings.NewReader(body))
	ts.Check(err)
	req.Header, req.Host = header, header.Get("Host")
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
		ts.Fatalf("%s %s: %s\n%s", method, args[0], resp.Status, got)
	}
}

// lastEvent gives the data of the last event of a stream that has any.
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
