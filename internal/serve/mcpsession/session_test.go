//lint:file-ignore SA1019 Clients of before 2026-07-28 have what that version gave up.

package mcpsession

import (
	"context"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestCallsOfASession: only its own principal finds a session. Two calls with the same id
// cannot run at the same time. The end of the session ends its calls, and none begins after it.
func TestCallsOfASession(t *testing.T) {
	s := New(10, time.Hour)
	s.Arrive("a", "ada", new(mcp.ServerSession))
	if s.Find("a", "eve") != nil || s.Find("b", "ada") != nil {
		t.Error("a session was found by another name or for another principal")
	}
	one := s.Find("a", "ada")
	ctx, cancel := context.WithCancel(t.Context())
	for i, want := range []struct{ began, twice bool }{{true, false}, {false, true}} {
		if began, twice := s.Begin(one, "1", cancel); began != want.began || twice != want.twice {
			t.Errorf("Begin() number %d = %v, %v; want %v", i, began, twice, want)
		}
	}
	if one.busy != 1 {
		t.Errorf("%d calls keep the session from being idle, want 1", one.busy)
	}
	s.Finish(one, "1")
	if began, _ := s.Begin(one, "1", cancel); !began || one.Cancel("2") || ctx.Err() != nil {
		t.Error("a call with the id of one that has ended does not begin, or another's cancellation ends it")
	}
	s.Depart("a")
	if ctx.Err() == nil {
		t.Error("the call goes on after its session")
	}
	if began, twice := s.Begin(one, "3", cancel); began || twice {
		t.Error("a call begins after its session")
	}
}

// TestAnswers: an answer to a question counts once, and only if it is a response that can
// be read in one way.
func TestAnswers(t *testing.T) {
	s := &Session{}
	id, reply := s.expect()
	for _, tt := range []struct {
		message string
		taken   bool
	}{
		{`{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}`, false},
		{`{"jsonrpc":"2.0","id":"` + id + `","result":{},"result":{}}`, false},
		{`[{"jsonrpc":"2.0","id":"` + id + `","result":{}}]`, false},
		{`{"jsonrpc":"2.0","id":"` + QuestionPrefix + `1","result":{}}`, false},
		{`{"jsonrpc":"2.0","id":"` + id + `","result":{"a":1}}`, true},
		{`{"jsonrpc":"2.0","id":"` + id + `","result":{"a":2}}`, false},
	} {
		if got := s.Take([]byte(tt.message), false); got != tt.taken {
			t.Errorf("Take(%s) = %v, want %v", tt.message, got, tt.taken)
		}
	}
	if got := string((<-reply).Result); got != `{"a":1}` {
		t.Errorf("the answer is %s", got)
	}
	for method, result := range map[string]string{
		"elicitation/create": `{"action":"decline","Action":"accept"}`, "ping": `{}`,
	} {
		if res, err := decode(method, &jsonrpc.Response{Result: []byte(result)}); err == nil {
			t.Errorf("decode(%s, %s) = %v, want an error", method, result, res)
		}
	}
}

// TestStreamWithoutEvents: a response without events before its answer is written as a
// whole, and nothing is sent after it.
func TestStreamWithoutEvents(t *testing.T) {
	w := httptest.NewRecorder()
	s := (&Session{}).Stream(w, httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil), mcp.NewMemoryEventStore(nil), nil)
	whole := 0
	s.End(func() []byte { t.Error("the answer is an event of several"); return nil }, func() { whole++ })
	s.Prime()
	if whole != 1 || w.Body.Len() > 0 {
		t.Errorf("written as a whole %d times, and after it %q", whole, w.Body)
	}
}

// TestQuestionToAClientThatHasGone: a question waits a while for a client that comes back,
// and then is withdrawn.
func TestQuestionToAClientThatHasGone(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			one := &Session{id: "s"}
			request, leave := context.WithCancel(t.Context())
			w := httptest.NewRecorder()
			s := one.Stream(w, httptest.NewRequestWithContext(request, "POST", "/mcp", nil), mcp.NewMemoryEventStore(nil), nil)
			asked := make(chan error, 1)
			go func() {
				_, err := s.Send(t.Context(), "roots/list", &mcp.ServerRequest[*mcp.ListRootsParams]{Params: &mcp.ListRootsParams{}})
				asked <- err
			}()
			synctest.Wait()
			leave()
			time.Sleep(away - time.Second)
			if !back {
				if err := <-asked; err == nil || !strings.Contains(w.Body.String(), "notifications/cancelled") {
					t.Errorf("the question ended with %v, after %s", err, w.Body)
				}
				return
			}
			again, stop := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(again, "GET", "/mcp", nil)
			r.Header.Set("Accept", "text/event-stream")
			r.Header.Set("Last-Event-Id", s.name+"_0")
			resumed := make(chan bool, 1)
			go func() { resumed <- one.resume(httptest.NewRecorder(), r) }()
			time.Sleep(2 * away)
			select {
			case err := <-asked:
				t.Errorf("the question ended with %v, though the client is back", err)
			default:
			}
			for _, id := range slices.Collect(maps.Keys(one.questions)) {
				one.Take([]byte(`{"jsonrpc":"2.0","id":"`+id+`","result":{"roots":[]}}`), false)
			}
			if err := <-asked; err != nil {
				t.Error(err)
			}
			stop()
			if !<-resumed || one.resume(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/mcp", nil)) {
				t.Error("a request for what followed was not served, or another one was")
			}
		})
	}
}
