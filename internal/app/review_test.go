package app

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/runner"
	"ken/internal/testkit"
)

// TestDisabledCallIsStopped: a call that runs while its extension is switched off
// is ended, by this process or by another.
func TestDisabledCallIsStopped(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	if runtime.GOOS != "linux" {
		t.Skip("cannot here: programs are held on Linux")
	}
	for _, elsewhere := range []bool{false, true} {
		dir, getenv := home(t, map[string]string{
			".ken/extensions/nap/manifest.json": `{"id": "tools.nap", "name": "Nap", "version": "1.0.0", "description": "Sleeps.", "permissions_required": ["exec"],
				"capabilities": [{"type": "slash_command", "name": "/nap", "description": "Sleep."}]}`,
			".ken/extensions/nap/commands.yaml": "slash_commands:\n  - name: /nap\n    summary: Sleep\n    actions:\n      - {id: long, description: Sleep long, argv: [sleep, '600'], timeout_sec: 600}\n",
		})
		began := make(chan struct{}, 1)
		a := open(t, Config{Getenv: getenv, Observe: func(tr runner.Transition) {
			if tr.State == runner.Executing {
				began <- struct{}{}
			}
		}})
		x, err := a.Extensions.Find(t.Context(), "tools.nap", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Extensions.Enable(t.Context(), a.Principal, x, ""); err != nil {
			t.Fatal(err)
		}
		type ended struct {
			res capability.Result
			err error
		}
		done := make(chan ended, 1)
		go func() {
			res, err := a.Door.Invoke(t.Context(), person(a), capability.Call{Target: "command:nap/long", Arguments: json.RawMessage(`{}`), Origin: capability.ByPerson, Session: "s"})
			done <- ended{res, err}
		}()
		select {
		case <-began:
		case e := <-done:
			t.Fatalf("the call ended before it was stopped: %+v", e)
		}
		who := a
		if elsewhere {
			who = open(t, Config{Getenv: getenv, Dir: dir})
		}
		if _, err := who.Extensions.Disable(t.Context(), who.Principal, "tools.nap", "", ""); err != nil {
			t.Fatal(err)
		}
		// A call that has only just begun is refused by the last look before its program starts.
		e := <-done
		if said := fmt.Sprintf("%+v", e); !e.res.Failed || !strings.Contains(said, "extension was switched off") && !strings.Contains(said, "extension tools.nap is disabled") {
			t.Errorf("switched off elsewhere %v: the call ended with %+v, want that as the reason", elsewhere, e)
		}
	}
}
