package chatapi

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/llm"
	"ken/llm/llmtest"
)

func input(id, text string) event.Input {
	return event.Input{Principal: capability.Principal{Tenant: "acme", ID: "ada"}, Session: id, Text: text}
}

// TestOthers: on every route a session of another principal, or of another
// tenant's namesake, is answered exactly as one that does not exist.
func TestOthers(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "One."})
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"mine"}`)
	bodies := map[string]string{
		"say": `{"text":"hello"}`, "answerTurn": `{"yes":true}`, "rewindSession": `{"turn":1}`, "abortTurn": "{}", "retryTurn": "{}", "compactSession": "{}",
	}
	tried := 0
	for _, route := range Routes(Config{Hub: r.hub}) {
		if !strings.Contains(route.Path, "{id}") {
			continue
		}
		tried++
		path := func(id string) string {
			return strings.NewReplacer("{id}", id, "{turn}", "1", "{asked}", "1.1.1.ask").Replace(route.Path)
		}
		for _, who := range []string{"acme/eve", "other/ada", "/ada", "acme/"} {
			theirs := r.ask(who, route.Method, path(id), bodies[route.Name])
			none := r.ask(who, route.Method, path("nosuchsession0000"), bodies[route.Name])
			if theirs.status != 404 || theirs.code() != "not-found" {
				t.Errorf("%s as %s = %d %s, want 404", route.Name, who, theirs.status, theirs.body)
			}
			if got, want := strings.ReplaceAll(string(theirs.body), id, "X"), strings.ReplaceAll(string(none.body), "nosuchsession0000", "X"); got != want {
				t.Errorf("%s as %s = %s, of one that is not there %s", route.Name, who, got, want)
			}
		}
	}
	if tried != 10 {
		t.Errorf("%d routes were tried, want 10", tried)
	}
	if got := r.ask("acme/eve", "GET", "/api/v1/sessions", ""); strings.Contains(string(got.body), id) {
		t.Errorf("eve lists %s", got.body)
	}
	if s := do[Session](r, "GET", at(id, ""), ""); len(s.Turns) != 1 {
		t.Errorf("somebody else has changed the session: %+v", s)
	}
}

// TestBadInput: what cannot be understood is told with a stable code, and what to
// do. What else is wrong with requests the scripts api_bad and api_talk have.
func TestBadInput(t *testing.T) {
	r := open(t)
	id := r.begin()
	for _, test := range []struct {
		method, path, body string
		status             int
		code, detail       string
	}{
		{"POST", at(id, "/turns"), `{}`, 400, "invalid", "continue"},
		{"POST", at(id, "/turns"), `{"text":"a","mode":"nonsense"}`, 400, "invalid", "plan, build"},
		{"POST", at(id, "/turns"), `{"text":"a","mode":"plan","noMode":true}`, 400, "invalid", "contradict"},
		{"POST", at(id, "/turns"), `{"text":"a","delivery":"post"}`, 400, "invalid", "bridge"},
		{"POST", at(id, "/turns"), `{"text":"a","override":{"tier1TopK":-1}}`, 400, "invalid", "override.tier1TopK is -1"},
		{"POST", at(id, "/turns"), `{"text":"a","images":[{"mime":"image/svg+xml","data":"PHN2Zz4="}]}`, 400, "invalid", "image/png"},
		{"POST", at(id, "/turns"), `{"text":"a","images":[{"mime":"image/png","data":"aGVsbG8="}]}`, 400, "invalid", "text/plain"},
		{"POST", at(id, "/turns"), `{"text":"a","images":[{"mime":"image/png","data":"%"}]}`, 400, "invalid", "body"},
		{"POST", at(id, "/turns"), `{"text":"/mode plan"}`, 400, "not-here", "mode in POST"},
		{"POST", at(id, "/rewind"), `{}`, 400, "invalid", "turn"},
		{"GET", "/api/v1/sessions?limit=201", ``, 400, "invalid", "1 to 200"},
		{"GET", "/api/v1/sessions/" + strings.Repeat("a", 300), ``, 404, "not-found", "no session"},
		{"POST", "/api/v1/sessions", `{"mode":"nonsense"}`, 400, "invalid", "policy.modes"},
		{"POST", "/api/v1/sessions", `{"agent":"a\nb"}`, 400, "invalid", "agent"},
		{"GET", "/api/v1/complete?line=" + strings.Repeat("a", 17<<10), ``, 400, "invalid", "limit"},
	} {
		a := r.ask(ada, test.method, test.path, test.body)
		if a.status != test.status || a.code() != test.code || !strings.Contains(string(a.body), test.detail) {
			t.Errorf("%s %.80s %.80s = %d %.300s, want %d %s with %q", test.method, test.path, test.body, a.status, a.body, test.status, test.code, test.detail)
		}
	}
	if s := do[Session](r, "GET", at(id, ""), ""); len(s.Turns) != 0 || s.Running {
		t.Errorf("something of it was said: %+v", s)
	}
	for _, path := range []string{"/etc/passwd is a file", "/ alone", "/"} { // look like no command
		r.script(llmtest.Reply{Text: "Yes."})
		do[map[string]any](r, "POST", at(id, "/turns?wait=true"), fmt.Sprintf(`{"text":%q}`, path))
	}
}

// TestAskUser: what the model asks is answered with a text. The turn is one of
// the session as it was begun.
func TestAskUser(t *testing.T) {
	r := open(t)
	begun := r.beginAs(ada, `{"mode":"plan","sessionType":"isolated"}`)
	id := begun.ID
	r.script(llmtest.Reply{Calls: []llm.ToolCall{{Name: "ask_user", Arguments: []byte(`{"question":"Which?","choices":["a","b"]}`)}}}, llmtest.Reply{Text: "Thanks."})
	f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"ask me"}`, "Accept", "text/event-stream"))
	defer f.close()
	list := f.until("asked")
	q := list[len(list)-1].data
	path := at(id, "/answers/"+q["id"].(string))
	r.want(400, "", ada, "POST", path, `{"text":"b","scope":"session"}`)
	r.want(204, "", ada, "POST", path, `{"text":"b"}`)
	rest := f.until("done")
	if !strings.Contains(fmt.Sprint(rest), "The user answered: b") {
		t.Errorf("the model was told %v", rest)
	}
	if begun.Mode != "plan" || r.inp.Scope.SessionType != "isolated" || r.inp.Surface != "api" {
		t.Errorf("the session is %+v, the engine got %+v", begun, r.inp)
	}
}
