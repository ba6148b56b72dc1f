package trailapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/internal/door"
)

// TestInvoke: a line and a target give a result on the record, and each way in
// which there is none has its status and code.
func TestInvoke(t *testing.T) {
	rg := newRig(t)
	x := rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"line": "/look here"})
	if x.doc["target"] != "tool:look" || x.doc["session"] != "api" || x.doc["took_ms"] == nil || !strings.Contains(x.body, `did {\"text\":\"here\"}`) {
		t.Errorf("invoke of a line = %s", x.body)
	}
	x = rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "look", "arguments": object{"text": "x"}, "session": "s2"})
	if x.doc["session"] != "s2" || x.doc["result"].(object)["failed"] != nil {
		t.Errorf("invoke of a target = %s", x.body)
	}
	x = rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:fail"})
	if x.doc["result"].(object)["failed"] != true {
		t.Errorf("what failed by itself = %s, want a result that says so", x.body)
	}
	for _, c := range []struct {
		name   string
		body   any
		status int
		code   string
		says   []string
	}{
		{"no intent", `{"target":"tool:look"}`, 403, "denied", []string{"intents.none.read", `"fix":"Send the member intent with the call: `, "READ_FILE", "policy.intents"}},
		{"unknown intent", `{"target":"tool:look","intent":"SNOOP"}`, 403, "denied", []string{`"fix":"Send the member intent with the call: one of PLAN`}},
		{"other intent", object{"target": "tool:write"}, 403, "denied", []string{`"rule"`, `"fix"`, "intent"}},
		{"unknown", object{"target": "tool:nothing"}, 404, "not-found", nil},
		{"unknown line", object{"line": "/nothing"}, 404, "not-found", nil},
		{"neither", object{}, 400, "invalid", []string{"either"}},
		{"both", object{"line": "/look", "target": "tool:look"}, 400, "invalid", nil},
		{"line with arguments", object{"line": "/look", "arguments": object{}}, 400, "invalid", nil},
		{"wrong arguments", object{"target": "tool:look", "arguments": object{"text": 1}}, 400, "invalid", []string{"text"}},
		{"no object", object{"target": "tool:look", "arguments": []int{1}}, 400, "invalid", nil},
		{"unknown member", `{"target":"tool:look","origin":"person"}`, 400, "invalid", nil},
		{"bad JSON", `{"target":`, 400, "invalid", nil},
		{"long session", object{"target": "tool:look", "session": strings.Repeat("x", 300)}, 400, "invalid", []string{"session"}},
		{"again by a program", object{"target": "tool:look", "answers": object{door.AnswerAgain: "e"}}, 400, "invalid", []string{"asPerson"}},
		{"question", object{"target": "tool:asks"}, 409, "input-needed", []string{`"requests":{"city"`, `"state":"s1"`}},
		{"consent", object{"target": "tool:destroy", "asPerson": true, "arguments": object{"text": "rm"}}, 409, "unapproved", []string{`"ticket"`, `"lines":[{"name":"command","text":"run {\"text\":\"rm\"}"}`, `"expires"`}},
		{"timeout", object{"target": "tool:slow"}, 504, "timeout", []string{"limits.timeout"}},
		{"mode", object{"target": "tool:look", "mode": "no such mode"}, 404, "not-found", nil},
	} {
		x := rg.want(c.status, c.code, "ann", "POST", "/api/v1/invoke", c.body)
		for _, s := range c.says {
			if !strings.Contains(x.body, s) {
				t.Errorf("%s: %s, want %q in it", c.name, x.body, s)
			}
		}
	}
	rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:asks", "answers": object{"city": "Ulm"}, "state": "s1"})
	rg.want(403, "denied", "none", "POST", "/api/v1/invoke", object{"target": "tool:look"})
	if got := rg.records("ann", "?target=tool:look&event=capability_executed"); len(got) != 2 {
		t.Errorf("the trail has %d of them, want 2", len(got))
	}
}

// TestInvokeConsent: what was agreed to runs once, and by its key only once.
// TestInvokeAsPerson: that a person calls is not a program's to say.
func TestInvokeAsPerson(t *testing.T) {
	rg := newRig(t)
	for _, body := range []object{{"target": "tool:destroy", "asPerson": true}, {"target": "tool:nothing", "asPerson": true}, {"target": "tool:look", "asPerson": true, "intent": "READ_FILE"}} {
		x := rg.want(403, "not-a-person", "bot", "POST", "/api/v1/invoke", body)
		if detail, _ := x.doc["detail"].(string); !strings.Contains(detail, "intent") || !strings.Contains(detail, "page") {
			t.Errorf("the refusal says %q, want what to do", detail)
		}
	}
	rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:look", "asPerson": true})
	rg.want(200, "", "bot", "POST", "/api/v1/invoke", object{"target": "tool:look"})
}

func TestInvokeConsent(t *testing.T) {
	rg := newRig(t)
	id := rg.asked("ann", "a")
	call := object{"target": "tool:destroy", "arguments": object{"text": "a"}, "session": "s", "asPerson": true, "key": "k"}
	rg.want(200, "", "boss", "POST", "/api/v1/approvals/"+id, object{"effect": "grant"})
	x := rg.want(200, "", "ann", "POST", "/api/v1/invoke", call)
	if x = rg.want(200, "", "ann", "POST", "/api/v1/invoke", call); !strings.Contains(x.body, `"repeated":"true"`) {
		t.Errorf("again under the same key = %s, want the earlier result", x.body)
	}
	call["key"] = "k2"
	rg.want(409, "unapproved", "ann", "POST", "/api/v1/invoke", call)

	id = rg.asked("ann", "b")
	rg.want(200, "", "ann", "POST", "/api/v1/approvals/"+id, object{"effect": "deny", "note": "not today"})
	x = rg.want(403, "denied", "ann", "POST", "/api/v1/invoke", object{
		"target": "tool:destroy", "arguments": object{"text": "b"}, "session": "s", "asPerson": true, "answers": object{door.AnswerConsent: id},
	})
	if !strings.Contains(x.body, "not today") {
		t.Errorf("a call that was refused = %s, want the reason", x.body)
	}
}

