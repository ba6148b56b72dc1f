package trailapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"ken/internal/door"
	"ken/internal/testkit"
)

// TestInvoke: each way in which a call has no result has its status and code. The
// scripts api_calls and api_bad have most of them.
func TestInvoke(t *testing.T) {
	rg := newRig(t)
	if x := rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:fail"}); x.doc["result"].(object)["failed"] != true {
		t.Errorf("what failed by itself = %s, want a result that says so", x.body)
	}
	for _, c := range []struct {
		name   string
		body   any
		status int
		code   string
		says   []string
	}{
		{"unknown intent", `{"target":"tool:look","intent":"SNOOP"}`, 403, "denied", []string{`"fix":"Send the member intent with the call: one of PLAN`}},
		{"other intent", object{"target": "tool:write"}, 403, "denied", []string{`"rule"`, `"fix"`, "intent"}},
		{"line with arguments", object{"line": "/look", "arguments": object{}}, 400, "invalid", nil},
		{"no object", object{"target": "tool:look", "arguments": []int{1}}, 400, "invalid", nil},
		{"unknown member", `{"target":"tool:look","origin":"person"}`, 400, "invalid", nil},
		{"long session", object{"target": "tool:look", "session": strings.Repeat("x", 300)}, 400, "invalid", []string{"session"}},
		{"again by a program", object{"target": "tool:look", "answers": object{door.AnswerAgain: "e"}}, 400, "invalid", []string{"asPerson"}},
		{"question", object{"target": "tool:asks"}, 409, "input-needed", []string{`"requests":{"city"`, `"state":"s1"`}},
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
}

// TestLargeResult: an answer has at most about a megabyte, says what it left out
// and how to read it, and by its handle all of it can be read.
func TestLargeResult(t *testing.T) {
	testkit.CI(t, "results of megabytes")
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
// secrets, standard error apart; then the result.
func TestInvokeStream(t *testing.T) {
	rg := newRig(t)
	resp := rg.open(t.Context(), "ann", "POST", "/api/v1/invoke", object{"target": "tool:talk"}, "text/event-stream")
	defer resp.Body.Close()
	said := map[string]string{} // by kind: an event may hold more than one piece
	for e := range events(t, resp.Body) {
		switch {
		case e["type"] == "output" && e["stderr"] == true:
			said["errors"] += e["text"].(string)
		case e["type"] == "output":
			said["output"] += e["text"].(string)
		case e["type"] == "progress":
			said["progress"] += fmt.Sprint(e["done"], e["total"], e["message"])
		case e["type"] == "stage":
			said["stages"] += fmt.Sprint(e["stage"], " ")
		case e["type"] == "result":
			said["result"] += fmt.Sprint(e["target"])
		}
	}
	want := map[string]string{
		"output": "one [secret]\ntwo €\n", "errors": "trouble", "progress": "1 2half",
		"stages": "VALIDATING LOADING EXECUTING FINALIZING DONE ", "result": "tool:talk",
	}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("the stream is %q, want %q", said, want)
	}
}

// TestInvokeStreamGone: a call ends when its client goes.
func TestInvokeStreamGone(t *testing.T) {
	rg := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	resp := rg.open(ctx, "ann", "POST", "/api/v1/invoke", object{"target": "tool:slow", "session": "gone"}, "text/event-stream")
	cancel()
	resp.Body.Close()
	testkit.Wait(t, "the call is cancelled", func() bool { return len(rg.records("ann", "?session=gone&status=CANCELLED")) == 1 })
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
