package chatapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestChat: a session is begun, a message answered with a call, and everything is
// there when it is read again.
func TestChat(t *testing.T) {
	r := open(t)
	head := do[SessionHead](r, "POST", "/api/v1/sessions", `{"agent":"a","mode":"plan","sessionType":"isolated"}`)
	if head.ID == "" || head.Mode != "plan" || head.Agent != "a" || head.Folder != "" {
		t.Errorf("begun: %+v", head)
	}
	r.script(
		llmtest.Reply{Thought: "I greet.", Text: "First this.", Calls: []llm.ToolCall{invoke("tool:greet", `{"name":"Bo"}`), invoke("tool:long", `{}`)}},
		llmtest.Reply{Text: "Hello, Bo.", Usage: llm.Usage{Input: 100, Output: 7}},
	)
	f := r.follow(at(head.ID, "/events"), "")
	defer f.close()
	if e, _ := f.next(); e.name != "idle" {
		t.Errorf("before anything was said: %s", e.name)
	}
	got := do[Accepted](r, "POST", at(head.ID, "/turns"), `{"text":"greet Bo please"}`)
	if got.Session != head.ID || !strings.HasPrefix(got.Events, at(head.ID, "/events?after=")) {
		t.Errorf("accepted: %+v", got)
	}
	list := f.until("done")
	if list[0].name != "said" || list[0].data["text"] != "greet Bo please" || fmt.Sprint(list[0].data["turn"]) != "1" {
		t.Errorf("the first event is %+v", list[0])
	}
	for _, want := range []string{"selected", "delta", "started", "finished", "step", "done"} {
		if !strings.Contains(names(list), want) {
			t.Errorf("events are %s, want %s among them", names(list), want)
		}
	}
	s := do[Session](r, "GET", at(head.ID, ""), "")
	if len(s.Turns) != 1 || s.Running || s.After != list[len(list)-1].id || s.Head.Turns != 1 || s.Head.Title != "greet Bo please" {
		t.Fatalf("read: %+v", s)
	}
	turn := s.Turns[0]
	var kinds []string
	for _, i := range turn.Items {
		kinds = append(kinds, i.Type)
	}
	if got := strings.Join(kinds, " "); got != "thought text call call text" || turn.Said != "greet Bo please" || turn.End != "answer" || !turn.Inspectable || turn.Usage == nil {
		t.Fatalf("the turn is %s: %+v", got, turn)
	}
	greet, long := turn.Items[2], turn.Items[3]
	if greet.Target != "tool:greet" || string(greet.Arguments) != `{"name":"Bo"}` || greet.Result == nil || greet.Result.Text != `hello {"name":"Bo"}` || greet.Result.Failed {
		t.Errorf("the call is %+v with %+v", greet, greet.Result)
	}
	if long.Result == nil || len(long.Result.Text) > 16<<10 || !long.Result.Cut && long.Result.Handle == "" {
		t.Errorf("the long result has %d bytes, cut %v, handle %q", len(long.Result.Text), long.Result.Cut, long.Result.Handle)
	}
	if r.inp.Scope.SessionType != "isolated" || r.inp.Surface != "api" {
		t.Errorf("the engine got %+v", r.inp)
	}
	in := do[Inspection](r, "GET", at(head.ID, "/turns/1"), "")
	var events []map[string]any
	if err := json.Unmarshal(in.Events, &events); err != nil || in.Now || events[0]["type"] != "selected" || events[len(events)-1]["type"] != "done" {
		t.Errorf("inspected: now %v, %.300s", in.Now, in.Events)
	}
	all := do[SessionList](r, "GET", "/api/v1/sessions", "")
	if len(all.Sessions) != 1 || all.Sessions[0].ID != head.ID || all.Cut {
		t.Errorf("listed: %+v", all)
	}
	// A continuation has nothing to go on with.
	if a := r.ask(ada, "POST", at(head.ID, "/turns?wait=true"), `{"continue":true}`); a.status != http.StatusConflict {
		t.Errorf("continue after the end = %d %s", a.status, a.body)
	}
}

