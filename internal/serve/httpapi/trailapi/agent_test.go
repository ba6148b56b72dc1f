package trailapi

import (
	"strings"
	"testing"

	"ken/internal/serve/httpapi/wire"
)

// TestAgent: an agent makes calls with an intent, and sees what waits; it agrees
// to nothing, takes nothing back, and answers nothing that a call asks. When its
// person has agreed, its call runs.
func TestAgent(t *testing.T) {
	rg := newRig(t)
	rg.want(200, "", "imp", "POST", "/api/v1/invoke", object{"target": "tool:look", "intent": "READ_FILE"})
	rg.want(200, "", "imp", "POST", "/api/v1/invoke", object{"line": "/look here", "intent": "READ_FILE"})
	rg.want(403, "denied", "imp", "POST", "/api/v1/invoke", `{"line":"/look here"}`)
	const call = `{"target":"tool:destroy","arguments":{"text":"a"},"session":"s","intent":"EXECUTE"}`
	x := rg.want(409, "unapproved", "imp", "POST", "/api/v1/invoke", call)
	ticket, _ := x.doc["ticket"].(string)
	x = rg.want(200, "", "imp", "GET", "/api/v1/approvals", nil)
	if !strings.Contains(x.body, ticket) || ticket == "" {
		t.Errorf("approvals = %s, want the ticket %q", x.body, ticket)
	}
	for _, try := range []struct {
		path string
		body any
	}{
		{"/api/v1/approvals/" + ticket, object{"effect": "grant"}},
		{"/api/v1/approvals/" + ticket, object{"effect": "deny"}},
		{"/api/v1/approvals/nothing", `{"effect":`}, // before anything else is looked at
		{"/api/v1/grants/nothing/revoke", object{}},
		{"/api/v1/invoke", object{"target": "tool:asks", "answers": object{"city": "Ulm"}, "state": "s1", "intent": "EXECUTE"}},
		{"/api/v1/invoke", object{"target": "tool:destroy", "answers": object{"consent": ticket}, "intent": "EXECUTE"}},
	} {
		x := rg.want(403, "person-decides", "imp", "POST", try.path, try.body)
		if detail, _ := x.doc["detail"].(string); !strings.Contains(detail, "open the page") {
			t.Errorf("POST %s is refused with %q, want what to do", try.path, detail)
		}
	}
	rg.want(403, "not-a-person", "imp", "POST", "/api/v1/invoke", object{"target": "tool:look", "asPerson": true})
	rg.want(409, "unapproved", "imp", "POST", "/api/v1/invoke", call)
	rg.want(200, "", "boss", "POST", "/api/v1/approvals/"+ticket, object{"effect": "grant"})
	rg.want(200, "", "imp", "POST", "/api/v1/invoke", call)
}

// TestAgentsSessions: a session that an agent names is its own, and no person's of
// that name. It reads what was kept there, and in its person's.
func TestAgentsSessions(t *testing.T) {
	rg := newRig(t)
	kept := func(who, session string) string {
		t.Helper()
		x := rg.want(200, "", who, "POST", "/api/v1/invoke", object{"target": "tool:look", "session": session, "intent": "READ_FILE"})
		res, _ := x.doc["result"].(object)
		handle, _ := res["handle"].(string)
		return handle
	}
	own, hers := kept("imp", "k"), kept("ann", "k")
	rg.want(404, "not-found", "ann", "GET", "/api/v1/results/"+own+"?session=k", nil)
	rg.want(200, "", "imp", "GET", "/api/v1/results/"+own+"?session=k", nil)
	rg.want(200, "", "imp", "GET", "/api/v1/results/"+own+"?session=agent:k", nil)
	rg.want(200, "", "imp", "GET", "/api/v1/results/"+hers+"?session=k", nil)
	rg.want(404, "not-found", "imp", "GET", "/api/v1/results/"+hers, nil)
}

// TestGivenKeys: a key that a caller gives is never one that the program makes
// for the calls of a conversation.
func TestGivenKeys(t *testing.T) {
	a := &api{}
	for who, session := range map[string]string{"ann": "S", "imp": "agent:S"} {
		call, err := a.callOf(&wire.Request{Who: people()[who]}, &invocation{Target: "tool:look", Session: "S", Key: "S/1/1"})
		if err != nil || call.Key != "api:S/1/1" || call.Session != session {
			t.Errorf("callOf for %s = session %q, key %q, %v, want %q and api:S/1/1", who, call.Session, call.Key, err, session)
		}
	}
}
