package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/run/executor/db"
	"ken/internal/run/executors"
	"ken/internal/secret"
	"ken/internal/testkit"
	"ken/plugin"
)

// TestRunsWhatExecutorsRun: what the catalog says of runners is what calls find.
func TestRunsWhatExecutorsRun(t *testing.T) {
	dir, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv, Dir: dir, Plugins: []plugin.Plugin{lender{}}})
	kept, err := a.results.Get()
	if err != nil {
		t.Fatal(err)
	}
	have, err := executors.New(a.executorConfig(kept))
	if err != nil {
		t.Fatal(err)
	}
	unrun := executors.Unrunnable(a.plugins, nil)
	runs := func(c *capability.Capability) bool { return unrun(c) == "" }
	for name, x := range have {
		own := capability.Capability{Trust: capability.TrustBuiltin, Run: &capability.Recipe{Runner: strings.Replace(name, "*", "one", 1)}}
		if name == "db.*" { // which wants a verb, and a database
			own.Run = &capability.Recipe{Runner: "db.query", Argv: []string{db.Chosen}}
		}
		if name == "llm.ask" { // which wants a question
			own.Run.Ask = &capability.Ask{Prompt: "x"}
		}
		if name == "api.*" { // which wants a verb
			own.Run.Runner = "api.get"
		}
		if name == "browser.*" {
			own.Run.Runner = "browser.open"
		}
		others := own
		others.Trust = capability.TrustUser
		if !runs(&own) {
			t.Errorf("the catalog says that nothing runs %s, and %s does", own.Run.Runner, name)
		}
		_, err := x.Facts(t.Context(), capability.Call{Target: "tool:one"}, &others)
		denied, _ := errors.AsType[*capability.Error](err)
		if only := denied != nil && denied.Kind == capability.Denied && denied.Rule == "run.runner"; runs(&others) == only {
			t.Errorf("the catalog says that others' %s is run: %v, want %v", others.Run.Runner, only, !only)
		}
	}
	for _, name := range []string{"browser.print", "tool:x", "shell.x", "exec"} {
		if runs(&capability.Capability{Trust: capability.TrustBuiltin, Run: &capability.Recipe{Runner: name}}) {
			t.Errorf("the catalog says that something runs %q", name)
		}
	}
}

type lender struct{}

func (lender) Name() string { return "lender" }
func (lender) Executors() map[string]capability.Invoker {
	return map[string]capability.Invoker{"lent.*": capability.InvokerFunc(nil)}
}

// TestMachineChanges: a tool can be used soon after what it lacked is there, and
// cannot once it is gone, while Ken runs and no file of its own changes.
func TestMachineChanges(t *testing.T) {
	bin := t.TempDir()
	dir, getenv := home(t, map[string]string{
		".ken/capabilities/keyed/CAPABILITY.yaml":  "kind: tool\nname: keyed\ndescription: Wants a key\nrequiredSecrets: [SEARCH_KEY]\nrun: {runner: function.keyed}\n",
		".ken/capabilities/tooled/CAPABILITY.yaml": "kind: tool\nname: tooled\ndescription: Wants a program\nrequiredBins: [ken-test-came-later]\nrun: {runner: function.tooled}\n",
	})
	env := func(name string) string {
		if name == "PATH" {
			return bin
		}
		return getenv(name)
	}
	a := open(t, Config{Getenv: env, Dir: dir})
	can := func(id string) bool {
		e, err := a.View().Lookup(id)
		return err == nil && e.Available
	}
	if can("tool:keyed") || can("tool:tooled") {
		t.Fatal("tools can be used that lack something")
	}
	watch(t, a)
	other := open(t, Config{Getenv: env})
	if err := other.Secrets.Set("SEARCH_KEY", secret.Of("open-sesame-and-more")); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return can("tool:keyed") })

	// What nobody tells of is looked at less often: here, more so.
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	looking.Go(func() { a.Catalog.WatchMachine(ctx, 10*time.Millisecond, a.Secrets.Changes) })
	program := filepath.Join(bin, "ken-test-came-later")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return can("tool:tooled") })
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := other.Secrets.Remove("SEARCH_KEY"); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return !can("tool:tooled") && !can("tool:keyed") })
}

// TestDatabasesChange: a running Ken has the databases that ken.yaml names, also
// those that were added, and none that was removed. One whose file is missing is
// unavailable until the file is there.
func TestDatabasesChange(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, "shop.db")
	a := watched(t, Config{Getenv: getenv, Dir: t.TempDir()})
	query := func(name string) *door.Entry { // nil: it is not there
		e, _ := a.OperatorView().Lookup("tool:db_" + name + "_query")
		return e
	}
	name := func(names ...string) {
		text := "databases: {"
		for _, n := range names {
			text += n + ": {engine: sqlite, path: " + file + "}, "
		}
		write(t, filepath.Join(dir, ".ken", "ken.yaml"), text+"}\n")
	}
	name("shop")
	until(t, a, func() bool { return query("shop") != nil })
	if e := query("shop"); e.Ready() || !strings.Contains(e.Missing.String(), file+": the file does not exist") {
		t.Errorf("without the file it is ready: %v, missing %q", e.Ready(), e.Missing)
	}
	write(t, file, "")
	until(t, a, func() bool { return query("shop").Ready() })
	name("shop", "crm")
	until(t, a, func() bool { return query("crm") != nil && query("shop") != nil })
	name("crm")
	until(t, a, func() bool { return query("crm") != nil && query("shop") == nil })
	name()
	until(t, a, func() bool { return query("crm") == nil })
}

// watched opens an App and watches it, like a daemon does.
func watched(t *testing.T, cfg Config) *App {
	t.Helper()
	a := open(t, cfg)
	done := make(chan error, 1)
	ctx := t.Context() // over before the cleanup of open
	go func() { done <- a.Watch(ctx) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("Watch() = %v", err)
		}
		list, err := filepath.Glob(filepath.Join(statusDir(a.Places), "*"))
		if err != nil || len(list) > 0 {
			t.Errorf("after Watch there are notes: %v, %v", list, err)
		}
	})
	return a
}
