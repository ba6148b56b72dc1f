package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/llm/llmtest"
)

// A desk is a person's machine with a model that says what it is told to.
type desk struct {
	t     *testing.T
	model *llmtest.Server
}

func newDesk(t *testing.T, replies ...llmtest.Reply) *desk {
	t.Helper()
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("KEN_HOME", filepath.Join(home, "ken"))
	t.Setenv("LAB_KEY", "the-key-of-the-lab")
	t.Chdir(work)
	d := &desk{t: t, model: llmtest.Serve(t, "openai-chat", llmtest.Replies(replies...))}
	d.ken(0, "config", "set", "providers", "{lab: {wire: openai-chat, url: "+d.model.URL()+", key: LAB_KEY}}")
	d.ken(0, "config", "set", "model", "lab/any")
	return d
}

// ken runs the program and gives what it wrote: both outputs in one place, as on
// a terminal.
func (d *desk) ken(status int, args ...string) string {
	d.t.Helper()
	return d.fed(status, nil, args...)
}

func (d *desk) fed(status int, in *os.File, args ...string) string {
	d.t.Helper()
	if in == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			d.t.Fatal(err)
		}
		defer null.Close()
		in = null
	}
	var out bytes.Buffer
	if got := Main(args, in, &out, &out); got != status {
		d.t.Fatalf("ken %q = %d and\n%s\nwant status %d", args, got, &out, status)
	}
	return out.String()
}

func (d *desk) wants(text string, parts ...string) {
	d.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			d.t.Errorf("it says\n%s\nwant %q", text, p)
		}
	}
}

func TestChatMistyped(t *testing.T) {
	d := newDesk(t, llmtest.Reply{Text: "One."}, llmtest.Reply{Text: "Two."}, llmtest.Reply{Text: "Three."})
	const how = "to say it to the model put a blank or a second slash before it"
	for _, tt := range []struct {
		line   string
		status int
		want   string
	}{
		{"/zzzzzz", 1, "/help and Tab list what there is; " + how},
		{"/rewnd", 1, "did you mean /rewind? " + how},
		{"/rewnd 3 please", 1, "did you mean /rewind?"},
		{"/list_fles", 1, "/list_files? " + how},
		{"/why", 2, "/why works only in a conversation"},
		{"/why and", 2, how},
		{"/quit", 2, "works only in a conversation"},
		{"/exit", 2, "works only in a conversation"},
	} {
		d.wants(d.ken(tt.status, "chat", "-p", tt.line), tt.want)
	}
	if n := len(d.model.Requests()); n != 0 {
		t.Fatalf("the model was asked %d times by what is mistyped", n)
	}
	for i, line := range []string{"//zzz", " /rewind", "/etc/hosts is broken"} {
		out := d.ken(0, "chat", "-p", line)
		d.wants(out, []string{"One.", "Two.", "Three."}[i])
	}
	for i, want := range []string{" /zzz", " /rewind", "/etc/hosts is broken"} {
		body := string(d.model.Requests()[i].Body)
		if !strings.Contains(body, want) || strings.Contains(body, "//zzz") {
			t.Errorf("request %d is %s, want %s in it", i, body, want)
		}
	}
}

func TestChatUsage(t *testing.T) {
	d := newDesk(t)
	d.wants(d.ken(2, "chat", "--delivery", "zzz", "-p", "hi"), "auto, whole, inline, search, bridge, extend, per_turn")
	d.wants(d.ken(2, "chat", "hello", "there"), `ken chat -p "hello there"`)
	d.wants(d.ken(2, "chat", "-p", "-"), "standard input is empty")
}

func TestChatRefusedCommand(t *testing.T) {
	d := newDesk(t)
	for _, args := range [][]string{{"chat", "-p", "/read_file ../x"}, {"chat", "-q", "-p", "/read_file ../x"}} {
		out := d.ken(3, args...)
		if strings.Count(out, "Path traversal detected") != 1 || strings.Contains(out, "{") {
			t.Errorf("ken %q says\n%s\nwant the reason once and no JSON", args, out)
		}
	}
	if err := os.WriteFile("notes.txt", []byte("The harbour opens at 6.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := d.ken(0, "chat", "-q", "-p", "/list_files"); out != "notes.txt\n" {
		t.Errorf("/list_files says %q, want the files and nothing that is meant for the model", out)
	}
}

func TestChatInput(t *testing.T) {
	d := newDesk(t, llmtest.Reply{Text: "Yes."}, llmtest.Reply{Text: "Yes."})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("some ``` context"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	d.fed(0, r, "chat", "-p", "summarize")
	if body := string(d.model.Requests()[0].Body); !strings.Contains(body, "summarize\\n\\nStandard input:\\n\\n````\\nsome ``` context\\n````\\n") {
		t.Errorf("the model reads %s", body)
	}
	d.ken(0, "chat", "-p", "summarize") // nothing is there: nothing is added
	if body := string(d.model.Requests()[1].Body); strings.Contains(body, "Standard input") {
		t.Errorf("the model reads %s", body)
	}
}

func TestChatSessions(t *testing.T) {
	d := newDesk(t, llmtest.Reply{Text: "Yes."}, llmtest.Reply{Text: "Of course."}, llmtest.Reply{Text: "No."}, llmtest.Reply{Fault: "auth"})
	d.ken(0, "chat", "--mode", "ask", "-p", strings.Repeat("remember the lighthouse ", 6))
	d.ken(0, "chat", "--resume", "last", "--mode", "none", "-p", "and the anchor")
	list := d.ken(0, "chat", "--list", "--json")
	if strings.Contains(list, `"mode"`) {
		t.Errorf("--mode none leaves the session as\n%s", list)
	}
	d.wants(d.ken(1, "chat", "--resume", "last", "-p", "/rewind 9"), "turn not found; the turns are 1 to 2")
	d.wants(d.ken(0, "chat", "--resume", "last", "-p", "/rewind"), "Turn 2 and all")
	d.ken(0, "chat", "--resume", "last", "-p", "and?")
	d.wants(d.ken(1, "chat", "--resume", "last", "-p", "/rewind 2"), "the turns are 1, 3")
	d.ken(1, "chat", "-p", "hello?") // the provider fails
	elsewhere := t.TempDir()
	t.Chdir(elsewhere)
	out := d.ken(0, "chat", "--list")
	d.wants(out, "  remember the lighthouse remember the lighthouse", "…  in ", "hello?")
	if strings.Contains(out, "⟨") || strings.Contains(out, "waits") {
		t.Errorf("--list says\n%s\nwant titles, and that nobody waits", out)
	}
}
