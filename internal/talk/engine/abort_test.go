package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
	"ken/llm"
	"ken/llm/llmtest"
)

// long is a turn with a bit of everything: 14 events or so of it.
func long() llmtest.Script {
	return llmtest.Replies(
		llmtest.Reply{Thought: "hm", Text: "First I greet them.", Calls: []llm.ToolCall{invoke("tool:greet", `{"name":"A"}`), invoke("tool:greet", `{"name":"B"}`), call("nonsense", `{}`)}},
		answers(invoke("tool:save", `{"name":"once"}`), call(toolDiscover, `{"query":"save"}`), invoke("tool:save", `{"name":"twice"}`)),
		text("All is done, and well."),
	)
}

// TestT09AbortAtEveryEvent: wherever a person leaves, and however, every call has
// its one result, the session is closed, and it takes the next message.
func TestT09AbortAtEveryEvent(t *testing.T) {
	testkit.CI(t, "takes two turns for every event of one")
	r := open(t, setting{})
	for _, how := range []string{"leave", "cancel"} {
		for at, ended := 1, false; !ended; at++ {
			before := r.count("tool:save")
			id := r.begin(long())
			ctx, cancel := context.WithCancel(context.Background())
			n := 0
			var last event.Event
			for e, err := range r.Turn(ctx, event.Input{Principal: ada, Session: id, Text: "do it all"}) {
				if err != nil {
					t.Fatal(err)
				}
				n, last = n+1, e
				if n == at && how == "leave" {
					break
				}
				if n == at {
					cancel()
				}
			}
			cancel()
			d, ok := last.(event.Done)
			if ended = ok && d.Reason == event.EndAnswer; ok && !ended && (how == "leave" || d.Reason != event.EndAborted) {
				t.Errorf("%s at %d: %+v", how, at, d)
			}
			if head, err := r.sessions.Head(context.Background(), ada, id); err != nil || head.Open {
				t.Errorf("%s at event %d: head = %+v, %v; want it closed", how, at, head, err)
			}
			r.entries(id)
			if got := r.count("tool:save") - before; got > 2 {
				t.Errorf("%s at %d: tool:save ran %d times, want at most 2", how, at, got)
			}
			r.model = &llmtest.Fake{Script: llmtest.Replies(text("Hello again."))}
			done(t, r.say(id, "and now?"), event.EndAnswer)
			r.entries(id)
			if ended && at < 15 {
				t.Errorf("%s: the turn has only %d events", how, at)
			}
		}
	}
}

// TestAbortStopsARunningCall: a call that runs when the turn is aborted is
// stopped, and its result says so; those after it are not made.
func TestAbortStopsARunningCall(t *testing.T) {
	tell(t, []story{{
		name: "abort", setting: setting{tools: begins}, script: []llmtest.Reply{answers(invoke("tool:slow", `{}`), save("x"))}, made: []string{"tool:slow"},
		steps: []step{aborted("go", is[event.Output]), func(r *rig, _ string) { done(t, r.events, event.EndAborted) }}, results: []string{"", "not made"},
	}}, inMemory)
}

// TestOneTurnAtATime: a second turn of the session is refused while one runs,
// and says so; a turn of another runs.
func TestOneTurnAtATime(t *testing.T) {
	r := open(t, setting{})
	hold := make(chan struct{})
	id := r.begin(func(s llmtest.Seen) llmtest.Reply {
		if s.Number == 1 {
			return llmtest.Reply{Text: "a long answer", Hold: hold}
		}
		return text("Hello.")
	})
	other := r.session()
	first := true
	for e, err := range r.Turn(t.Context(), event.Input{Principal: ada, Session: id, Text: "hello"}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.(event.Delta); ok && d.Text != "" && first {
			first = false
			if _, err := r.try(context.Background(), event.Input{Session: id, Text: "me too"}); !errors.Is(err, session.ErrBusy) {
				t.Errorf("a second turn = %v, want ErrBusy", err)
			}
			done(t, r.say(other, "hello"), event.EndAnswer)
			close(hold)
		}
	}
	r.entries(id)
}

