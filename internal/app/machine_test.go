package app

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ken/internal/secret"
)

// TestMachineChanges: a tool can be used soon after what it lacked is there, and
// cannot once it is gone, while Ken runs and no file of its own changes.
func TestMachineChanges(t *testing.T) {
	bin := t.TempDir()
	dir, getenv := home(t, map[string]string{
		".ken/capabilities/keyed/CAPABILITY.yaml":  "kind: tool\nname: keyed\ndescription: Wants a key\nrequiredSecrets: [SEARCH_KEY]\n",
		".ken/capabilities/tooled/CAPABILITY.yaml": "kind: tool\nname: tooled\ndescription: Wants a program\nrequiredBins: [ken-test-came-later]\n",
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
	other := open(t, Config{Getenv: env, Dir: t.TempDir()})
	if err := other.secrets.Set("SEARCH_KEY", secret.Of("open-sesame-and-more")); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return can("tool:keyed") })

	// What nobody tells of is looked at less often: here, more so.
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	looking.Go(func() { a.watchMachine(ctx, 10*time.Millisecond) })
	program := filepath.Join(bin, "ken-test-came-later")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return can("tool:tooled") })
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := other.secrets.Remove("SEARCH_KEY"); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { return !can("tool:tooled") && !can("tool:keyed") })
}
