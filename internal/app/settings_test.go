package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/serve/doctor"
	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// TestSettingsCountWithoutARestart: what a file says of finding, of calls, of
// people and of turns counts for the next one.
func TestSettingsCountWithoutARestart(t *testing.T) {
	testkit.CI(t, "changes many settings")
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "discovery: {tier1MinRelevance: 0, tier1TailRelevance: 0}\ncapabilities: {logLevel: none}\n")
	a := open(t, Config{Getenv: getenv})
	set := func(key, value string) {
		t.Helper()
		if err := config.Set(file, key, value); err != nil {
			t.Fatal(err)
		}
		a.loader.Latest()
	}
	found := func() door.Found {
		t.Helper()
		f, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: "search the web for news about files", Scope: capability.Scope{Session: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	logged := func() int {
		text, _ := os.ReadFile(filepath.Join(a.Places.Logs, "capabilities.log"))
		return len(text)
	}
	read := func() error {
		_, err := a.Door.Invoke(t.Context(), person(a), capability.Call{
			Target: "tool:read_file", Arguments: json.RawMessage(`{"path":"` + strings.Repeat("a", 200) + `"}`), Origin: capability.ByPerson, Session: "s",
		})
		return err
	}
	asked := func() time.Duration {
		t.Helper()
		desk, err := a.Desk()
		if err != nil {
			t.Fatal(err)
		}
		q, err := desk.Ask(t.Context(), approval.Question{Call: capability.Call{
			Target: "tool:x", CapabilityHash: "h", Principal: a.Principal, Session: "s", Arguments: json.RawMessage(`{"n":"` + time.Now().String() + `"}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return q.Expires.Sub(q.Asked)
	}

	if n := len(found().Briefs); n < 2 || logged() != 0 {
		t.Fatalf("%d briefs to begin with, want several, and %d bytes logged, want none", n, logged())
	}
	read() // that makes the runner, with the limits as they are
	before := asked()

	set("discovery.tier1TopK", "1")
	if n := len(found().Briefs); n != 1 {
		t.Errorf("with discovery.tier1TopK 1 there are %d briefs", n)
	}
	set("capabilities.logLevel", "detailed")
	found()
	if logged() == 0 {
		t.Error("with capabilities.logLevel detailed nothing was logged")
	}
	set("capabilities.rollout", "monitor")
	if f := found(); f.Rollout.Inject {
		t.Errorf("with capabilities.rollout monitor something is injected: %+v", f.Rollout)
	}
	set("approval.wait", "2m")
	if now := asked(); now != 2*time.Minute || now == before {
		t.Errorf("with approval.wait 2m a question waits %v, and %v before", now, before)
	}
	set("limits.argumentBytes", "100")
	if err := read(); err == nil || !strings.Contains(err.Error(), "limits.argumentBytes (100)") {
		t.Errorf("with limits.argumentBytes 100 a call with more = %v, want it refused by that", err)
	}
	set("chat.steps", "7")
	if n := termsOf(a.effective()).Limits.Steps; n != 7 {
		t.Errorf("with chat.steps 7 a turn has %d", n)
	}
	set("limits.timeout", "17s")
	if d := callLimits(a.effective(), 0).Timeout; d == 17*time.Second {
		t.Error("limits.timeout counts at once, and it is said to count from the next start")
	}
	for _, s := range a.settingsPage().List() {
		if want := s.Key == "limits.timeout"; (s.InForce != "") != want {
			t.Errorf("%s is %s, in force %q", s.Key, s.Value, s.InForce)
		}
	}
}

// lab makes a provider's server whose requests are answered by their models.
func lab(t *testing.T, script llmtest.Script) (server *llmtest.Server, settings string) {
	t.Helper()
	server = llmtest.Serve(t, llmtest.Chat, script)
	return server, "providers: {lab: {wire: openai-chat, url: '" + server.URL() + "', key: LAB_KEY}}\n"
}

// TestNamedModelStays: a model that the caller named answers whatever ken.yaml
// comes to say, until he names none.
func TestNamedModelStays(t *testing.T) {
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "model: openai/a\n")
	a := open(t, Config{Getenv: getenv})
	a.UseModel("openai/mine")
	write(t, file, "model: openai/other\nchat: {steps: 9}\n")
	a.loader.Latest()
	if name, steps := a.Models.Name(), a.effective().Chat.Steps; name != "openai/mine" || steps != 9 {
		t.Errorf("the model is %s and there are %d steps, want openai/mine and 9", name, steps)
	}
	a.UseModel("")
	if name := a.Models.Name(); name != "openai/other" {
		t.Errorf("with none named the model is %s, want that of ken.yaml", name)
	}
}

// TestWrongFileReplacesNothing: a file that is half-written or wrong leaves the
// settings before it in force and lets no call through; the log and the doctor
// say why. Mended, it counts.
func TestWrongFileReplacesNothing(t *testing.T) {
	testkit.CI(t, "waits for files to settle")
	for name, wrong := range map[string]string{
		"half-written": "model: openai/b\nchat:\n  steps: [",
		"emptied":      "",
		"unknown key":  "model: openai/b\nchat: {stepz: 3}\n",
		"bad rule":     "model: openai/b\npolicy: {rules: [{name: x, allow: {nonsense: 1}}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir, getenv := home(t, nil)
			file := filepath.Join(dir, ".ken", "ken.yaml")
			write(t, file, "model: openai/a\nchat: {steps: 4}\n")
			var log bytes.Buffer
			a := open(t, Config{Getenv: getenv, Log: slog.New(slog.NewTextHandler(&log, nil))})
			write(t, file, wrong)
			now := a.loader.Latest().Settings
			if now.Model != "openai/a" || now.Chat.Steps != 4 {
				t.Errorf("in force are %s and %d steps, want those before", now.Model, now.Chat.Steps)
			}
			if a.Rules() != nil {
				t.Error("there are rules")
			}
			checks := doctor.Examine(a.Facts(t.Context()))
			if c := checks[0]; c.Grade != doctor.Bad || !strings.Contains(c.Message, "ken.yaml") || !strings.Contains(c.Message, "stay as they were") {
				t.Errorf("the doctor says %+v, want what is wrong with the file", c)
			}
			if !strings.Contains(log.String(), "ken.yaml") {
				t.Errorf("the log says %q, want what is wrong with the file", log.String())
			}
			for _, s := range a.settingsPage().List() {
				if s.Key == "chat.steps" && s.Value != "4" {
					t.Errorf("chat.steps is shown as %s", s.Value)
				}
			}
			write(t, file, "model: openai/c\n")
			if now := a.loader.Latest().Settings; now.Model != "openai/c" || now.Chat.Steps != config.Default().Chat.Steps {
				t.Errorf("fixed, in force are %s and %d steps, want openai/c and those of no file", now.Model, now.Chat.Steps)
			}
			if a.Rules() == nil {
				t.Error("fixed, there are no rules")
			}
		})
	}
}

// TestFilesThatAreNamedAreWatched: the file of an experiment's other side and a
// file of rules are read again when they alone change, also after they were
// wrong.
func TestFilesThatAreNamedAreWatched(t *testing.T) {
	testkit.CI(t, "waits for files to settle")
	dir, getenv := home(t, map[string]string{".ken/b.yaml": "discovery: {tier1TopK: 2}\n", ".ken/more.cedar": "permit (principal, action, resource);\n"})
	kens := filepath.Join(dir, ".ken")
	write(t, filepath.Join(kens, "ken.yaml"), "experiment: {name: e, config: "+filepath.Join(kens, "b.yaml")+"}\npolicy: {cedar: ["+filepath.Join(kens, "more.cedar")+"]}\n")
	a := open(t, Config{Getenv: getenv})
	write(t, filepath.Join(kens, "b.yaml"), "discovery: {tier1TopK: 13}\n")
	a.loader.Latest()
	var sizes []int
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		sizes = append(sizes, a.tuner.For(capability.Scope{Session: id}).TopK)
	}
	if !slices.Contains(sizes, 13) || slices.Contains(sizes, 2) {
		t.Errorf("sessions show at most %v briefs, want 13 on the other side", sizes)
	}
	write(t, filepath.Join(kens, "more.cedar"), "permit (nonsense\n")
	if a.loader.Latest().Rules != nil {
		t.Fatal("rules that cannot be read leave some")
	}
	write(t, filepath.Join(kens, "more.cedar"), "permit (principal, action, resource); // fixed\n")
	if r := a.loader.Latest(); r.Rules == nil {
		t.Errorf("fixed, the rules are refused: %v", r.Err)
	}
	write(t, filepath.Join(kens, "ken.yaml"), "policy: {cedar: ["+filepath.Join(kens, "new.cedar")+"]}\n")
	if a.loader.Latest().Rules != nil {
		t.Fatal("rules of a file that is not there leave some")
	}
	write(t, filepath.Join(kens, "new.cedar"), "permit (principal, action, resource);\n")
	if r := a.loader.Latest(); r.Rules == nil {
		t.Errorf("with the new file there, the rules are refused: %v", r.Err)
	}
}

// TestSettingsChangeUnderLoad: whoever asks while files are written gets one
// state or another, whole.
func TestSettingsChangeUnderLoad(t *testing.T) {
	testkit.CI(t, "reads and writes much")
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "chat: {steps: 5, mistakes: 5}\n")
	a := open(t, Config{Getenv: getenv})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if now := a.loader.Latest().Settings; now.Chat.Steps != now.Chat.Mistakes {
					t.Errorf("steps %d and mistakes %d are of two files", now.Chat.Steps, now.Chat.Mistakes)
					return
				}
			}
		})
	}
	for i := range 30 {
		for _, text := range []string{"chat: {steps: 6, mistakes: 6}\n", "chat: {steps: [", "chat: {steps: 77, mistakes: 77}\n"} {
			temp := file + ".new"
			write(t, temp, text)
			if err := os.Rename(temp, file); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	close(stop)
	readers.Wait()
	if n := a.loader.Latest().Settings.Chat.Steps; n != 77 {
		t.Errorf("in the end there are %d steps, want 77", n)
	}
}

// BenchmarkNow is what it costs to ask for the settings in force.
func BenchmarkNow(b *testing.B) {
	a := alone(b, "", Config{})
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			a.effective()
		}
	})
	b.Run("with a look", func(b *testing.B) {
		for b.Loop() {
			a.loader.Latest()
		}
	})
}
