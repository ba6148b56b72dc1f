package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/run/executor/function"
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

func write(t *testing.T, path, text string) {
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
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "policy: {profile: locked}\n")
	made := make(chan error, 1)
	go func() {
		_, err := a.runner.Get()
		made <- err
	}()
	select {
	case err := <-made:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the runner is not made")
	}
}

// TestOtherSettingsKeepTheRules: what the files say beside the rules makes no new
// ones, and of every file one mark is kept, however often it was read.
func TestOtherSettingsKeepTheRules(t *testing.T) {
	dir, getenv := home(t, map[string]string{".ken/more.cedar": "permit (principal, action, resource);\n"})
	file := filepath.Join(dir, ".ken", "ken.yaml")
	cedar := "policy: {cedar: [" + filepath.Join(dir, ".ken", "more.cedar") + "]}\n"
	write(t, file, cedar)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	rules, n := a.Rules(), len(a.laws.now.Load().marks)
	for _, steps := range []string{"9", "10"} {
		write(t, file, cedar+"chat: {steps: "+steps+"}\n")
		r := a.laws.looking()
		if r.rules != rules {
			t.Errorf("with chat.steps %s there are other rules", steps)
		}
		if len(r.marks) != n {
			t.Errorf("with chat.steps %s there are %d marks, want %d", steps, len(r.marks), n)
		}
	}
	write(t, file, cedar+"skills: {off: [shell]}\n")
	if r := a.laws.looking(); r.rules == nil || r.rules == rules {
		t.Errorf("with skills.off the rules are %p, want others than %p", r.rules, rules)
	}
}

// TestEveryChangeIsSeen: a change between the reading of the files and the book
// of it, one of a file that was only just named, and one that leaves a file of
// the same size and time.
func TestEveryChangeIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, getenv := home(t, nil)
		places, err := config.NewPlaces(getenv, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, cedar := filepath.Join(dir, ".ken", "ken.yaml"), filepath.Join(dir, ".ken", "more.cedar")
		put := func(path, text string, at time.Time) {
			t.Helper()
			write(t, path, text)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		old := time.Now().Add(-time.Hour)
		put(file, "chat: {steps: 5}\n", old)
		settings, marks, err := readFiles(places, "", config.Config{})
		if err != nil {
			t.Fatal(err)
		}
		put(file, "chat: {steps: 16}\n", old)
		b, err := newLawbook(places, "", settings, marks, func(c config.Config) *standing { return &standing{Config: c} })
		if err != nil {
			t.Fatal(err)
		}
		if n := b.looking().said.Chat.Steps; n != 16 {
			t.Errorf("changed before the book was made, there are %d steps, want 16", n)
		}

		put(cedar, "permit (principal, action, resource);\n", old)
		put(file, "policy: {cedar: ["+cedar+"]}\n", old)
		if r := b.looking(); r.err != nil || r.holds() {
			t.Errorf("a file was read before it was looked at, and that holds (%v)", r.err)
		}
		if r := b.looking(); !r.holds() {
			t.Error("the second reading does not hold")
		}

		put(file, "chat: {steps: 17}\n", time.Now())
		b.looking()
		put(file, "chat: {steps: 18}\n", time.Now())
		if n := b.looking().said.Chat.Steps; n != 18 {
			t.Errorf("changed within a tick, there are %d steps, want 18", n)
		}
		time.Sleep(settled)
		if r := b.looking(); !r.holds() {
			t.Error("a file that was not changed for a while does not hold")
		}
	})
}

// TestRulesOfAFileThatIsBeingWritten: a file that is away for a moment, or cut so
// that it can be read, loosens nothing; one that stays so counts.
func TestRulesOfAFileThatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, getenv := home(t, nil)
		places, err := config.NewPlaces(getenv, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, ".ken", "ken.yaml")
		const text = "model: lab/any\npolicy:\n  rules: [{effect: deny, capabilities: [\"tool:list_files\"]}]\n"
		put := func(text string) {
			write(t, file, text)
			if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		put(text)
		settings, marks, err := readFiles(places, "", config.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := newLawbook(places, "", settings, marks, func(c config.Config) *standing { return &standing{Config: c} })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		rules := b.looking().rules
		for _, way := range []struct {
			name  string
			steps []string // what the file says, one after another; "-": it is away
		}{
			{"renamed away", []string{"-", text}},
			{"removed, and written in pieces", []string{"-", "", "model: lab/any\n", text[:24], text}},
			{"cut after a line", []string{"model: lab/any\n", text}},
			{"emptied", []string{"", text}},
			{"a newline", []string{"\n", text}},
		} {
			for _, step := range way.steps {
				if step != "-" {
					put(step)
				} else if err := os.Rename(file, file+".old"); err != nil {
					t.Fatal(err)
				}
				asked := make(chan *policy.Rules, 1)
				go func() { asked <- b.looking().rules }()
				time.Sleep(still / 3)
				select {
				case got := <-asked:
					if got != rules && got != nil {
						t.Errorf("%s: while the file says %q there are other rules", way.name, step)
					}
				default: // it waits
					defer func() {
						if got := <-asked; got != rules && got != nil {
							t.Errorf("%s: who asked while the file said %q got other rules", way.name, step)
						}
					}()
				}
			}
			time.Sleep(2 * still)
			if got := b.looking().rules; got != rules {
				t.Errorf("%s: in the end there are other rules", way.name)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if got := b.looking().rules; got == nil || got == rules {
			t.Errorf("a file that stays away: the rules are %p, want others than %p", got, rules)
		}
	})
}

// TestRevokedCallIsStopped: a call that runs while its tool is taken away is
// ended (K4.14).
func TestRevokedCallIsStopped(t *testing.T) {
	dir, getenv := home(t, nil)
	f, began, ended := patient(t)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Functions: []*function.Function{f}})
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
	dir, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
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
		a.laws.looking()
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
