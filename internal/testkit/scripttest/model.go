//go:build unix

package scripttest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// A scriptedModel is one that a script started. What it answers can be replaced
// while it runs, so that its address can stand in a configuration.
type scriptedModel struct {
	server *llmtest.Server

	mu      sync.Mutex
	answers llmtest.Script
	before  int // requests that came before these answers

	hold chan struct{} // it waits for that in the middle of what it says; nil: for nothing
}

// startModel starts a scripted model that speaks a vendor's wire over HTTP, or
// gives the one of that wire new answers:
//
//	model WIRE FILE
//
// FILE holds its replies, one JSON object a line. $MODEL is its address, and
// asked is about it, from these answers on.
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: model WIRE FILE")
	}
	f, err := os.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	replies, err := llmtest.ReadReplies(f)
	ts.Check(err)
	s := of(ts)
	m := s.models[args[0]]
	if m == nil {
		m = newModel(ts, llmtest.Wire(args[0]))
		s.models[args[0]] = m
	}
	m.mu.Lock()
	m.answers, m.before = llmtest.Replies(replies...), len(m.server.Requests())
	m.mu.Unlock()
	s.model = m
	ts.Setenv("MODEL", m.server.URL())
}

func newModel(ts *testscript.TestScript, wire llmtest.Wire) *scriptedModel {
	m := &scriptedModel{}
	m.server = llmtest.Start(wire, func(seen llmtest.Seen) llmtest.Reply {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.answers(seen)
	})
	ts.Defer(func() {
		m.server.Close()
		for _, p := range m.server.Problems() {
			ts.Logf("the scripted model: %v", p)
		}
	})
	return m
}

// requests are those that came since the model got its answers.
func (m *scriptedModel) requests() []llmtest.Seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.Requests()[m.before:]
}

func theModel(ts *testscript.TestScript) *scriptedModel {
	m := of(ts).model
	if m == nil {
		ts.Fatalf("no model was started")
	}
	return m
}

// modelAsked looks at a request that the model was sent:
//
//	[!] asked NUMBER TEXT…
//
// All texts are in it, as they are or as JSON writes them, or with ! none is.
// With a number alone, it waits until there were so many, or with ! looks that
// there were not.
func modelAsked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: [!] asked NUMBER TEXT…")
	}
	m := theModel(ts)
	if len(args) == 1 {
		number, err := strconv.Atoi(args[0])
		ts.Check(err)
		if neg {
			if len(m.requests()) == number {
				ts.Fatalf("the model was asked %d times", number)
			}
			return
		}
		testkit.Until(func() bool { return len(m.requests()) >= number })
		if got := len(m.requests()); got != number {
			ts.Fatalf("the model was asked %d times, want %d", got, number)
		}
		return
	}
	body := requestBody(ts, m, args[0])
	for _, text := range args[1:] {
		if (where(body, text) >= 0) == neg {
			ts.Fatalf("request %s has %q: %v\n%s", args[0], text, neg, body)
		}
	}
}

// modelOrder looks that texts stand in a request in this order:
//
//	order NUMBER TEXT…
func modelOrder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: order NUMBER TEXT TEXT…")
	}
	whole := requestBody(ts, theModel(ts), args[0])
	rest := whole
	for _, text := range args[1:] {
		i := where(rest, text)
		if i < 0 {
			ts.Fatalf("request %s does not have %q after the texts before it:\n%s", args[0], text, whole)
		}
		rest = rest[i+1:]
	}
}

// requestBody returns a request by its number, or the last one.
func requestBody(ts *testscript.TestScript, m *scriptedModel, number string) string {
	requests := m.requests()
	n := len(requests)
	if number != "last" {
		var err error
		n, err = strconv.Atoi(number)
		ts.Check(err)
	}
	if n < 1 || n > len(requests) {
		ts.Fatalf("the model was asked %d times; there is no request %s", len(requests), number)
	}
	return string(requests[n-1].Body)
}

// where finds a text in JSON, as it is or as a string there has it.
func where(body, text string) int {
	if i := strings.Index(body, text); i >= 0 {
		return i
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text always can
	return strings.Index(body, strings.Trim(b.String(), "\"\n"))
}

// An eventLine is an event of a turn, as "ken chat --json" prints it, without
// what differs from run to run: ids, times, and how a text was cut.
type eventLine struct {
	Type, Error, Kind, Text, Intent, Reason, Name, Justification, Target string

	Call struct {
		Target, Intent string
		Arguments      json.RawMessage
	}
	Result struct {
		Failed bool
		Parts  []struct{ Text string }
	}
	Steps, Calls int
}

// String is empty for events that say nothing of what was done.
func (e *eventLine) String() string {
	switch e.Type {
	case "started":
		return fmt.Sprintf("started %s %s %s", e.Call.Target, e.Call.Arguments, e.Call.Intent)
	case "finished":
		line := fmt.Sprintf("finished %s failed=%v %s", e.Target, e.Result.Failed, e.Kind)
		for _, p := range e.Result.Parts {
			if p.Text != "" {
				line += fmt.Sprintf(" %q", p.Text)
			}
		}
		return line
	case "intended":
		return fmt.Sprintf("intended %s %s", e.Intent, e.Justification)
	case "notice":
		return "notice " + e.Name
	case "done":
		return fmt.Sprintf("done %s %q steps=%d calls=%d", e.Reason, e.Text, e.Steps, e.Calls)
	case "error":
		return "error " + e.Kind
	}
	return ""
}

// happened writes down what happened in the turn that standard output tells of,
// a line for each thing. Calls that end together are in the order of their
// lines.
//
//	events FILE
func happened(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: events FILE")
	}
	var out, together []string
	for _, text := range strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n") {
		var ev eventLine
		if err := json.Unmarshal([]byte(text), &ev); err != nil {
			ts.Fatalf("%q is no event: %v", text, err)
		}
		line := strings.TrimSpace(ev.String())
		if ev.Type == "finished" {
			together = append(together, line)
			continue
		}
		slices.Sort(together)
		out, together = append(out, together...), nil
		if line != "" {
			out = append(out, line)
		}
	}
	out = append(out, together...)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(out, "\n")+"\n"), 0o644))
}
