//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// sizeOf reads a number from the environment: how large a measurement is.
func sizeOf(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}

// TestStreams has clients that follow the turns of sessions over four replicas, most of
// them on another replica than the one that runs the turn. It measures how long a word
// takes from the model to a client. KEN_STREAMS says how many clients there are; 40 is the
// default.
func TestStreams(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	const replicas, words, atOnce = 4, 60, 50 // a replica runs 64 turns of one principal at most
	clients := sizeOf(t, "KEN_STREAMS", 40)
	sessions := min(replicas*atOnce, max(replicas, clients/10))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || int(limit.Cur) < clients+500 {
		t.Fatalf("%d files may be open at once (%v), want %d: ulimit -n", limit.Cur, err, clients+500)
	}
	begin := make(chan struct{})
	model := newSpeaker(t, begin, words, 250*time.Millisecond)
	r := newReplicas(t, replicas, storetest.Postgres(t), fmt.Sprintf(
		"serve: {rate: {requests: 100000, burst: 100000, open: 100000}}\npolicy: {intents: \"off\"}\nmodel: lab/any\nproviders: {lab: {wire: openai-chat, url: %q}}\n", model))
	ids := make([]string, sessions)
	for i := range ids {
		ids[i] = r[i%replicas].session(t)
	}
	var mu sync.Mutex
	var took []time.Duration
	var ended sync.WaitGroup
	var failed atomic.Int64
	for i := range clients {
		l, err := r[(i/sessions+i)%replicas].listen(t.Context(), r[0].token, ids[i%sessions], "")
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		ended.Go(func() {
			defer l.stop()
			var mine []time.Duration
			for e := range l.events {
				if e.name == "failed" || e.name == "reset" {
					failed.Add(1)
				}
				var d struct{ Text string }
				if e.name == "delta" && json.Unmarshal(e.data, &d) == nil {
					for word := range strings.FieldsSeq(d.Text) {
						if at, err := strconv.ParseInt(word, 10, 64); err == nil {
							mine = append(mine, e.at.Sub(time.UnixMicro(at)))
						}
					}
				}
				if e.name == "done" {
					break
				}
			}
			if len(mine) != words {
				failed.Add(1)
				t.Errorf("a client has %d of %d words", len(mine), words)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	for i, id := range ids {
		r[i%replicas].say(t, id, "speak")
	}
	close(begin)
	ended.Wait()
	if failed.Load() > 0 || len(took) == 0 {
		t.Fatalf("%d streams failed", failed.Load())
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d clients, %d sessions, %d replicas, %d words to clients: p50 %v, p99 %v, slowest %v", clients, sessions, replicas, len(took), took[len(took)/2].Round(time.Millisecond), p99.Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

// TestRollingRestart restarts one replica after the other, with SIGTERM, while clients
// call and follow a session. A client that fails tries once more, on the next replica.
// KEN_ROLLING says how many clients there are; 8 is the default.
func TestRollingRestart(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	const replicas = 3
	clients := sizeOf(t, "KEN_ROLLING", 8)
	model := newTalker(t, func(string, bool) (string, []string, <-chan struct{}) { return "", counting, nil })
	c := &chaos{t: t, all: newReplicas(t, replicas, storetest.Postgres(t), fmt.Sprintf(
		"serve: {stopDelay: 1s, rate: {requests: 100000, burst: 100000, open: 100000}}\npolicy: {intents: \"off\"}\nmodel: lab/any\nproviders: {lab: {wire: openai-chat, url: %q}}\n", model))}
	token := c.pick(0).token // counts on all
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	var done, again, failed atomic.Int64
	// A load balancer sends requests where /readyz says yes.
	var ready [replicas]atomic.Bool
	for i := range replicas {
		working.Go(func() {
			for ctx.Err() == nil {
				status, _, err := requestTo(ctx, http.MethodGet, c.pick(i).url+"/readyz", token, nil)
				ready[i].Store(err == nil && status == http.StatusOK)
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		})
	}
	if !testkit.Until(func() bool { return ready[0].Load() && ready[1].Load() && ready[2].Load() }) {
		t.Fatal("the replicas are never ready")
	}
	next := func(n int) *server {
		for i := range replicas {
			if ready[(n+i)%replicas].Load() {
				return c.pick(n + i)
			}
		}
		return c.pick(n)
	}
	// try makes a request, and once more if it fails.
	try := func(n int, what, method, path string, body any) []byte {
		var last string
		for i := range 2 {
			status, text, err := requestTo(ctx, method, next(n+i).url+path, token, body)
			if err == nil && status < 300 {
				done.Add(1)
				return text
			}
			if ctx.Err() != nil {
				return nil
			}
			last = fmt.Sprintf("%d %s %v", status, text, err)
			again.Add(1)
		}
		failed.Add(1)
		t.Errorf("%s failed twice: %s", what, last)
		return nil
	}
	for i := range clients {
		working.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				if i%2 == 0 {
					try(n, "a call", http.MethodPost, "/api/v1/invoke", map[string]any{"session": fmt.Sprint("rolling", i), "target": "tool:read_file", "arguments": map[string]any{"path": "note.txt"}})
					continue
				}
				var head struct{ ID string }
				if text := try(n, "a session", http.MethodPost, "/api/v1/sessions", map[string]any{}); json.Unmarshal(text, &head) == nil && head.ID != "" {
					text := try(n, "a turn", http.MethodPost, "/api/v1/sessions/"+head.ID+"/turns?wait=true", map[string]any{"text": "count"})
					if ctx.Err() == nil && text != nil && !bytes.Contains(text, []byte(`"answer"`)) {
						failed.Add(1)
						t.Errorf("a turn: %s", text)
					}
				}
			}
		})
	}
	// And one that only follows: its stream ends, and goes on elsewhere from its last event.
	id := c.pick(0).session(t)
	followed := make(chan string, 1)
	go func() { followed <- c.across(ctx, next, token, id) }()
	for i := range replicas {
		before := done.Load()
		if !testkit.Until(func() bool { return done.Load() > before+int64(clients) }) {
			t.Fatal("the clients make no progress")
		}
		c.mu.Lock()
		one := c.all[i]
		c.mu.Unlock()
		if err := one.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := one.server.cmd.Wait(); err != nil {
			t.Errorf("a replica stops: %v\n%s", err, one.server.stderr.String())
		}
		started := one.house.serve(t)
		c.mu.Lock()
		one.server = started
		c.mu.Unlock()
		if !testkit.Until(func() bool { return ready[i].Load() }) {
			t.Fatal("a replica that was restarted is never ready")
		}
	}
	if text := try(0, "the last turn", http.MethodPost, "/api/v1/sessions/"+id+"/turns?wait=true", map[string]any{"text": "count"}); text != nil {
		select {
		case got := <-followed:
			if got != strings.Join(counting, "") {
				t.Errorf("who followed through all restarts has %q", got)
			}
		case <-time.After(testkit.Patience):
			t.Error("who followed through all restarts never sees the turn")
		}
	}
	stop()
	working.Wait()
	t.Logf("%d requests of %d clients over %d restarts: %d made again, %d failed", done.Load(), clients, replicas, again.Load(), failed.Load())
}

// across follows a session from one server to the next until a turn ends, and returns what
// was said in it.
func (c *chaos) across(ctx context.Context, next func(int) *server, token, session string) string {
	after := ""
	var all []sent
	for n := 0; ctx.Err() == nil; n++ {
		l, err := next(n).listen(ctx, token, session, after)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		for e := range l.events {
			if e.id != "" {
				after = e.id
			}
			all = append(all, e)
			if e.name == "done" {
				l.stop()
				return textOf(all)
			}
		}
		l.stop()
	}
	return ""
}

// requestTo makes a request with a token, unless that is empty, and with more headers.
func requestTo(ctx context.Context, method, url, token string, body any, headers ...string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

// newSpeaker starts a model that says the time, in microseconds, again and again: one word
// every so often, when begin is closed. It returns the model's address.
func newSpeaker(t *testing.T, begin <-chan struct{}, words int, every time.Duration) string {
	t.Helper()
	return serveModel(t, func(r *http.Request, send func(string)) {
		select {
		case <-begin:
		case <-r.Context().Done():
			return
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for range words {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			send(fmt.Sprintf(`{"content":"%d "}`, time.Now().UnixMicro()))
		}
	})
}

// serveModel starts a model over OpenAI's wire that says what speak sends.
func serveModel(t *testing.T, speak func(r *http.Request, send func(delta string))) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // then the end of the client is noticed
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta, end string) {
			fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s%s}]}\n\n", delta, end)
			w.(http.Flusher).Flush()
		}
		speak(r, func(delta string) { send(delta, "") })
		send("{}", `,"finish_reason":"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}
