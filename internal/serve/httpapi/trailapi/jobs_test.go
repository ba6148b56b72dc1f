package trailapi

import (
	"io"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/queue"
	"ken/internal/testkit"
	"ken/internal/testkit/queuetest"
)

// TestJobs: everybody has his own jobs, and those of others are not there; an
// agent has the jobs of agents, and does not decide what may run twice. The script
// api_jobs has how jobs run, are cancelled and run again.
func TestJobs(t *testing.T) {
	rg := newRig(t)
	x := rg.want(202, "", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "arguments": object{"text": "a"}, "session": "s", "priority": 2, "asPerson": true})
	path := x.doc["url"].(string)
	of := rg.want(202, "", "imp", "POST", "/api/v1/jobs", object{"line": "/look b", "session": "s"})
	if of.doc["session"] != "agent:s" {
		t.Errorf("the job of an agent is %s, want a session of agents", of.body)
	}
	for who, n := range map[string]int{"ann": 2, "bot": 2, "imp": 1, "bob": 0, "boss": 0, "cyn": 0, "root": 0} {
		if got := objects(rg.want(200, "", who, "GET", "/api/v1/jobs", nil).doc["jobs"]); len(got) != n {
			t.Errorf("%s sees %v, want %d jobs", who, got, n)
		}
	}
	for _, who := range []string{"bob", "boss", "cyn", "root", "imp", "aide"} {
		rg.want(404, "not-found", who, "GET", path, nil)
		rg.want(404, "not-found", who, "POST", path+"/cancel", nil)
		rg.want(404, "not-found", who, "POST", path+"/retry", object{})
	}
	rg.want(403, "person-decides", "imp", "POST", of.doc["url"].(string)+"/retry", object{"again": true})
	rg.want(403, "not-a-person", "bot", "POST", "/api/v1/jobs", object{"target": "tool:look", "asPerson": true})
	if x := rg.want(200, "", "ann", "GET", "/api/v1/jobs?limit=1", nil); len(objects(x.doc["jobs"])) != 1 || x.doc["cut"] != 1.0 {
		t.Errorf("limit 1 = %s, want one and that one is left out", x.body)
	}
	rg.want(400, "invalid", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "answers": object{"consent": "x"}})
}

// TestJobStream: the stream of a job has the job as it is and each change of it,
// and ends with the job. Who comes again with the last event gets nothing twice,
// and the job of another is not there. The feed says which job changed, to its
// owner alone.
func TestJobStream(t *testing.T) {
	rg := newRig(t)
	ann, bob := rg.listen("ann"), rg.listen("bob")
	ann.next("catalog")
	bob.next("catalog")
	x := rg.want(202, "", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "arguments": object{"text": "a"}})
	id, path := x.doc["id"].(string), x.doc["events"].(string)
	if e := ann.next("jobs"); e["id"] != id || e["state"] != "queued" {
		t.Errorf("feed = %v, want the job", e)
	}
	rg.want(404, "not-found", "bob", "GET", path, nil)
	rg.want(404, "not-found", "imp", "GET", path, nil)
	resp := rg.open(t.Context(), "ann", "GET", path, nil, "text/event-stream")
	defer resp.Body.Close()
	l := &listener{t: t, events: events(t, resp.Body)}
	if e := l.next("job"); e["id"] != id || e["state"] != "queued" || e["target"] != "tool:look" {
		t.Fatalf("the first event is %v, want the job", e)
	}
	q := testkit.Must(rg.Jobs())(t)
	j, ok, err := queuetest.Claim(t.Context(), q, "w", queue.Limits{})
	if err != nil || !ok {
		t.Fatalf("Claim() = %v, %v", ok, err)
	}
	if e := l.next("job"); e["state"] != "running" {
		t.Errorf("after the claim the event is %v", e)
	}
	testkit.OK(t, q.Report(t.Context(), id, queue.Progress{Done: 1, Total: 4, Message: "a quarter", At: time.Now()}))
	if p, _ := l.next("job")["progress"].(object); p["done"] != 1.0 || p["message"] != "a quarter" {
		t.Errorf("progress = %v", p)
	}
	if _, err := q.Finish(t.Context(), j, queue.Outcome{State: queue.Done, Result: &capability.Result{Parts: []capability.Part{{Text: "seen"}}}}); err != nil {
		t.Fatal(err)
	}
	last := l.next("job")
	if res, _ := last["result"].(object); last["state"] != "done" || res["parts"] == nil {
		t.Errorf("the last event is %v, want the result", last)
	}
	if e, more := <-l.events; more {
		t.Errorf("after the end there is %v", e)
	}
	again := rg.open(t.Context(), "ann", "GET", path+"?after=1", nil, "text/event-stream")
	defer again.Body.Close()
	all, err := io.ReadAll(again.Body)
	if err != nil || !strings.Contains(string(all), `"state":"done"`) {
		t.Errorf("with an old event the stream is %s, %v", all, err)
	}
	_, after, _ := strings.Cut(string(all), "id: ")
	after, _, _ = strings.Cut(after, "\n")
	none := rg.open(t.Context(), "ann", "GET", path+"?after="+after, nil, "text/event-stream")
	none.Body.Close()
	if none.StatusCode != 204 {
		t.Errorf("with the last event the stream is %d, want 204", none.StatusCode)
	}
	select {
	case e := <-bob.events:
		if e["type"] == "jobs" {
			t.Errorf("another's feed tells of %v", e)
		}
	default:
	}
}
