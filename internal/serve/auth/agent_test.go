package auth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestDecides: whoever comes by a browser or with the owner's token decides;
// what comes with the token for agents does not, whatever it shows besides, and
// is no operator. Only a browser that a page of ours makes ask is a person's.
func TestDecides(t *testing.T) {
	tokens := open(t)
	on, last := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
	off, lastOff := guarded(t, Config{Off: true, Loopback: true, Origins: []string{"https://tools.example"}})
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	agent, own, start := tokens.Agent().Reveal(), tokens.Token().Reveal(), tokens.start.Reveal()
	cookie := []string{"Cookie", entered(t, on, tokens)}
	ours, listed := []string{"Origin", "http://localhost"}, []string{"Origin", "https://tools.example"}
	for _, tt := range []struct {
		name            string
		h               http.Handler
		last            *passed
		headers         []string
		decides, person bool
	}{
		{"the owner's token", on, last, bearer(own), true, false},
		{"that of the start", on, last, bearer(start), true, false},
		{"a cookie", on, last, slices.Concat(cookie, ours), true, true},
		{"the owner's, from another site", on, last, slices.Concat(bearer(own), listed), true, false},
		{"an agent's", on, last, bearer(agent), false, false},
		{"an agent's as a key", on, last, []string{"X-Api-Key", agent}, false, false},
		{"an agent's as the other key", on, last, []string{"Api-Key", agent}, false, false},
		{"an agent's, from our page", on, last, slices.Concat(bearer(agent), ours), false, false},
		{"an agent's beside a cookie", on, last, slices.Concat(bearer(agent), cookie, ours), false, false},
		{"an agent's beside the owner's", on, last, slices.Concat(bearer(own), []string{"X-Api-Key", agent}), false, false},
		{"the owner's behind an agent's", on, last, slices.Concat(bearer(agent), []string{"Api-Key", own}), false, false},
		{"off", off, lastOff, nil, true, false},
		{"the owner's, from our page", on, last, slices.Concat(bearer(own), ours), true, false},
		{"the owner's beside a cookie", on, last, slices.Concat(bearer(own), cookie, ours), true, false},
		{"off, from our page", off, lastOff, ours, true, true},
		{"off, from our page by the other header", off, lastOff, []string{"Sec-Fetch-Site", "same-origin"}, true, true},
		{"off, from another site", off, lastOff, listed, false, false},
	} {
		*tt.last = passed{}
		w := ask(tt.h, "POST", "/api/v1/invoke", "localhost", tt.headers...)
		who := tt.last.who
		if w.Code != 204 || who.Decides != tt.decides || who.Operator != tt.decides || who.Person != tt.person || who.Principal.ID != owner().Principal.ID || who.Principal.Tenant != owner().Principal.Tenant {
			t.Errorf("%s = %d by %+v, want the owner, who decides: %v, a person: %v", tt.name, w.Code, who, tt.decides, tt.person)
		}
		if strings.Contains(tt.name, "agent") && who.SignedIn {
			t.Errorf("%s is signed in: %+v", tt.name, who)
		}
	}
}

// TestTwoOfOneHeader: with a header that comes twice nobody is let in, whatever
// the others say: else an agent's token could be among its values.
func TestTwoOfOneHeader(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	agent, own := tokens.Agent().Reveal(), tokens.Token().Reveal()
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + own, "X-Api-Key", agent, "X-Api-Key", own},
		{"Authorization", "Bearer " + own, "Api-Key", agent, "Api-Key", agent},
		{"Authorization", "Bearer " + agent, "Authorization", "Bearer " + own, "X-Api-Key", own},
		{"X-Api-Key", own, "X-Api-Key", own},
	} {
		wantStatus(t, fmt.Sprintf("%v", headers), 401, ask(h, "GET", "/api", "localhost", headers...))
	}
}

// TestKnown: what lies in the folder is found, and nothing is made.
func TestKnown(t *testing.T) {
	dir := t.TempDir()
	if got := Known(dir); len(got) != 0 {
		t.Errorf("Known(an empty folder) = %d tokens", len(got))
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("Known made %v", left)
	}
	tokens := openIn(t, dir)
	got, all := Known(dir), tokens.All()
	if len(got) != 2 || len(all) != 3 || got[0].Reveal() != all[0].Reveal() || got[1].Reveal() != all[1].Reveal() || all[2].Reveal() != tokens.start.Reveal() {
		t.Errorf("Known = %d of %d tokens, want the two of the files", len(got), len(all))
	}
}

// TestAgentSignsNobodyIn: no browser gets a cookie for an agent's token.
func TestAgentSignsNobodyIn(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	agent := tokens.Agent().Reveal()
	posted := submit(h, SignInPath, "token="+agent, "Origin", "http://localhost:7777")
	for name, w := range map[string]*httptest.ResponseRecorder{"the form": posted, "the address": ask(h, "GET", "/?token="+agent, "localhost", browserHeaders("none")...)} {
		if _, cookie := cookieOf(t, w); w.Code != 401 || cookie != "" || strings.Contains(w.Body.String(), agent) {
			t.Errorf("%s with an agent's token = %d %v, want 401 and no cookie", name, w.Code, w.Header())
		}
		if !strings.Contains(w.Body.String(), "This token is for agents") {
			t.Errorf("%s with an agent's token says %s, want that it is one", name, w.Body)
		}
	}
}

// TestAgentTokenIsRenewed: a new file voids the old token, and no cookie.
func TestAgentTokenIsRenewed(t *testing.T) {
	tokens := open(t)
	first, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	cookie := entered(t, first, tokens)
	testkit.OK(t, os.Remove(tokens.AgentPath()))
	again := openIn(t, tokens.dir)
	h, _ := guarded(t, Config{Tokens: again, Loopback: true})
	for _, tt := range []struct {
		name, header, value string
		want                int
	}{
		{"the old token", "X-Api-Key", tokens.Agent().Reveal(), 401},
		{"the new one", "X-Api-Key", again.Agent().Reveal(), 204},
		{"the owner's", "X-Api-Key", tokens.Token().Reveal(), 204},
		{"a cookie", "Cookie", cookie, 204},
	} {
		wantStatus(t, tt.name, tt.want, ask(h, "GET", "/api", "localhost", tt.header, tt.value))
	}
}

// FuzzScoped: a scope is a whole word of one of its two claims.
func FuzzScoped(f *testing.F) {
	f.Add("openid ken.decide", "")
	f.Add("ken.decide2", "x")
	f.Add("", "ken.decide")
	f.Fuzz(func(t *testing.T, text, item string) {
		want := slices.Contains(strings.Fields(text), DecideScope)
		testkit.Equal(t, fmt.Sprintf("scoped(scope %q)", text), scoped(map[string]any{"scope": text}, DecideScope), want)
		if got := scoped(map[string]any{"scp": []any{text, item, 7, nil}}, DecideScope); got != (text == DecideScope || item == DecideScope) {
			t.Errorf("scoped(scp [%q %q]) = %v", text, item, got)
		}
		if scoped(map[string]any{"scopes": DecideScope, "aud": DecideScope, item: map[string]any{text: true}}, DecideScope) {
			t.Errorf("scoped takes other claims for a scope: %q %q", item, text)
		}
	})
}
