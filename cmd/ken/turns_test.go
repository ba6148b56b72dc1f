//go:build unix

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A sent is an event of a stream.
type sent struct {
	id, name string
	data     []byte
	at       time.Time
}

// A listener follows the events of a session.
type listener struct {
	events chan sent
	stop   context.CancelFunc
	resp   *http.Response
}

// listen follows a session on a server, after an event.
func (s *server) listen(ctx context.Context, token, session, after string) (*listener, error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/sessions/"+session+"/events", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = fmt.Errorf("follow: %s", resp.Status)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	l := &listener{events: make(chan sent, 1000), stop: cancel, resp: resp}
	go l.read()
	return l, nil
}

// read passes events on until the stream ends.
func (l *listener) read() {
	defer close(l.events)
	defer l.resp.Body.Close()
	var e sent
	lines := bufio.NewScanner(l.resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = []byte(value)
		case "":
			if e.data != nil {
				e.at = time.Now()
				l.events <- e
			}
			e = sent{}
		}
	}
}

// until returns the events up to the first with a name.
func (l *listener) until(t *testing.T, name string) []sent {
	t.Helper()
	var out []sent
	late := time.After(testkit.Patience)
	for {
		select {
		case e, more := <-l.events:
			if !more {
				t.Fatalf("the stream ended before %s: %s", name, namesOf(out))
			}
			out = append(out, e)
			if e.name == name {
				return out
			}
		case <-late:
			t.Fatalf("%s never came, only %s", name, namesOf(out))
		}
	}
}