// TestConsent: a call waits for a person, who agrees or does not, once.
func TestConsent(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			r := open(t)
			id := r.begin()
			r.script(llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:save", `{"n":1}`)}}, llmtest.Reply{Text: "Well."})
			f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"save it"}`, "Accept", "text/event-stream"))
			defer f.close()
			asked := f.until("asked")
			q := asked[len(asked)-1].data
			s := do[seen](r, "GET", at(id, ""), "")
			if len(s.Asked) != 1 || s.Asked[0].ID != q["id"] || !s.Running || len(s.Turns) != 0 || q["what"] != "consent" {
				t.Fatalf("while it waits: %+v", s)
			}
			path := at(id, "/answers/"+s.Asked[0].ID)
			for _, bad := range []struct {
				who, path, body string
				want            int
			}{
				{ada, at(id, "/answers/9.9.9.consent"), `{"yes":true}`, 404},
				{ada, path, `{"yes":true,"scope":"forever"}`, 400},
				{ada, path, `{"yes":1}`, 400},
				{"acme/eve", path, `{"yes":true}`, 404},
				{"other/ada", path, `{"yes":true}`, 404},
			} {
				if a := r.ask(bad.who, "POST", bad.path, bad.body); a.status != bad.want {
					t.Errorf("%s: answering %s with %s = %d %s, want %d", bad.who, bad.path, bad.body, a.status, a.body, bad.want)
				}
			}
			if a := r.ask(ada, "POST", path, fmt.Sprintf(`{"yes":%v,"scope":"once"}`, yes)); a.status != http.StatusNoContent {
				t.Fatalf("answering = %d %s", a.status, a.body)
			}
			if a := r.ask(ada, "POST", path, `{"yes":true}`); a.status != http.StatusConflict {
				t.Errorf("answering again = %d %s", a.status, a.body)
			}
			rest := f.until("done")
			if want := map[bool]string{true: "tool:save", false: ""}[yes]; r.calls() != want || fmt.Sprint(rest[0].data["yes"]) != fmt.Sprint(yes) {
				t.Errorf("calls: %q, want %q; then %+v", r.calls(), want, rest[0])
			}
			if _, more := f.next(); more {
				t.Error("the stream of one turn goes on after it")
			}
		})
	}
}

// TestWait: the answer comes at the end; nobody is there to ask, and the turn goes
// on when somebody has answered.
func TestWait(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "Hello."}, llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:save", `{}`)}}, llmtest.Reply{Text: "Saved."})
	one := do[map[string]map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"hello","mode":"build"}`)
	if one["done"]["reason"] != "answer" || one["done"]["text"] != "Hello." || one["done"]["type"] != "done" {
		t.Errorf("waited: %v", one)
	}
	two := do[struct {
		Done  struct{ Reason string }
		Asked []struct{ ID, Ticket string }
	}](r, "POST", at(id, "/turns?wait=true"), `{"text":"save"}`)
	if two.Done.Reason != "waiting" || len(two.Asked) != 1 || two.Asked[0].Ticket == "" {
		t.Fatalf("what needs a person: %+v", two)
	}
	if s := do[seen](r, "GET", at(id, ""), ""); !s.Head.Open || len(s.Asked) != 1 || s.Head.Mode != "build" || s.Turns[1].End != "waiting" {
		t.Errorf("read: %+v", s)
	}
	if a := r.ask(ada, "POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`); a.status != 204 {
		t.Fatalf("answering = %d %s", a.status, a.body)
	}
	if a := r.ask(ada, "POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`); a.status != 409 {
		t.Errorf("answering again = %d %s", a.status, a.body)
	}
	three := do[struct{ Done struct{ Reason, Text string } }](r, "POST", at(id, "/turns?wait=true"), `{"continue":true}`)
	if three.Done.Reason != "answer" || three.Done.Text != "Saved." || r.calls() != "tool:save" {
		t.Errorf("gone on: %+v, calls %q", three, r.calls())
	}
	s := do[Session](r, "GET", at(id, ""), "")
	if len(s.Turns) != 2 || s.Turns[1].End != "answer" || s.Turns[1].Items[0].Result == nil {
		t.Errorf("read at the end: %+v", s.Turns[len(s.Turns)-1])
	}
}

