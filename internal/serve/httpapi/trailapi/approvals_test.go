package trailapi

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/testkit"
)

// TestApprovals: who sees which questions, and how lists end. The script
// api_consent has how they are shown and settled.
func TestApprovals(t *testing.T) {
	rg := newRig(t)
	first, second := rg.asked("ann", "one"), rg.asked("ann", "two")
	third := rg.asked("bob", "three")
	for who, want := range map[string]string{"ann": second + " " + first, "bob": third, "boss": third + " " + second + " " + first, "cyn": "", "root": "", "none": ""} {
		x := rg.want(200, "", who, "GET", "/api/v1/approvals", nil)
		if got := field(objects(x.doc["tickets"]), "id"); got != want || x.doc["cut"] != 0.0 || x.doc["tickets"] == nil {
			t.Errorf("%s sees %s, want %s", who, x.body, want)
		}
	}
	x := rg.want(200, "", "boss", "GET", "/api/v1/approvals?limit=2", nil)
	if list := objects(x.doc["tickets"]); len(list) != 2 || x.doc["cut"] != 1.0 || list[0]["mine"] != false {
		t.Errorf("limit 2 = %s", x.body)
	}
	rg.want(200, "", "bob", "POST", "/api/v1/approvals/"+third, object{"effect": "deny", "note": "no"})
	for state, want := range map[string]string{"denied": third, "granted": "", "expired": "", "all": third} {
		x := rg.want(200, "", "bob", "GET", "/api/v1/approvals?state="+state, nil)
		if got := field(objects(x.doc["tickets"]), "id"); got != want {
			t.Errorf("state %s = %s, want %s", state, x.body, want)
		}
	}
}

// TestSettleRefusals: each answer that does not count, and why.
func TestSettleRefusals(t *testing.T) {
	rg := newRig(t)
	id := rg.asked("ann", "x")
	for _, body := range []object{
		{}, {"effect": "maybe"}, {"effect": "grant", "scope": "always"}, {"effect": "grant", "scope": "until"}, {"effect": "grant", "scope": "ever"},
		{"effect": "deny", "scope": "always"}, {"effect": "grant", "note": strings.Repeat("x", 5000)}, {"effect": "grant", "by": "root"},
	} {
		rg.want(400, "invalid", "ann", "POST", "/api/v1/approvals/"+id, body)
	}
	rg.want(200, "", "ann", "POST", "/api/v1/approvals/"+id, object{"effect": "grant", "note": "go"})
	x := rg.want(409, "settled", "boss", "POST", "/api/v1/approvals/"+id, object{"effect": "deny"})
	if a := x.doc["answer"].(object); a["by"] != "ann" || a["effect"] != "grant" || a["at"] == "" || x.doc["ticket"] != id {
		t.Errorf("settled = %s, want by whom and when", x.body)
	}
	late, err := rg.desk.Ask(t.Context(), approval.Question{
		Call: capability.Call{Target: "tool:destroy", Principal: people()["ann"].Principal, CapabilityHash: "h", Session: "s"}, For: time.Microsecond,
	})
	testkit.OK(t, err)
	for time.Now().Before(late.Expires) { // a microsecond
	}
	rg.want(409, "expired", "ann", "POST", "/api/v1/approvals/"+late.ID, object{"effect": "grant"})
}

// TestSettleRace: of many who answer at once one wins, and all others are told
// who did.
func TestSettleRace(t *testing.T) {
	rg := newRig(t)
	for i := range 5 {
		id := rg.asked("ann", fmt.Sprint(i))
		var wg sync.WaitGroup
		got := make([]exchange, 6)
		for j := range got {
			wg.Go(func() {
				who, effect := []string{"ann", "boss"}[j%2], []string{"grant", "deny"}[j/2%2]
				got[j] = rg.ask(who, "POST", "/api/v1/approvals/"+id, object{"effect": effect})
			})
		}
		wg.Wait()
		won := 0
		for _, x := range got {
			if x.status == 200 {
				won++
			} else if x.status != 409 || x.doc["code"] != "settled" || x.doc["answer"] == nil {
				t.Errorf("a loser is told %d %s", x.status, x.body)
			}
		}
		if won != 1 {
			t.Errorf("%d answers won, want 1", won)
		}
	}
	if n := len(rg.records("root", "?event=approval_settled")); n != 5 {
		t.Errorf("%d answers are on the record, want 5", n)
	}
}

// wide returns a ticket whose answer may reach further than one call.
func (rg *rig) wide(who, session string) string {
	rg.t.Helper()
	x := rg.want(409, "unapproved", who, "POST", "/api/v1/invoke", object{"target": "tool:write", "session": session, "asPerson": true})
	return x.doc["ticket"].(string)
}

// TestGrants: those that hold are listed to whom they concern, and taken back
// they no longer do.
func TestGrants(t *testing.T) {
	rg := newRig(t)
	id := rg.wide("ann", "s")
	rg.want(200, "", "boss", "POST", "/api/v1/approvals/"+id, object{"effect": "grant", "scope": "always", "note": "fine"})
	rg.want(200, "", "ann", "POST", "/api/v1/invoke", object{"target": "tool:write", "session": "another", "asPerson": true})
	for who, n := range map[string]int{"ann": 1, "boss": 1, "bob": 0, "cyn": 0, "root": 0} {
		if got := objects(rg.want(200, "", who, "GET", "/api/v1/grants", nil).doc["grants"]); len(got) != n {
			t.Errorf("%s sees %v, want %d grants", who, got, n)
		}
	}
	g := objects(rg.want(200, "", "ann", "GET", "/api/v1/grants", nil).doc["grants"])[0]
	if g["scope"] != "always" || g["by"] != "boss" || g["mine"] != true {
		t.Errorf("a grant = %v", g)
	}
	path := "/api/v1/grants/" + url.PathEscape(g["id"].(string)) + "/revoke"
	rg.want(404, "not-found", "bob", "POST", path, object{})
	rg.want(400, "invalid", "ann", "POST", path, object{"why": strings.Repeat("x", 5000)})
	rg.want(204, "", "ann", "POST", path, object{"why": "enough"})
	if x := rg.want(409, "ended", "ann", "POST", path, object{}); !strings.Contains(x.body, "enough") {
		t.Errorf("revoked twice = %s, want how it ended", x.body)
	}

	for i := range 3 {
		id := rg.wide("bob", fmt.Sprint("s", i))
		rg.want(200, "", "bob", "POST", "/api/v1/approvals/"+id, object{"effect": "grant", "scope": "session"})
	}
	x := rg.want(200, "", "bob", "GET", "/api/v1/grants?limit=2", nil)
	if list := objects(x.doc["grants"]); len(list) != 2 || list[0]["session"] != "s2" || x.doc["cut"] != 1.0 {
		t.Errorf("limit 2 = %s, want the newest two", x.body)
	}
	open := rg.asked("ann", "open")
	rg.want(400, "invalid", "ann", "POST", "/api/v1/grants/"+open+"/revoke", object{}) // nothing to take back
}