func namesOf(list []sent) string {
	var out []string
	for _, e := range list {
		name := e.name
		if name == "done" || name == "failed" {
			name += string(e.data)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// textOf is what the model said in events.
func textOf(list []sent) string {
	var b strings.Builder
	for _, e := range list {
		var d struct{ Text string }
		if e.name == "delta" && json.Unmarshal(e.data, &d) == nil {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

// session begins a session.
func (s *server) session(t *testing.T) string {
	t.Helper()
	status, text := s.ask(t, http.MethodPost, "/api/v1/sessions", s.token, map[string]any{})
	var head struct{ ID string }
	if err := json.Unmarshal(text, &head); err != nil || status != http.StatusCreated {
		t.Fatalf("begin a session: %d %s", status, text)
	}
	return head.ID
}

// say begins a turn and returns the status.
func (s *server) say(t *testing.T, session, text string) int {
	t.Helper()
	status, answer := s.ask(t, http.MethodPost, "/api/v1/sessions/"+session+"/turns", s.token, map[string]any{"text": text})
	if status != http.StatusAccepted && status != http.StatusConflict {
		t.Fatalf("say: %d %s", status, answer)
	}
	return status
}

func (s *server) follow(t *testing.T, session, after string) *listener {
	t.Helper()
	l, err := s.listen(t.Context(), s.token, session, after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	return l
}

// standing is how a session stands.
type standing struct {
	Running bool
	After   string
	Asked   []struct{ ID, What string }
	Turns   []struct{ Said, End string }
}

func (s *server) stands(t *testing.T, session string) (out standing) {
	t.Helper()
	status, text := s.ask(t, http.MethodGet, "/api/v1/sessions/"+session, s.token, nil)
	if err := json.Unmarshal(text, &out); err != nil || status != http.StatusOK {
		t.Fatalf("read a session: %d %s", status, text)
	}
	return out
}

var counting = []string{"one ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight"}

// newTalker starts a model that answers at once over OpenAI's wire. what says how, by what was said
// last and whether a call of this turn has its result: with a call of the shell, or with
// words. After the first word it waits until hold is closed, unless that is nil. It returns
// the model's address.
func newTalker(t *testing.T, what func(said string, again bool) (call string, words []string, hold <-chan struct{})) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		said, again := "", false
		for _, m := range in.Messages {
			switch m.Role {
			case "user":
				said, again = string(m.Content), false
			case "tool":
				again = true
			}
		}
		for _, known := range []string{"please hold", "please hang", "please write"} {
			if strings.Contains(said, known) {
				said = known
			}
		}
		call, words, hold := what(said, again)
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(format string, args ...any) {
			fmt.Fprintf(w, "data: "+format+"\n\n", args...)
			w.(http.Flusher).Flush()
		}
		const head = `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":`
		end := "stop"
		if call != "" {
			end = "tool_calls"
			send(head+`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"shell","arguments":%q}}]}}]}`, call)
		}
		for i, word := range words {
			if i == 1 && hold != nil {
				select {
				case <-hold:
				case <-r.Context().Done():
					return
				}
			}
			send(head+`{"content":%q}}]}`, word)
		}
		send(head+`{},"finish_reason":%q}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, end)
		send("[DONE]")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// TestTurnsAnywhere: a turn that runs on one replica is followed, stopped and answered
// through another one. When its replica is killed, the others say so, and the session
// goes on there.
func TestTurnsAnywhere(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	address := storetest.Postgres(t)
	release := make(chan struct{})
	model := newTalker(t, func(said string, again bool) (call string, words []string, hold <-chan struct{}) {
		switch {
		case said == "please hold":
			return "", counting, release
		case said == "please hang":
			return "", counting, make(chan struct{})
		case said == "please write" && !again:
			return `{"cmd":"echo done >> written.txt"}`, nil, nil
		}
		return "", []string{"fine"}, nil
	})
	r := newReplicas(t, 2, address, fmt.Sprintf("policy: {intents: \"off\", toolAccess: {tools: {shell: {mode: full}}}}\nmodel: lab/any\nproviders: {lab: {wire: openai-chat, url: %q}}\n", model))
	a, b := r[0], r[1]

	t.Run("follow", func(t *testing.T) {
		id := a.session(t)
		waiting := b.follow(t, id, "") // before there is a turn
		waiting.until(t, "idle")
		a.say(t, id, "please hold")
		first := b.follow(t, id, "").until(t, "delta")
		if text := textOf(first); !strings.HasPrefix(strings.Join(counting, ""), text) {
			t.Errorf("the other replica has %q", text)
		}
		if !testkit.Until(func() bool { return b.stands(t, id).Running }) {
			t.Error("the turn does not run on the other replica")
		}
		if status := b.say(t, id, "me too"); status != http.StatusConflict {
			t.Errorf("a second turn on the other replica: %d", status)
		}
		stands := b.stands(t, id)
		close(release)
		again := b.follow(t, id, first[len(first)-1].id).until(t, "done")
		if text := textOf(first) + textOf(again); text != strings.Join(counting, "") {
			t.Errorf("after coming back: %q", text)
		}
		if text := textOf(b.follow(t, id, stands.After).until(t, "done")); len(stands.Turns) != 0 || text != strings.Join(counting, "") {
			t.Errorf("after reading the session: %q, after %d turns", text, len(stands.Turns))
		}
		live := waiting.until(t, "done")
		if text := textOf(live); text != strings.Join(counting, "") {
			t.Errorf("who followed all the time has %q", text)
		}
		// The next turn runs on the other one, and all streams have it.
		onA := a.follow(t, id, live[len(live)-1].id)
		onA.until(t, "idle")
		if !testkit.Until(func() bool { return b.say(t, id, "hello") == http.StatusAccepted }) {
			t.Fatal("the session is never free")
		}
		waiting.until(t, "done")
		if text := textOf(onA.until(t, "done")); text != "fine" {
			t.Errorf("the first replica has of the second turn: %q", text)
		}
	})

	t.Run("list", func(t *testing.T) {
		id := a.session(t)
		listed := func() (running bool) {
			var list struct {
				Sessions []struct {
					ID      string
					Running bool
				}
			}
			status, text := b.ask(t, http.MethodGet, "/api/v1/sessions?limit=200", b.token, nil)
			if status != http.StatusOK || json.Unmarshal(text, &list) != nil {
				t.Fatalf("list: %d %s", status, text)
			}
			for _, s := range list.Sessions {
				running = running || s.ID == id && s.Running
			}
			return running
		}
		if listed() {
			t.Error("a session without a turn runs")
		}
		a.say(t, id, "please hang")
		if !testkit.Until(listed) {
			t.Error("the other replica does not list the turn as running")
		}
		if status, text := a.ask(t, http.MethodPost, "/api/v1/sessions/"+id+"/abort", a.token, map[string]any{}); status != http.StatusOK {
			t.Errorf("abort: %d %s", status, text)
		}
		if !testkit.Until(func() bool { return !listed() }) {
			t.Error("the other replica lists a turn that has ended")
		}
	})

	t.Run("abort", func(t *testing.T) {
		id := a.session(t)
		a.say(t, id, "please hang")
		l := b.follow(t, id, "")
		l.until(t, "delta")
		status, text := b.ask(t, http.MethodPost, "/api/v1/sessions/"+id+"/abort", b.token, map[string]any{})
		if status != http.StatusOK || !strings.Contains(string(text), "true") {
			t.Errorf("abort: %d %s", status, text)
		}
		last := l.until(t, "done")
		if data := string(last[len(last)-1].data); !strings.Contains(data, "aborted") {
			t.Errorf("it ended so: %s", data)
		}
	})

	t.Run("approve", func(t *testing.T) {
		id := a.session(t)
		a.say(t, id, "please write")
		var stands standing
		if !testkit.Until(func() bool { stands = b.stands(t, id); return len(stands.Asked) == 1 || len(stands.Turns) > 0 }) || len(stands.Asked) == 0 {
			t.Fatalf("the other replica never asks: %+v; on the first one: %+v", stands, a.stands(t, id))
		}
		status, text := b.ask(t, http.MethodPost, "/api/v1/sessions/"+id+"/answers/"+stands.Asked[0].ID, b.token, map[string]any{"yes": true})
		if status >= 300 {
			t.Fatalf("answer: %d %s", status, text)
		}
		b.follow(t, id, stands.After).until(t, "done")
		written, err := os.ReadFile(filepath.Join(a.work, "written.txt"))
		if err != nil || string(written) != "done\n" {
			t.Errorf("the call that was approved: %q, %v", written, err)
		}
		status, text = b.ask(t, http.MethodPost, "/api/v1/sessions/"+id+"/answers/"+stands.Asked[0].ID, b.token, map[string]any{"yes": true})
		if status < 400 {
			t.Errorf("a second answer: %d %s", status, text)
		}
	})

	t.Run("kill", func(t *testing.T) {
		id := a.session(t)
		a.say(t, id, "please hang")
		l := b.follow(t, id, "")
		l.until(t, "delta")
		_ = a.server.cmd.Process.Kill()
		_ = a.server.cmd.Wait()
		last := l.until(t, "failed")
		if data := string(last[len(last)-1].data); !strings.Contains(data, "replica-lost") {
			t.Errorf("it ended so: %s", data)
		}
		if !testkit.Until(func() bool { return b.say(t, id, "hello") == http.StatusAccepted }) {
			t.Fatal("the session never goes on")
		}
		if text := textOf(l.until(t, "done")); text != "fine" {
			t.Errorf("the next turn said %q", text)
		}
	})
}
