package chatapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
	"ken/internal/talk/slash"
	"ken/llm/llmtest"
)

const agent = ada + "'s agent"

// TestAgent: what an agent says is never a person's own call: not by a slash, not
// by saying a person's line again, nor by going on with one. It takes no session
// away. The script api_agents has how it talks and what waits for its person.
func TestAgent(t *testing.T) {
	r := open(t)
	id := r.beginAs(agent, `{}`).ID
	refused := func(method, path, body, says string) {
		t.Helper()
		a := r.ask(agent, method, path, body)
		if a.status != 403 || a.code() != "person-decides" || !strings.Contains(string(a.body), says) {
			t.Errorf("%s %s %s = %d %s, want 403 person-decides with %q", method, path, body, a.status, a.body, says)
		}
	}
	refused("POST", at(id, "/turns?wait=true"), `{"text":"/greet"}`, "POST /api/v1/invoke")
	if made := r.calls(); made != "" {
		t.Fatalf("a line of an agent made the calls %s", made)
	}
	r.script(llmtest.Reply{Text: "Yes."})
	if a := r.ask(agent, "POST", at(id, "/turns?wait=true"), `{"text":"//greet you"}`); !strings.Contains(string(a.body), `"Yes."`) {
		t.Errorf("a line for the model = %d %s, want its answer", a.status, a.body)
	}

	// What a person typed is theirs to say again, and to go on with.
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"/greet"}`)
	refused("POST", at(id, "/retry"), `{}`, "begins with a slash")
	made := r.calls()
	two := do[struct{ Asked []struct{ ID string } }](r, "POST", at(id, "/turns?wait=true"), `{"text":"/save"}`)
	if len(two.Asked) != 1 {
		t.Fatalf("/save = %+v, want it to wait", two)
	}
	refused("POST", at(id, "/turns?wait=true"), `{"continue":true}`, "own call")
	refused("POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`, "ken approve")
	refused("DELETE", at(id, ""), "", "open the page")
	refused("POST", at(id, "/rewind"), `{"turn":1}`, "open the page")
	refused("POST", at(id, "/turns?wait=true"), `{"text":"hello"}`, "begin another session") // it would end what waits
	if now := r.calls(); now != made {
		t.Errorf("the calls are %s, want %s", now, made)
	}
	do[map[string]any](r, "POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`)
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"continue":true}`)
}

// beginAs begins a session of somebody's.
func (r *rig) beginAs(who, body string) SessionHead {
	r.t.Helper()
	a := r.ask(who, "POST", "/api/v1/sessions", body)
	var head SessionHead
	if err := json.Unmarshal(a.body, &head); err != nil || a.status != 201 {
		r.t.Fatalf("%s begins a session: %d %s", who, a.status, a.body)
	}
	return head
}

// TestAgentsSessions: whoever begins a session is in its head. An agent has those
// that agents began, and no operation at all opens a person's to it; a person has
// both. Sessions of which it is not known who began them are a person's.
func TestAgentsSessions(t *testing.T) {
	r := open(t)
	r.script(llmtest.Reply{Text: "The key is under the mat."})
	own := r.begin()
	do[map[string]any](r, "POST", at(own, "/turns?wait=true"), `{"text":"where is the key?"}`)
	ids := map[string]string{}
	for name, given := range map[string]string{"Go-http-client": `{}`, "tidy": `{"agent":"tidy"}`} {
		head := r.beginAs(agent, given)
		if ids[name] = head.ID; head.BegunBy != name {
			t.Errorf("an agent begins with %s: begun by %q, want %q", given, head.BegunBy, name)
		}
	}
	if head := r.beginAs(ada, `{"agent":"tidy"}`); head.BegunBy != "" {
		t.Errorf("a person begins a session: begun by %q", head.BegunBy)
	}

	for _, c := range []struct{ who, query, want string }{
		{ada, "", "[- - Go-http-client tidy] false"},
		{agent, "", "[Go-http-client tidy] false"},
		{agent, "?limit=2", "[Go-http-client tidy] false"},
		{"acme/bob's agent", "", "[] false"},
	} {
		var list SessionList
		var got []string
		a := r.ask(c.who, "GET", "/api/v1/sessions"+c.query, "")
		if err := json.Unmarshal(a.body, &list); err != nil {
			t.Fatalf("the list for %s = %d %s", c.who, a.status, a.body)
		}
		for _, s := range list.Sessions {
			got = append(got, cmp.Or(s.BegunBy, "-"))
		}
		if slices.Sort(got); fmt.Sprint(got, list.Cut) != c.want {
			t.Errorf("the sessions of %s%s are %s, want %s", c.who, c.query, got, c.want)
		}
	}

	for _, route := range Routes(Config{Hub: r.hub}) {
		if !strings.Contains(route.Path, "{id}") {
			continue
		}
		path := strings.NewReplacer("{id}", own, "{turn}", "1", "{asked}", "1").Replace(route.Path)
		body := ""
		if route.Body != nil {
			body = `{}`
		}
		if route.Name == "say" {
			body = `{"text":"and the money?"}`
		}
		want, says := "person-began", "begin one with POST /api/v1/sessions"
		if route.Decision != "" {
			want, says = "person-decides", route.Decision
		}
		res := r.request(agent, route.Method, path, body)
		if res.StatusCode != 403 { // its body may have no end
			t.Errorf("%s of a person's session by an agent = %d, want 403 %s", route.Name, res.StatusCode, want)
			res.Body.Close()
			continue
		}
		told, err := io.ReadAll(res.Body)
		res.Body.Close()
		if a := (answer{403, told}); err != nil || a.code() != want || !strings.Contains(string(told), says) {
			t.Errorf("%s of a person's session by an agent = %s, %v, want %s with %q", route.Name, told, err, want, says)
		}
	}
	if head, err := r.sessions.Head(t.Context(), capability.Principal{Tenant: "acme", ID: "ada"}, own); err != nil || head.Turns != 1 {
		t.Errorf("the person's session = %+v, %v, want it as it was", head, err)
	}

	// A person goes on in what an agent began, and so does the agent afterwards.
	for _, who := range []string{agent, ada, agent} {
		r.script(llmtest.Reply{Text: "Yes."})
		if a := r.ask(who, "POST", at(ids["tidy"], "/turns?wait=true"), `{"text":"hello"}`); a.status != 200 || !strings.Contains(string(a.body), `"Yes."`) {
			t.Errorf("%s in an agent's session = %d %s, want the answer", who, a.status, a.body)
		}
	}
}

// TestBeginner: an agent's name is the one it gives, or the site's or the
// program's that asks, on one line; a person has none.
func TestBeginner(t *testing.T) {
	for _, c := range []struct {
		decides               bool
		given, origin, client string
		want                  string
	}{
		{false, "tidy", "https://tools.example", "curl/8.5.0", "tidy"},
		{false, "", "https://tools.example", "Mozilla/5.0 (X11)", "https://tools.example"},
		{false, "", "", "curl/8.5.0", "curl"},
		{false, "", "", "my agent", "my agent"},
		{false, "", "", "", "agent"},
		{false, "", "", " / ", "agent"},
		{false, "", "", "a\u202eb", "a⟨U+202E⟩b"},
		{true, "tidy", "https://tools.example", "curl/8.5.0", ""},
	} {
		r := &wire.Request{Request: httptest.NewRequest("POST", "/api/v1/sessions", nil), Who: auth.Identity{Decides: c.decides}}
		r.Header.Set("User-Agent", c.client)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if got := beginner(r, c.given); got != c.want {
			t.Errorf("beginner(%+v) = %q, want %q", c, got, c.want)
		}
	}
}

// TestNoCommands: who can type no command at all is told why, and not that a
// command is unknown; the words of the terminal are what they were.
func TestNoCommands(t *testing.T) {
	noRules := &capability.Error{Kind: capability.Denied, Op: "run the command", Rule: "no-rules", Err: errors.New("there are no rules"), Fix: "fix them"}
	for _, c := range []struct {
		typed, code string
		none        error
	}{
		{"/greet", "denied", noRules},
		{"/rewind", "not-here", noRules},
		{"/greet", "unknown-command", nil},
		{"/etc/passwd", "", noRules},
		{"hello", "", noRules},
		{" /greet", "", noRules},
		{"//compact this", "", nil},
	} {
		a := &api{Config{NoCommands: func(capability.Principal) error { return c.none }}}
		_, err := a.text(auth.Identity{Decides: true}, c.typed)
		code := ""
		if err != nil {
			p, _ := problem.Of(err)
			code = p.Code
		}
		if code != c.code {
			t.Errorf("text(%q) where %v = %v, want the code %q", c.typed, c.none, err, c.code)
		}
	}
}

// FuzzWordsOfAgents: nothing that an agent says reaches the engine as a line that
// begins with a slash, whatever commands there are by then.
func FuzzWordsOfAgents(f *testing.F) {
	index := slash.New([]slash.Command{{Name: "greet"}, {Name: "save"}})
	for _, s := range []string{"/greet", " /greet", "//greet", "/etc/passwd", "/", "\u00a0/greet", "\t\n/save now", "/GREET", "hello /greet"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		text, err := words(index, typed, false)
		if err == nil && strings.HasPrefix(text, "/") {
			t.Errorf("words(%q) = %q for an agent", typed, text)
		}
		if index.Is(text) {
			t.Errorf("words(%q) = %q for an agent, which is a command", typed, text)
		}
		if same, serr := words(index, typed, true); err == nil && (serr != nil || strings.TrimSpace(same) != strings.TrimSpace(text)) {
			t.Errorf("words(%q) = %q for an agent, and %q, %v for a person", typed, text, same, serr)
		}
	})
}