// TestAbort: a turn is ended in the middle of a call, by its owner alone, and
// what would change the session waits for that.
func TestAbort(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:wait", `{}`)}})
	f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"wait"}`, "Accept", "text/event-stream"))
	defer f.close()
	f.until("started")
	for _, test := range [][3]string{
		{"POST", "/turns", `{"text":"me too"}`}, {"POST", "/retry", "{}"}, {"POST", "/rewind", `{"turn":1}`}, {"POST", "/compact", "{}"}, {"DELETE", "", ""},
	} {
		if a := r.ask(ada, test[0], at(id, test[1]), test[2]); a.status != 409 || a.code() != "conflict" {
			t.Errorf("%s %s while a turn runs = %d %s", test[0], test[1], a.status, a.body)
		}
	}
	if a := r.ask("acme/eve", "POST", at(id, "/abort"), "{}"); a.status != 404 {
		t.Errorf("eve's abort = %d %s", a.status, a.body)
	}
	if list := do[SessionList](r, "GET", "/api/v1/sessions", ""); !list.Sessions[0].Running {
		t.Errorf("the list does not say that a turn runs: %+v", list)
	}
	if a := do[Aborted](r, "POST", at(id, "/abort"), "{}"); !a.Aborted {
		t.Error("nothing was aborted")
	}
	list := f.until("done")
	if got := list[len(list)-1].data["reason"]; got != "aborted" {
		t.Errorf("the turn ended with %v", got)
	}
	if a := do[Aborted](r, "POST", at(id, "/abort"), "{}"); a.Aborted {
		t.Error("something was aborted that was not there")
	}
	s := do[Session](r, "GET", at(id, ""), "")
	if call := s.Turns[0].Items[0]; call.Target != "tool:wait" || call.Result == nil || !call.Result.Failed || s.Turns[0].End != "aborted" {
		t.Errorf("read: %+v", s.Turns[0])
	}
}

// TestGoneClient: a turn goes on when its client has left.
func TestGoneClient(t *testing.T) {
	r := open(t)
	id := r.begin()
	hold := make(chan struct{})
	r.script(llmtest.Reply{Text: "one two three four", Fragments: 4, Hold: hold})
	f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"count"}`, "Accept", "text/event-stream"))
	seen := f.until("delta")
	f.close()
	close(hold)
	g := r.follow(at(id, "/events"), seen[len(seen)-1].id)
	defer g.close()
	list := g.until("done")
	if list[len(list)-1].data["text"] != "one two three four" {
		t.Errorf("the turn ended with %v", list[len(list)-1].data)
	}
}

// TestReconnect: wherever a client breaks off, with the id it had last it gets
// exactly the rest.
func TestReconnect(t *testing.T) {
	r := open(t)
	rapid.Check(t, func(q *rapid.T) {
		id := r.begin()
		text := strings.Repeat("many words and more ", 10)
		r.script(
			llmtest.Reply{Thought: "hm hm", Text: text, Fragments: 60, Calls: []llm.ToolCall{invoke("tool:greet", `{}`)}},
			llmtest.Reply{Text: text, Fragments: 90},
		)
		_, after, _ := strings.Cut(do[Accepted](r, "POST", at(id, "/turns"), `{"text":"go"}`).Events, "after=")
		var list []streamed
		for over := false; !over; {
			f := r.follow(at(id, "/events?after=nonsense"), after) // the header counts
			for n := rapid.IntRange(1, 40).Draw(q, "frames"); n > 0 && !over; n-- {
				e, ok := f.next()
				if !ok {
					break
				}
				if e.name != "idle" {
					list, after = append(list, e), e.id
				}
				over = e.name == "done"
			}
			f.close()
		}
		var said strings.Builder
		seen := map[string]bool{}
		for _, e := range list {
			if seen[e.id] {
				q.Fatalf("event %s came twice", e.id)
			}
			seen[e.id] = true
			if part, ok := e.data["text"].(string); ok && e.name == "delta" {
				said.WriteString(part)
			}
		}
		if said.String() != text+text {
			q.Fatalf("heard %q, want %q twice", said.String(), text)
		}
		if n := strings.Count(" "+names(list)+" ", " finished "); n != 1 || list[0].name != "said" {
			q.Fatalf("events: %s", names(list))
		}
	})
}

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
		f := r.follow(at(id, "/events?after="+s.After), "")
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

