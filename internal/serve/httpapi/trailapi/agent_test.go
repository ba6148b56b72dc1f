package trailapi

import (
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/queue"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// TestAgent: an agent answers nothing that a call asks, agrees to nothing and takes
// nothing back, before anything else is looked at. The script api_agents has what
// it may do.
func TestAgent(t *testing.T) {
	rg := newRig(t)
	ticket := rg.asked("ann", "a")
	for _, try := range []struct {
		path string
		body any
	}{
		{"/api/v1/approvals/" + ticket, object{"effect": "deny"}},
		{"/api/v1/approvals/nothing", `{"effect":`},
		{"/api/v1/grants/nothing/revoke", object{}},
		{"/api/v1/invoke", object{"target": "tool:asks", "answers": object{"city": "Ulm"}, "state": "s1", "intent": "EXECUTE"}},
		{"/api/v1/invoke", object{"target": "tool:destroy", "answers": object{"consent": ticket}, "intent": "EXECUTE"}},
	} {
		x := rg.want(403, "person-decides", "imp", "POST", try.path, try.body)
		if detail, _ := x.doc["detail"].(string); !strings.Contains(detail, "open the page") {
			t.Errorf("POST %s is refused with %q, want what to do", try.path, detail)
		}
	}
}

// TestAgentsSessions: a session that an agent names is its own, and no person's of
// that name. It reads what was kept there and in conversations that agents began,
// and nothing of what its person's brought: neither by its handle nor in its
// story. That there is such a result is on the trail, which is theirs alike.
func TestAgentsSessions(t *testing.T) {
	rg := newRig(t)
	for _, c := range []struct {
		maker, session string
		reads          map[string]int // whoever reads, and the session they name
	}{
		{"imp", "k", map[string]int{"imp k": 200, "imp agent:k": 200, "imp ": 404, "ann k": 404, "ann agent:k": 200}},
		{"ann", "k", map[string]int{"imp k": 404, "imp agent:k": 404, "imp ": 404, "ann k": 200, "bot k": 200, "bob k": 404}},
		{"ann", "", map[string]int{"imp api": 404, "imp ": 404, "ann ": 200}},
		{"ann", "begun-by-agent", map[string]int{"imp begun-by-agent": 200, "imp agent:begun-by-agent": 404, "ann begun-by-agent": 200, "bob begun-by-agent": 404}},
	} {
		x := rg.want(200, "", c.maker, "POST", "/api/v1/invoke", object{"target": "tool:look", "session": c.session, "arguments": object{"text": "hers"}})
		res, _ := x.doc["result"].(object)
		handle, _ := res["handle"].(string)
		imp := false
		for read, status := range c.reads {
			who, session, _ := strings.Cut(read, " ")
			if x := rg.ask(who, "GET", "/api/v1/results/"+handle+"?session="+session, nil); x.status != status || strings.Contains(x.body, "hers") != (status == 200) {
				t.Errorf("made by %s in %q, %s reads it in %q: %d %s, want %d", c.maker, c.session, who, session, x.status, x.body, status)
			}
			imp = imp || who == "imp" && status == 200
		}
		made := rg.records("imp", "?event=capability_executed&limit=1")[0]
		if made["result_handle"] != handle {
			t.Fatalf("the trail of an agent ends with %v, want the result %s", made, handle)
		}
		for who, reads := range map[string]bool{"ann": true, "imp": imp} {
			kept, _ := rg.want(200, "", who, "GET", "/api/v1/audit/"+made["id"].(string), nil).doc["result"].(object)
			if text, _ := kept["text"].(string); kept["handle"] != handle || strings.Contains(text, "hers") != reads || (text != "") != reads {
				t.Errorf("made by %s in %q, its story shows %s the result %v; with its text: %t", c.maker, c.session, who, kept, reads)
			}
		}
	}
}

// TestAgentsTickets: an agent is told that a call waits, and by which rule. What its
// person sees in order to decide, it does not see: not when it made the call, nor
// later, nor in the call's story.
func TestAgentsTickets(t *testing.T) {
	rg := newRig(t)
	call := `{"target":"tool:destroy","arguments":{"text":"a"},"session":"s","intent":"EXECUTE"}`
	for maker, decides := range map[string]bool{"ann": true, "imp": false} {
		x := rg.want(409, "unapproved", maker, "POST", "/api/v1/invoke", call)
		id, _ := x.doc["ticket"].(string)
		if _, lines := x.doc["lines"]; lines != decides || x.doc["rule"] == nil || x.doc["why"] == nil {
			t.Errorf("%s is told of its call: %s; with lines, want %t", maker, x.body, decides)
		}
		for _, state := range []string{"pending", "denied"} {
			for who, sees := range map[string]bool{"ann": true, "boss": true, "imp": false, "aide": false} {
				list := objects(rg.want(200, "", who, "GET", "/api/v1/approvals?state="+state, nil).doc["tickets"])
				i := slices.IndexFunc(list, func(one object) bool { return one["id"] == id })
				if i < 0 {
					t.Fatalf("%s does not see the ticket %s that is %s", who, id, state)
				}
				if lines, _ := list[i]["lines"].([]any); len(lines) > 0 != sees || (list[i]["offers"] != nil) != sees && state == "pending" || list[i]["rule"] == nil {
					t.Errorf("%s, made by %s: %s sees %v; with lines, want %t", state, maker, who, list[i], sees)
				}
			}
			rec := rg.records("imp", "?event=capability_asked&limit=1")[0]
			told, _ := rg.want(200, "", "imp", "GET", "/api/v1/audit/"+rec["id"].(string), nil).doc["ticket"].(object)
			if lines, _ := told["lines"].([]any); told["id"] != id || len(lines) > 0 {
				t.Errorf("%s: the story has for an agent the ticket %v", state, told)
			}
			if state == "pending" {
				rg.want(200, "", "ann", "POST", "/api/v1/approvals/"+id, object{"effect": "deny"})
			}
		}
	}
}

// TestSessionsOfAgents: an agent with a token of its own has sessions that no other
// agent can name.
func TestSessionsOfAgents(t *testing.T) {
	imp := people()["imp"]
	named := func(name string) auth.Identity {
		who := imp
		who.Principal.Agent = name
		return who
	}
	for _, c := range []struct {
		who        auth.Identity
		name, want string
	}{
		{imp, "", "agent:api"},
		{imp, "agent:s", "agent:s"},
		{imp, "agent.dep:api", "agent:agent.dep:api"},
		{named("dep"), "", "agent.dep:api"},
		{named("dep"), "agent.dep:api", "agent.dep:api"},
		{named("dep"), "agent:s", "agent.dep:agent:s"},
		{named("other"), "agent.dep:api", "agent.other:agent.dep:api"},
	} {
		r := &wire.Request{Who: c.who}
		if got := sessionOf(r, c.name); got != c.want {
			t.Errorf("session %q of %q = %q, want %q", c.name, c.who.Principal.Agent, got, c.want)
		}
		job := &queue.Job{Call: capability.Call{Principal: c.who.Principal, Session: c.want}}
		if !owns(c.who, job) || owns(named("third"), job) {
			t.Errorf("session %q: the job is its agent's: %t; another's: %t", c.want, owns(c.who, job), owns(named("third"), job))
		}
	}
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
