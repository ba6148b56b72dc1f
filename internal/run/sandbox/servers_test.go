//go:build linux

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// npm is the folder with the node_modules that the tests of real servers use.
func npm(t testing.TB, script string) (node, path string) {
	t.Helper()
	dir := os.Getenv("KEN_NPM")
	if dir == "" {
		t.Skip("KEN_NPM is not set")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("cannot here: no node")
	}
	path = filepath.Join(dir, "node_modules", script)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("cannot here: %v", err)
	}
	return node, path
}

// server is a spec for a server that runs as it ran before.
func server(t testing.TB, program string, args ...string) Spec {
	t.Helper()
	home, err := os.MkdirTemp("", "srv") // a short name: servers make sockets below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return Spec{
		Path: program, Args: append([]string{filepath.Base(program)}, args...), Dir: home, Require: BestEffort,
		Env:    []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH")},
		Open:   Open{Files: true, Network: true, Hide: []string{t.TempDir()}},
		Limits: Limits{Wall: -1, CPU: -1, Memory: -1, Processes: -1, OpenFiles: 65536, FileSize: -1, Output: 64 << 10, OutputStop: -1, Grace: 5 * time.Second},
	}
}

// call makes one JSON-RPC request and returns its result, past what the server
// says unasked.
func (c *conversation) call(id int, method, params string) (json.RawMessage, error) {
	line, err := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	for err == nil {
		var m struct {
			ID     *int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.ID != nil && *m.ID == id {
			if m.Error != nil {
				return nil, fmt.Errorf("%s: %s", method, m.Error)
			}
			return m.Result, nil
		}
		line, err = c.out.ReadString('\n')
	}
	return nil, err
}

const initialize = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`

// greet initializes a server and returns the names of its tools.
func (c *conversation) greet() (tools []string, err error) {
	if _, err := c.call(1, "initialize", initialize); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return nil, err
	}
	raw, err := c.call(2, "tools/list", "{}")
	if err != nil {
		return nil, err
	}
	var list struct{ Tools []struct{ Name string } }
	err = json.Unmarshal(raw, &list)
	for _, tool := range list.Tools {
		tools = append(tools, tool.Name)
	}
	return tools, err
}

// TestServers: published servers start and list their tools as they ever did.
func TestServers(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, script, tool string }{
		{"everything", "@modelcontextprotocol/server-everything/dist/index.js", "echo"},
		{"filesystem", "@modelcontextprotocol/server-filesystem/dist/index.js", "read_text_file"},
		{"memory", "@modelcontextprotocol/server-memory/dist/index.js", "create_entities"},
		{"playwright", "@playwright/mcp/cli.js", "browser_navigate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node, script := npm(t, tt.script)
			eachProfile(t, func(t *testing.T, p Profile) {
				s := server(t, node, script)
				if tt.name == "filesystem" {
					s.Args = append(s.Args, s.Dir)
				}
				var stderr strings.Builder
				s.Stderr = &stderr
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c := converse(t, ctx, p, s)
				tools, err := c.greet()
				if err != nil || !slices.Contains(tools, tt.tool) {
					cancel()
					o, _ := c.Wait()
					t.Fatalf("greet = %q, %v, want %s among them (%s %d %s)\n%s", tools, err, tt.tool, o.End, o.ExitCode, o.Signal, stderr.String())
				}
				cancel()
				if o, err := c.Wait(); o.End != Cancelled || err != nil {
					t.Errorf("Wait = %s, %v, want cancelled", o.End, err)
				}
			})
		})
	}
}

// TestServerFiles: a server reads and writes files of the person's, and not
// those that are hidden.
func TestServerFiles(t *testing.T) {
	node, script := npm(t, "@modelcontextprotocol/server-filesystem/dist/index.js")
	s := server(t, node, script)
	s.Args = append(s.Args, s.Dir)
	hidden := filepath.Join(s.Dir, ".ken")
	if err := os.Mkdir(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(hidden, "key"), filepath.Join(s.Dir, "note")} {
		if err := os.WriteFile(name, []byte("s3cret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Open.Hide = []string{hidden}
	c := converse(t, t.Context(), Full, s)
	if _, err := c.greet(); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		tool, args, want string
	}{
		{"read_text_file", fmt.Sprintf(`{"path":%q}`, s.Dir+"/note"), "s3cret"},
		{"read_text_file", fmt.Sprintf(`{"path":%q}`, hidden+"/key"), "ENOENT"},
		{"write_file", fmt.Sprintf(`{"path":%q,"content":"evil"}`, hidden+"/key"), "EROFS"},
		{"write_file", fmt.Sprintf(`{"path":%q,"content":"new"}`, s.Dir+"/made"), "Successfully"},
	} {
		got, err := c.call(10+i, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tt.tool, tt.args))
		if err != nil || !strings.Contains(string(got), tt.want) {
			t.Errorf("%s(%s) = %s, %v, want %s", tt.tool, tt.args, got, err, tt.want)
		}
	}
}

// TestServerBrowser: a server that starts a browser opens a page of this
// machine with it.
func TestServerBrowser(t *testing.T) {
	t.Parallel()
	node, script := npm(t, "@playwright/mcp/cli.js")
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("cannot here: no chromium")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<title>harbour</title><h1>the ships are in</h1>")
	}))
	defer page.Close()
	for _, p := range held {
		t.Run(string(p), func(t *testing.T) {
			args := []string{script, "--headless", "--isolated", "--executable-path", browser}
			if os.Getuid() == 0 {
				args = append(args, "--no-sandbox") // as a browser of root needs it
			}
			s := server(t, node, args...)
			var stderr strings.Builder
			s.Stderr = &stderr
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			c := converse(t, ctx, p, s)
			if _, err := c.greet(); err != nil {
				t.Fatal(err)
			}
			got, err := c.call(3, "tools/call", fmt.Sprintf(`{"name":"browser_navigate","arguments":{"url":%q}}`, page.URL))
			if err != nil || !strings.Contains(string(got), "harbour") {
				t.Errorf("browser_navigate = %.2000s, %v, want the page\n%.2000s", got, err, stderr.String())
			}
		})
	}
}

// BenchmarkRoundTrip exchanges a line of 300 bytes with cat, by turns as a
// plain child with pipes and as a sandboxed one with its streams as files.
func BenchmarkRoundTrip(b *testing.B) {
	line := strings.Repeat("x", 300)
	in, out := plainCat(b)
	plain := &conversation{in: in, out: bufio.NewReaderSize(out, 1<<20)}
	confined := converse(b, b.Context(), Full, Spec{Path: "/bin/cat", Args: []string{"cat"}, Dir: "/", Require: BestEffort,
		Open: Open{Files: true, Network: true}, Limits: Limits{Wall: -1, CPU: -1}})
	kinds := []struct {
		name string
		c    *conversation
		took []time.Duration
		cpu  time.Duration
	}{{name: "plain", c: plain}, {name: "open", c: confined}}
	for b.Loop() {
		for i := range kinds {
			before := cpuTime(b)
			for range 200 {
				begun := time.Now()
				if got, err := kinds[i].c.ask(line); err != nil || len(got) != 301 {
					b.Fatalf("%s: ask = %d bytes, %v", kinds[i].name, len(got), err)
				}
				kinds[i].took = append(kinds[i].took, time.Since(begun))
			}
			kinds[i].cpu += cpuTime(b) - before
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, k := range kinds {
		slices.Sort(k.took)
		b.ReportMetric(float64(k.took[len(k.took)/2].Nanoseconds())/1000, k.name+"-µs")
		b.ReportMetric(float64(k.cpu.Nanoseconds())/1000/float64(len(k.took)), k.name+"-cpu-µs")
	}
}

// BenchmarkStartOpen starts /bin/true as a plain child and as a server would
// be, by turns.
func BenchmarkStartOpen(b *testing.B) {
	hidden := b.TempDir()
	kinds := []struct {
		name string
		run  func() error
		took []time.Duration
	}{
		{name: "plain", run: func() error { return exec.Command("/bin/true").Run() }},
		{name: "open", run: func() error {
			_, err := runIn(b.Context(), Full, Spec{Path: "/bin/true", Args: []string{"true"}, Dir: "/", Require: BestEffort,
				Open: Open{Files: true, Network: true, Hide: []string{hidden}}, Limits: Limits{Wall: -1, CPU: -1}})
			return err
		}},
	}
	for b.Loop() {
		for i := range kinds {
			begun := time.Now()
			if err := kinds[i].run(); err != nil {
				b.Fatalf("%s: %v", kinds[i].name, err)
			}
			kinds[i].took = append(kinds[i].took, time.Since(begun))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, k := range kinds {
		slices.Sort(k.took)
		b.ReportMetric(k.took[len(k.took)/2].Seconds()*1000, k.name+"-ms")
	}
}

// plainCat is cat as an ordinary child.
func plainCat(b *testing.B) (in, out *os.File) {
	b.Helper()
	cmd := exec.Command("/bin/cat")
	r, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = r, w
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	r.Close()
	w.Close()
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
		out.Close()
	})
	return in, out
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
