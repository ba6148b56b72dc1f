package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/llm"
	"ken/llm/llmtest"
	"ken/plugin"
)

// say runs one turn in a new session with a scripted model and returns its
// events.
func say(t *testing.T, a *App, text string) []event.Event {
	t.Helper()
	return sayIn(t, a, capability.Scope{}, text)
}

func sayIn(t *testing.T, a *App, scope capability.Scope, text string) []event.Event {
	t.Helper()
	return hear(t, a, event.Input{Session: newSession(t, a), Text: text, Scope: scope})
}

func called(id, name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: id, Name: name, Arguments: []byte(arguments)}
}

func intended(intent string) llm.ToolCall {
	return called("i", "select_active_intent", `{"intent":"`+intent+`","justification":"to do it"}`)
}

// finished returns the results of calls of a target.
func finished(events []event.Event, target capability.ID) []event.Finished {
	var out []event.Finished
	for _, ev := range events {
		if f, ok := ev.(event.Finished); ok && f.Target == target {
			out = append(out, f)
		}
	}
	return out
}

// recorder is a plugin that is everything, and says what was asked of it.
type recorder struct {
	name string
	said *[]string
}

func (r recorder) note(what string) { *r.said = append(*r.said, r.name+" "+what) }

func (r recorder) Name() string                    { return r.name }
func (r recorder) Start(context.Context) error     { r.note("start"); return nil }
func (r recorder) Stop(context.Context) error      { r.note("stop"); return nil }
func (r recorder) WrapModel(m llm.Model) llm.Model { r.note("model"); return m }
func (r recorder) Layers(context.Context) ([]plugin.Layer, error) {
	r.note("layers")
	return []plugin.Layer{{Name: "own", Text: "# Of " + r.name}}, nil
}

func (r recorder) Before(_ context.Context, call capability.Call) (capability.Call, error) {
	r.note("before " + string(call.Target))
	if call.Target == "tool:write_to_file" {
		return call, errors.New("not today")
	}
	return call, nil
}

func (r recorder) After(_ context.Context, call capability.Call, res capability.Result) (capability.Result, error) {
	r.note("after " + string(call.Target))
	return res, nil
}

// TestPluginsAreAsked: each in the order it was given, backwards for results and
// at the end, and a refusal counts.
func TestPluginsAreAsked(t *testing.T) {
	_, getenv := home(t, nil)
	work := t.TempDir()
	write(t, filepath.Join(work, "a.txt"), "hello\n")
	fake := &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{intended("READ_FILE"), called("r", "read_file", `{"path":"a.txt"}`), called("w", "write_to_file", `{"path":"b.txt","content":"x"}`)}},
		llmtest.Reply{Text: "Done."},
	)}
	var said []string
	a, err := Open(t.Context(), Config{Getenv: getenv, Dir: work, Model: fake, Plugins: []plugin.Plugin{recorder{"one", &said}, recorder{"two", &said}}})
	if err != nil {
		t.Fatal(err)
	}
	events := say(t, a, "read a.txt")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"one start", "two start", "one layers", "two layers", "two model", "one model",
		"one before tool:read_file", "two before tool:read_file", "two after tool:read_file", "one after tool:read_file",
		"one before tool:write_to_file", "two stop", "one stop",
	}
	slices.Sort(want) // layers and models are asked for when they are needed
	got := slices.Clone(said)
	slices.Sort(got)
	got = slices.Compact(got)
	if !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("plugins said %q, want %q", got, want)
	}
	if i, j := slices.Index(said, "two after tool:read_file"), slices.Index(said, "one after tool:read_file"); i > j {
		t.Errorf("results went forwards: %q", said)
	}
	if n := len(said); said[n-2] != "two stop" || said[n-1] != "one stop" {
		t.Errorf("the end is %q, want the opposite of the beginning", said[n-2:])
	}
	if f := finished(events, "tool:write_to_file"); len(f) != 1 || !strings.Contains(f[0].Error, "not today") || !strings.Contains(f[0].Error, "plugins.one") {
		t.Errorf("the refused call finished as %+v", f)
	}
	if system := fake.Requests()[0].Request.System; !strings.Contains(system, "# Of one\n\n# Of two") {
		t.Errorf("the layers of plugins are not at the end: %s", system)
	}
}

type failing struct{ recorder }

func (failing) Start(context.Context) error { return errors.New("no") }

// TestPluginsThatCannotBe: one that does not start keeps Ken from opening, and
// those before it are stopped; names are taken once; Ken's runners are its own.
func TestPluginsThatCannotBe(t *testing.T) {
	_, getenv := home(t, nil)
	var said []string
	for want, list := range map[string][]plugin.Plugin{
		"start the plugin bad: no": {recorder{"good", &said}, failing{recorder{"bad", &said}}},
		"is empty or taken":        {recorder{"x", &said}, recorder{"x", &said}},
	} {
		if _, err := Open(t.Context(), Config{Getenv: getenv, Dir: t.TempDir(), Plugins: list}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %q", err, want)
		}
	}
	if !slices.Contains(said, "good stop") {
		t.Errorf("%q: the one that started was not stopped", said)
	}
	a := open(t, Config{Getenv: getenv, Plugins: []plugin.Plugin{thief{}}})
	if _, err := a.Door.Invoke(t.Context(), a.Door.ViewFor(viewer(a)), capability.Call{Target: "tool:list_files"}); err == nil || !strings.Contains(err.Error(), "shell already exists") {
		t.Errorf("Invoke = %v, want that the runner is taken", err)
	}
}

type thief struct{}

func (thief) Name() string { return "thief" }
func (thief) Executors() map[string]capability.Invoker {
	return map[string]capability.Invoker{"shell": capability.InvokerFunc(nil)}
}

func viewer(a *App) door.Viewer {
	return door.Viewer{Principal: a.Principal, Origin: capability.ByPerson, Surface: "run"}
}

// TestHooksAreAsked: a hook of ken.yaml is asked about a tool by whatever name that
// is called.
func TestHooksAreAsked(t *testing.T) {
	dir, getenv := home(t, map[string]string{"PATH": "/usr/bin:/bin"})
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "hooks:\n  gate: {command: [./gate.sh], tools: [list_files, shell]}\n  pass: {command: ['true']}\n")
	write(t, filepath.Join(dir, ".ken", "gate.sh"), "#!/bin/sh\necho 'not now' >&2\nexit 2\n")
	if err := os.Chmod(filepath.Join(dir, ".ken", "gate.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := open(t, Config{Getenv: getenv})
	view := a.Door.ViewFor(viewer(a))
	for target, arguments := range map[capability.ID]string{"list_files": `{}`, "tool:execute_command": `{"command":"ls"}`} { // the bare name, and another name of shell
		_, err := a.Door.Invoke(t.Context(), view, capability.Call{Target: target, Arguments: json.RawMessage(arguments), Origin: capability.ByPerson})
		if err == nil || !strings.Contains(err.Error(), "not now (hooks.gate)") {
			t.Errorf("Invoke(%s) = %v, want the refusal of the hook", target, err)
		}
	}
}