// TestInvokeLarge: an answer has at most about a megabyte, says what it left out
// and how to read it, and by its handle all of it can be read.
func TestInvokeLarge(t *testing.T) {
	rg := newRig(t)
	x := rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:big", "session": "s"})
	res := x.doc["result"].(object)
	handle, _ := res["handle"].(string)
	if len(x.body) > 5<<18 || x.doc["cut"] != 3_200_000.0-(1<<20) || handle == "" || !strings.Contains(x.body, "left out; GET /api/v1/results/"+handle) {
		t.Fatalf("invoke = %d bytes, cut %v, handle %q", len(x.body), x.doc["cut"], handle)
	}
	var all strings.Builder
	for next := "1"; next != ""; {
		p := rg.want(200, "", "ann", "GET", "/api/v1/results/"+handle+"?session=s&from="+next, nil)
		all.WriteString(p.doc["text"].(string))
		next = ""
		if n, ok := p.doc["next"].(float64); ok {
			next = fmt.Sprintf("%.0f", n)
		}
	}
	if want := strings.Repeat("0123456789abcde\n", 200_000); all.String() != want {
		t.Errorf("the pieces are %d characters, want %d", all.Len(), len(want))
	}
	x = rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:image"})
	if len(x.body) > 1<<20 || !strings.Contains(x.body, "image/png left out; nothing keeps the rest") || !strings.Contains(x.body, "seen") {
		t.Errorf("an image = %.300s, want it left out aloud", x.body)
	}
}

// events reads the data of server-sent events until there are no more.
func events(t testing.TB, body io.Reader) <-chan object {
	t.Helper()
	out := make(chan object, 1000)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				if lines.Text() != "" {
					out <- object{"type": lines.Text()}
				}
				continue
			}
			var o object
			if err := json.Unmarshal([]byte(data), &o); err != nil {
				t.Errorf("event %q: %v", data, err)
			}
			out <- o
		}
	}()
	return out
}

// TestInvokeStream: output comes as it is written, whole characters, without
// secrets, standard error apart; then the result, or the problem.
func TestInvokeStream(t *testing.T) {
	rg := newRig(t)
	run := func(body object) (all []object) {
		resp := rg.open(t.Context(), "ann", "POST", "/api/v1/invoke", body, "text/event-stream")
		defer resp.Body.Close()
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%d %s", resp.StatusCode, resp.Header)
		}
		for e := range events(t, resp.Body) {
			all = append(all, e)
		}
		return all
	}
	all := run(object{"target": "tool:talk"})
	var out, errs string
	progress := false
	var stages []any
	for _, e := range all {
		switch {
		case e["type"] == "stage":
			stages = append(stages, e["stage"], e["percent"])
		case e["type"] == "output" && e["stderr"] == true:
			errs += e["text"].(string)
		case e["type"] == "output":
			out += e["text"].(string)
		case e["type"] == "progress":
			progress = e["done"] == 1.0 && e["total"] == 2.0 && e["message"] == "half"
		}
	}
	last := all[len(all)-1]
	if out != "one [secret]\ntwo €\n" || errs != "trouble" || !progress || last["type"] != "result" || last["target"] != "tool:talk" {
		t.Errorf("output %q, errors %q, progress %v, last %v", out, errs, progress, last)
	}
	if want := []any{"VALIDATING", 5.0, "LOADING", 15.0, "EXECUTING", 60.0, "FINALIZING", 90.0, "DONE", 100.0}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	all = run(object{"target": "tool:destroy", "asPerson": true})
	last = all[len(all)-1]
	problem, _ := last["problem"].(object)
	if last["type"] != "problem" || problem["code"] != "unapproved" || problem["status"] != 409.0 || problem["ticket"] == nil {
		t.Errorf("the last event is %v, want the problem", last)
	}
	// What cannot be understood is a plain problem.
	resp := rg.open(t.Context(), "ann", "POST", "/api/v1/invoke", object{}, "text/event-stream")
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a bad request = %d, want 400", resp.StatusCode)
	}
}

// TestInvokeStreamGone: a call ends when its client goes.
func TestInvokeStreamGone(t *testing.T) {
	rg := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	resp := rg.open(ctx, "ann", "POST", "/api/v1/invoke", object{"target": "tool:slow", "session": "gone"}, "text/event-stream")
	cancel()
	resp.Body.Close()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if got := rg.records("ann", "?session=gone&status=CANCELLED"); len(got) == 1 {
			return
		}
		if got := rg.records("ann", "?session=gone&status=TIMEOUT"); len(got) == 1 {
			t.Fatal("the call ran to its end")
		}
		if time.Now().After(deadline) {
			t.Fatal("the call has no closing record")
		}
	}
}

// TestLiveSlowClient: what a client does not take in time is counted.
func TestLiveSlowClient(t *testing.T) {
	l := &live{news: make(chan struct{}, 1)}
	l.err.of = l
	line := strings.Repeat("x", 999) + "\n"
	for range 400 {
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	var got []output
	l.take(true, func(v any) { got = append(got, v.(output)) })
	if len(got) != 1 || len(got[0].Text)+got[0].Left != 400_000 || len(got[0].Text) != mostWaits {
		t.Errorf("%d events; want one with %d bytes, and the rest counted", len(got), mostWaits)
	}
}