// TestResumeAfterACrash: the process is killed at every event of a turn. Another
// one goes on with it: every call has its one result, and no effect happens
// twice without a person's word.
func TestResumeAfterACrash(t *testing.T) {
	if os.Getenv("KEN_ENGINE_CHILD") != "" {
		crash(t)
		return
	}
	testkit.CI(t, "starts a process for each of 14 events")
	for _, at := range []int{1, 3, 6, 9, 12, 15, 17, 18, 19, 20, 21, 23, 25, 27} {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			t.Parallel()
			address, effects := storetest.Address(t), filepath.Join(t.TempDir(), "effects")
			cmd := exec.Command(os.Args[0], "-test.run", "^TestResumeAfterACrash$")
			cmd.Env = append(os.Environ(), "KEN_ENGINE_CHILD=1", "KEN_ENGINE_AT="+strconv.Itoa(at), "KEN_ENGINE_STORE="+address, "KEN_ENGINE_EFFECTS="+effects,
				"TMPDIR="+t.TempDir()) // what is killed does not tidy up
			out, err := cmd.Output()
			id, _, _ := strings.Cut(string(out), "\n")
			if err == nil {
				return // the turn has fewer events
			}
			if id = strings.TrimPrefix(id, "session "); id == "" {
				t.Fatalf("the child = %v, %s", err, out)
			}
			resume(t, address, effects, id)
		})
	}
}

// resume goes on with what a killed process left.
func resume(t *testing.T, address, effects, id string) {
	r := open(t, setting{db: storetest.Open(t, address), tools: noted(effects), locks: time.Second, lease: time.Second})
	_, entries, err := r.sessions.Read(context.Background(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	asked := len(session.Live(entries)) > 0
	r.model = &llmtest.Fake{Script: rest(entries)}
	in := event.Input{Principal: ada, Session: id, Continue: asked}
	if !asked {
		in.Text = "do it all"
	}
	testkit.Wait(t, "the lock of the dead expires", func() bool {
		var err error
		for e, problem := range r.Turn(t.Context(), in) {
			if err = problem; err != nil {
				break
			}
			switch e := e.(type) {
			case event.Asked:
				if e.What != event.Again {
					t.Errorf("Asked = %+v, want only what nobody knows", e)
				}
				if err := r.Reply(context.Background(), ada, id, e.ID, event.Reply{Yes: false}); err != nil {
					t.Error(err)
				}
			case event.Done:
				if e.Reason != event.EndAnswer {
					t.Errorf("Done = %+v", e)
				}
			}
		}
		if err != nil && capability.KindOf(err) != capability.Conflict && !errors.Is(err, session.ErrBusy) { // Conflict: the turn was over
			t.Fatal(err)
		}
		return !errors.Is(err, session.ErrBusy)
	})
	r.entries(id)
	f, err := os.Open(effects)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	times := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		times[lines.Text()]++
	}
	for what, n := range times {
		if n != 1 {
			t.Errorf("the effect %s happened %d times, want once", what, n)
		}
	}
}

// rest plays the script from where the entries are.
func rest(entries []session.Entry) llmtest.Script {
	said := 0
	for _, e := range session.Live(entries) {
		if e.Kind == session.Assistant {
			said++
		}
	}
	script := long()
	for range said {
		script(llmtest.Seen{})
	}
	return script
}

// noted writes each effect of tool:save down.
func noted(file string) func(*rig) {
	return func(r *rig) {
		r.tool("tool:save", "Save a note to the notebook", nameSchema, changing, func(_ context.Context, c capability.Call) (capability.Result, error) {
			f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return capability.Result{}, err
			}
			_, err = fmt.Fprintf(f, "%s\n", c.Arguments)
			if err := errors.Join(err, f.Close()); err != nil {
				return capability.Result{}, err
			}
			if c.Live != nil {
				_, _ = c.Live.Write([]byte("written")) // an event in the middle of the effect
			}
			return said("saved")
		})
	}
}

// crash is the process that is killed.
func crash(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv("KEN_ENGINE_AT"))
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, setting{
		db: storetest.Open(t, os.Getenv("KEN_ENGINE_STORE")), tools: noted(os.Getenv("KEN_ENGINE_EFFECTS")), locks: time.Second, lease: time.Second,
	})
	id := r.begin(long())
	fmt.Println("session " + id)
	n := 0
	for range r.Turn(context.Background(), event.Input{Principal: ada, Session: id, Text: "do it all"}) {
		if n++; n == at {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			_ = self.Kill()
			for range time.Tick(time.Hour) {
			}
		}
	}
}
