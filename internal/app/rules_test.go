package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/run/executor/function"
	"ken/internal/testkit"
)

type nothing struct{}

// patient makes a function that waits until its call is over, and says when it
// began and why it ended.
func patient(t *testing.T) (f *function.Function, began chan struct{}, ended chan error) {
	t.Helper()
	began, ended = make(chan struct{}, 1), make(chan error, 1)
	f, err := function.Func("patient", "Wait for the end", func(ctx context.Context, _ nothing) (string, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
	return f, began, ended
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func person(a *App) door.View {
	return a.Door.ViewFor(door.Viewer{Principal: a.Principal, Origin: capability.ByPerson, Surface: "run"})
}

// TestRulesAreReadAtEveryDecision: what a file takes away is gone at the next
// call, a file that cannot be followed refuses everything, and mended it lets
// calls through again (K4.14).
func TestRulesAreReadAtEveryDecision(t *testing.T) {
	dir, getenv := home(t, nil)
	work := t.TempDir()
	write(t, filepath.Join(work, "a.txt"), "hello\n")
	a := open(t, Config{Getenv: getenv, Dir: work})
	read := func() error {
		_, err := a.Door.Invoke(t.Context(), person(a), capability.Call{
			Target: "tool:read_file", Arguments: json.RawMessage(`{"path":"a.txt"}`), Origin: capability.ByPerson, Session: "s",
		})
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	access := filepath.Join(dir, ".ken", "context", "tool-access.json")
	write(t, access, `{"global": {"enabled": true, "mode": "allowlist", "allowedTools": ["shell"]}}`)
	if err := read(); capability.KindOf(err) != capability.Denied {
		t.Errorf("a tool that is off: %v, want Denied", err)
	}
	write(t, access, `{"global": {"enabled": true, "mod": "full"}}`)
	if err := read(); err == nil {
		t.Error("a file with an unknown key lets calls through")
	}
	if _, err := a.View().Lookup("tool:read_file"); err == nil {
		t.Error("without rules something is seen")
	}
	if err := os.Remove(access); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("with the file gone: %v", err)
	}
}

// TestRunnerIsMadeWhileFilesChange: whoever makes a part sees that a file was
// changed, and does not wait for himself.
func TestRunnerIsMadeWhileFilesChange(t *testing.T) {
	dir, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv})
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "policy: {profile: locked}\n")
	if _, err := a.runner.Get(); err != nil {
		t.Error(err)
	}
}

// TestRevokedCallIsStopped: a call that runs while its tool is taken away is
// ended (K4.14).
func TestRevokedCallIsStopped(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	dir, getenv := home(t, nil)
	f, began, ended := patient(t)
	a := open(t, Config{Getenv: getenv, Functions: []*function.Function{f}})
	done := make(chan error, 1)
	go func() {
		_, err := a.Door.Invoke(t.Context(), person(a), capability.Call{Target: "tool:patient", Arguments: json.RawMessage(`{}`), Origin: capability.ByPerson, Session: "s"})
		done <- err
	}()
	<-began
	write(t, filepath.Join(dir, ".ken", "context", "tool-access.json"), `{"global": {"enabled": false}}`)
	if cause := <-ended; cause == nil || !strings.Contains(cause.Error(), "no longer allow") {
		t.Errorf("it was ended by %v, want by the rules", cause)
	}
	if err := <-done; err == nil {
		t.Error("the call ended well")
	}
}

// TestListingFollowsTheRulesAtOnce: a listing after a change of the rules shows
// what the new rules allow, however soon it comes after the last one.
func TestListingFollowsTheRulesAtOnce(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	dir, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv})
	access := filepath.Join(dir, ".ken", "context", "tool-access.json")
	next := access + ".next"
	wrong := 0
	for i := range 40 {
		hide := i%2 == 0
		text := `{"global": {"enabled": true, "mode": "full"}}`
		if hide {
			text = `{"global": {"enabled": false, "mode": "full"}}`
		}
		write(t, next, text)
		old := time.Now().Add(-time.Duration(i+2) * time.Second) // the file has been unchanged for a while
		if err := os.Chtimes(next, old, old); err != nil {
			t.Fatal(err)
		}
		a.loader.Latest()
		if err := os.Rename(next, access); err != nil {
			t.Fatal(err)
		}
		if _, err := a.View().Lookup("tool:read_file"); (err != nil) != hide {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of 40 listings follow earlier rules", wrong)
	}
}
