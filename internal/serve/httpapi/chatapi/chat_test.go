package chatapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestReadWhileItRuns: a session that is read at any time, and followed from
// where it says, is whole: nothing is missing and nothing is there twice.
func TestReadWhileItRuns(t *testing.T) {
	r := open(t)
	id := r.begin()
	const turns = 12
	var replies []llmtest.Reply
	for n := range turns {
		replies = append(replies, llmtest.Reply{Text: fmt.Sprintf("a%d ", n), Calls: []llm.ToolCall{invoke("tool:greet", `{}`)}}, llmtest.Reply{Text: fmt.Sprintf("b%d ", n), Fragments: 2})
	}
	r.script(replies...)
	var want strings.Builder
	whole := map[string]bool{"": true}
	for n := range turns {
		fmt.Fprintf(&want, "[t%d]a%d b%d ", n, n, n)
		whole[want.String()] = true
	}
	// view is what a reader knows who follows to the end of a turn.
	view := func() string {
		s := do[Session](r, "GET", at(id, ""), "")
		var b strings.Builder
		for _, turn := range s.Turns {
			b.WriteString("[" + turn.Said + "]")
			for _, i := range turn.Items {
				if i.Type == "text" {
					b.WriteString(i.Text)
				}
			}
		}
		f := r.follow(at(id, "/events?after=nonsense"), s.After) // the header counts
		defer f.close()
		for {
			e, ok := f.next()
			switch {
			case !ok || e.name == "done" || e.name == "idle":
				return b.String()
			case e.name == "reset":
				t.Errorf("a reset right after reading")
				return ""
			case e.name == "said":
				fmt.Fprintf(&b, "[%s]", e.data["text"])
			case e.name == "delta" && e.data["text"] != nil:
				fmt.Fprint(&b, e.data["text"])
			}
		}
	}
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := view(); !whole[got] {
					t.Errorf("read and followed: %q, want whole turns of %q", got, want.String())
					return
				}
			}
		})
	}
	for n := range turns {
		do[map[string]any](r, "POST", at(id, "/turns?wait=true"), fmt.Sprintf(`{"text":"t%d"}`, n))
	}
	close(stop)
	all.Wait()
	if got := view(); got != want.String() {
		t.Errorf("at the end: %q, want %q", got, want.String())
	}
}

// TestAbort: while a turn runs, nothing else changes its session, and its owner
// alone ends it, in the middle of a call.
func TestAbort(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:wait", `{}`)}})
	f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"wait"}`, "Accept", "text/event-stream"))
	defer f.close()
	f.until("started")
	for _, c := range []struct {
		who, method, path, body string
		status                  int
	}{
		{ada, "POST", "/turns", `{"text":"me too"}`, 409},
		{ada, "POST", "/retry", "{}", 409},
		{ada, "POST", "/rewind", `{"turn":1}`, 409},
		{ada, "POST", "/compact", "{}", 409},
		{ada, "DELETE", "", "", 409},
		{"acme/eve", "POST", "/abort", "{}", 404},
		{ada, "POST", "/abort", "{}", 200},
	} {
		if a := r.ask(c.who, c.method, at(id, c.path), c.body); a.status != c.status {
			t.Errorf("%s: %s %s while a turn runs = %d %s, want %d", c.who, c.method, c.path, a.status, a.body, c.status)
		}
	}
	f.until("done")
	s := do[Session](r, "GET", at(id, ""), "")
	if call := s.Turns[0].Items[0]; call.Target != "tool:wait" || call.Result == nil || !call.Result.Failed || s.Turns[0].End != "aborted" {
		t.Errorf("read: %+v", s.Turns[0])
	}
}

// TestOthersTurns: whoever follows is told to read again when another process had
// a turn in between. What that turn was shown is found anew.
func TestOthersTurns(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "One."}, llmtest.Reply{Text: "Elsewhere."}, llmtest.Reply{Text: "Three."})
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"a"}`)
	f := r.follow(at(id, "/events"), "")
	defer f.close()
	f.until("idle")
	for _, err := range r.engine.Turn(context.Background(), input(id, "found elsewhere")) {
		testkit.OK(t, err)
	}
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"c"}`)
	if list := f.until("done"); names(list[:2]) != "reset said" || strings.Contains(names(list[1:]), "reset") {
		t.Errorf("the follower got %s", names(list))
	}
	in := do[Inspection](r, "GET", at(id, "/turns/2"), "")
	if !in.Now || !strings.Contains(string(in.Events), `"query":"found elsewhere"`) {
		t.Errorf("inspected: %+v %s", in.Now, in.Events)
	}
}

// TestLongSession: a session is read in parts.
func TestLongSession(t *testing.T) {
	r := open(t)
	id := r.begin()
	who := capability.Principal{Tenant: "acme", ID: "ada"}
	log := testkit.Must(r.sessions.Lock(context.Background(), who, id))(t)
	for n := 1; n <= 250; n++ {
		testkit.OK(t, log.Append(context.Background(), session.Entry{Kind: session.User, Turn: n, Blocks: []llm.Block{{Text: fmt.Sprint("said ", n)}}}))
	}
	testkit.OK(t, log.Release(context.Background()))
	s := do[Session](r, "GET", at(id, ""), "")
	if len(s.Turns) != 200 || s.Older != 51 || s.Turns[0].Turn != 51 {
		t.Errorf("%d turns from %d on, older %d; want 200 from 51", len(s.Turns), s.Turns[0].Turn, s.Older)
	}
	s = do[Session](r, "GET", at(id, fmt.Sprintf("?before=%d", s.Older)), "")
	if len(s.Turns) != 50 || s.Older != 0 || s.Turns[49].Turn != 50 {
		t.Errorf("the rest: %d turns, older %d", len(s.Turns), s.Older)
	}
}
