package chatapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestAbortDenies: what a stopped turn wanted consent for is refused when others
// hear of its end, and a stop of the server leaves it.
func TestAbortDenies(t *testing.T) {
	for _, stop := range []string{"abort", "drain"} {
		t.Run(stop, func(t *testing.T) {
			r := open(t)
			id := r.begin()
			r.script(llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:save", `{}`)}})
			f := r.read(r.request(ada, "POST", at(id, "/turns"), `{"text":"save"}`, "Accept", "text/event-stream"))
			defer f.close()
			asked := f.until("asked")
			ticket := fmt.Sprint(asked[len(asked)-1].data["ticket"])
			want := approval.Denied
			if stop == "abort" {
				if a := do[Aborted](r, "POST", at(id, "/abort"), "{}"); !a.Aborted {
					t.Error("nothing was aborted")
				}
			} else {
				want = approval.Pending
				testkit.OK(t, r.hub.Drain(context.Background()))
			}
			f.until("done")
			got, err := r.desk.Get(context.Background(), ticket)
			if err != nil || got.State != want {
				t.Errorf("the ticket is %v, %v; want %v", got.State, err, want)
			}
			if r.calls() != "" {
				t.Errorf("calls: %s", r.calls())
			}
		})
	}
}

// TestFollowOnceEndsWithReset: whoever follows one turn and fell behind does not
// wait for an end that has passed.
func TestFollowOnceEndsWithReset(t *testing.T) {
	r := open(t)
	id := r.begin()
	r.script(llmtest.Reply{Text: "One."})
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"a"}`)
	a := &api{cfg: Config{Hub: r.hub}}
	mux := wire.NewMux(nil, nil, wire.Route{Method: "GET", Path: "/{id}", Name: "a", Stream: func(w http.ResponseWriter, req *wire.Request) error {
		return a.follow(w, req, "an id of before", true)
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := deadlines{httptest.NewRecorder()}
	mux.ServeAs(w, httptest.NewRequest("GET", "/"+id, nil).WithContext(ctx), auth.Identity{Principal: capability.Principal{Tenant: "acme", ID: "ada"}})
	if ctx.Err() != nil || !strings.Contains(w.Body.String(), "event: reset\n") {
		t.Errorf("it got %q, and then %v; want a reset and the end", w.Body, ctx.Err())
	}
}

// deadlines can be set, and are of no effect.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// TestDeleteWhenFull: a session can be taken away when no turn can be begun; its
// folder is told to nobody but whoever runs Ken.
func TestDeleteWhenFull(t *testing.T) {
	r := open(t)
	who := capability.Principal{Tenant: "acme", ID: "ada"}
	id := r.begin()
	for n := range 64 {
		hold := testkit.Must(r.hub.Hold(who, fmt.Sprint("other", n)))(t)
		defer hold.Release(false)
	}
	r.want(429, "too-many-turns", ada, "POST", at(id, "/turns"), `{"text":"a"}`)
	if a := r.ask(ada, "GET", at(id, ""), ""); strings.Contains(string(a.body), `"folder"`) {
		t.Errorf("a folder is told: %s", a.body)
	}
	res := r.request(ada, "GET", at(id, ""), "", "Operator", "yes")
	defer res.Body.Close()
	var s Session
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil || s.Head.Folder != "/work" {
		t.Errorf("whoever runs Ken is told the folder %q, %v", s.Head.Folder, err)
	}
	r.want(204, "", ada, "DELETE", at(id, ""), "")
}
