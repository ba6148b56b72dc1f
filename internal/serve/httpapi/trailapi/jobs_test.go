package trailapi

import (
	"strings"
	"testing"
)

// TestJobs: everybody has his own jobs, and those of others are not there; an
// agent has the jobs of agents, and does not decide what may run twice.
func TestJobs(t *testing.T) {
	rg := newRig(t)
	x := rg.want(202, "", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "arguments": object{"text": "a"}, "session": "s", "priority": 2, "asPerson": true})
	path, _ := x.doc["url"].(string)
	if x.doc["state"] != "queued" || x.doc["target"] != "tool:look" || x.doc["session"] != "s" || x.doc["priority"] != 2.0 || !strings.HasSuffix(path, x.doc["id"].(string)) {
		t.Fatalf("the job is %s", x.body)
	}
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
	if x := rg.want(200, "", "ann", "POST", path+"/cancel", nil); x.doc["state"] != "cancelled" || x.doc["why"] != "cancelled by ann" {
		t.Errorf("cancelled = %s", x.body)
	}
	rg.want(409, "", "ann", "POST", path+"/cancel", nil)
	if x := rg.want(200, "", "ann", "POST", path+"/retry", object{}); x.doc["state"] != "queued" || x.doc["attempt"] != 1.0 {
		t.Errorf("run again = %s", x.body)
	}
	rg.want(400, "invalid", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "answers": object{"consent": "x"}})
	rg.want(400, "invalid", "ann", "POST", "/api/v1/jobs", object{"target": "tool:look", "schedule": "now and then"})
}
