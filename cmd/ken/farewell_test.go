//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestFarewell: a replica gets SIGTERM while a turn runs. Who follows the turn gets its end. Then
// every stream says that the server leaves and when to come again, and goes on at
// another replica.
func TestFarewell(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	release := make(chan struct{})
	model := newTalker(t, func(said string, _ bool) (string, []string, <-chan struct{}) {
		if said == "please hold" {
			return "", counting, release
		}
		return "", []string{"fine"}, nil
	})
	r := newReplicas(t, 2, storetest.Postgres(t), fmt.Sprintf("policy: {intents: \"off\"}\nmodel: lab/any\nproviders: {lab: {wire: openai-chat, url: %q}}\n", model))
	a, b := r[0], r[1]
	busy, idle := a.session(t), a.session(t)
	a.say(t, busy, "please hold")
	running, waiting := a.follow(t, busy, ""), a.follow(t, idle, "")
	running.until(t, "delta")
	waiting.until(t, "idle")
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// left returns how soon to come again. Nothing follows that.
	left := func(name string, l *listener) time.Duration {
		t.Helper()
		list := l.until(t, "leaving")
		last := list[len(list)-1]
		var bye struct {
			Type  string
			Retry int
		}
		if err := json.Unmarshal(last.data, &bye); err != nil || bye.Type != "leaving" || bye.Retry < 100 || bye.Retry > 1000 || last.id != "" {
			t.Errorf("%s: the last event is %+v %s", name, last, last.data)
		}
		if e, more := <-l.events; more {
			t.Errorf("%s: after the farewell comes %s", name, e.name)
		}
		return time.Duration(bye.Retry) * time.Millisecond
	}
	soon := left("an idle session", waiting)
	<-time.After(soon) // as the client is told
	moved := b.follow(t, idle, "")
	moved.until(t, "idle")
	if status := b.say(t, idle, "hello"); status != http.StatusAccepted {
		t.Errorf("the next turn: %d", status)
	}
	if text := textOf(moved.until(t, "done")); text != "fine" {
		t.Errorf("the other replica has %q", text)
	}

	close(release)
	list := running.until(t, "done")
	if text := textOf(list); !strings.HasSuffix(strings.Join(counting, ""), text) || text == "" {
		t.Errorf("who followed the turn has %q", text)
	}
	seen := list[len(list)-1].id
	<-time.After(left("a session with a turn", running)) // as the client is told
	again := b.follow(t, busy, seen)
	again.until(t, "idle")
	if !testkit.Until(func() bool { return b.say(t, busy, "hello") == http.StatusAccepted }) {
		t.Fatal("the session is never free")
	}
	for _, e := range again.until(t, "done") {
		if e.name == "reset" {
			t.Error("the other replica does not know the last event")
		}
	}
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("ken serve ended with %v\n%s", err, a.stderr.String())
	}
}