// TestTakeBack: rewinding, retrying, summing up and deleting, as others see it.
func TestTakeBack(t *testing.T) {
	r := open(t)
	id := r.begin()
	if a := r.ask(ada, "POST", at(id, "/retry"), "{}"); a.status != 409 {
		t.Errorf("retry of nothing = %d %s", a.status, a.body)
	}
	r.script(llmtest.Reply{Text: "One."}, llmtest.Reply{Text: "Two."}, llmtest.Reply{Text: "Three."}, llmtest.Reply{Text: "Four."})
	png := "\x89PNG\r\n\x1a\n and more"
	body := fmt.Sprintf(`{"text":" /first words","images":[{"mime":"image/png","data":%q}]}`, base64.StdEncoding.EncodeToString([]byte(png)))
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), body)
	f := r.follow(at(id, "/events"), "")
	defer f.close()
	f.until("idle")
	do[Accepted](r, "POST", at(id, "/retry"), "{}")
	list := f.until("done")
	if names(list[:2]) != "reset said" || list[1].data["text"] != "/first words" || fmt.Sprint(list[1].data["images"]) != "1" {
		t.Errorf("others saw %s of the retry: %v", names(list), list[1].data)
	}
	s := do[Session](r, "GET", at(id, ""), "")
	if len(s.Turns) != 1 || s.Turns[0].Turn != 2 || s.Turns[0].Said != "/first words" || s.Turns[0].Images != 1 || s.Turns[0].Items[0].Text != "Two." {
		t.Fatalf("after the retry: %+v", s.Turns)
	}
	if a := r.ask(ada, "GET", at(id, "/turns/1"), ""); a.status != 404 {
		t.Errorf("inspecting what was taken back = %d %s", a.status, a.body)
	}
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"more"}`)
	if a := r.ask(ada, "POST", at(id, "/rewind"), `{"turn":1}`); a.status != 404 {
		t.Errorf("rewind to what was taken back = %d %s", a.status, a.body)
	}
	if got := do[Rewound](r, "POST", at(id, "/rewind"), `{"turn":3}`); got.Said != "more" {
		t.Errorf("rewound: %+v", got)
	}
	f.until("reset")
	if got := do[map[string]any](r, "POST", at(id, "/compact"), "{}"); got["how"] == nil {
		t.Errorf("compacted: %v", got)
	}
	if a := r.ask(ada, "DELETE", at(id, ""), ""); a.status != 204 {
		t.Errorf("deleting = %d %s", a.status, a.body)
	}
	if a := r.ask(ada, "GET", at(id, ""), ""); a.status != 404 || a.code() != "not-found" {
		t.Errorf("reading what was deleted = %d %s", a.status, a.body)
	}
}

// TestCommand: what is typed as a command runs under the person's authority, and
// is told as such.
func TestCommand(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "You said it."})
	done := do[map[string]map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"/greet you"}`)
	if done["done"]["reason"] != "command" || r.calls() != "tool:greet" {
		t.Fatalf("the command came to %v", done)
	}
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"//compact this"}`)
	s := do[Session](r, "GET", at(id, ""), "")
	one, two := s.Turns[0], s.Turns[1]
	if !one.Command || one.Said != "/greet you" || one.Inspectable || len(one.Items) != 1 || one.Items[0].Target != "greet" || !strings.HasPrefix(one.Items[0].Result.Text, "hello") || strings.Contains(one.Items[0].Result.Text, "[[") {
		t.Errorf("the command is read as %+v", one)
	}
	if two.Command || two.Said != "/compact this" || two.Items[0].Text != "You said it." {
		t.Errorf("what was said with two slashes is read as %+v", two)
	}
	if got := do[Completions](r, "GET", "/api/v1/complete?line=/gr&cursor=3", ""); len(got.Completions) != 1 || got.Completions[0].Text != "/greet" {
		t.Errorf("completions: %+v", got)
	}
}

// TestFindAgain: a turn whose record is gone is found anew.
func TestFindAgain(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "One."})
	for _, err := range r.engine.Turn(context.Background(), input(id, "found elsewhere")) { // by another process
		if err != nil {
			t.Fatal(err)
		}
	}
	in := do[Inspection](r, "GET", at(id, "/turns/1"), "")
	if !in.Now || !strings.Contains(string(in.Events), `"query":"found elsewhere"`) {
		t.Errorf("inspected: %+v %s", in.Now, in.Events)
	}
}

// TestLongSession: a session is read in parts.
func TestLongSession(t *testing.T) {
	r := open(t)
	id := r.begin()
	who := capability.Principal{Tenant: "acme", ID: "ada"}
	log, err := r.sessions.Lock(context.Background(), who, id)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 250; n++ {
		if err := log.Append(context.Background(), session.Entry{Kind: session.User, Turn: n, Blocks: []llm.Block{{Text: fmt.Sprint("said ", n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := do[Session](r, "GET", at(id, ""), "")
	if len(s.Turns) != 200 || s.Older != 51 || s.Turns[0].Turn != 51 {
		t.Errorf("%d turns from %d on, older %d; want 200 from 51", len(s.Turns), s.Turns[0].Turn, s.Older)
	}
	s = do[Session](r, "GET", at(id, fmt.Sprintf("?before=%d", s.Older)), "")
	if len(s.Turns) != 50 || s.Older != 0 || s.Turns[49].Turn != 50 {
		t.Errorf("the rest: %d turns, older %d", len(s.Turns), s.Older)
	}
}
