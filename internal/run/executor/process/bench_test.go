package process

import (
	"encoding/json"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/sandbox"
	"ken/internal/testkit/executortest"
)

// BenchmarkInvoke is a confined /bin/true through the executor, and beside it
// the sandbox alone.
func BenchmarkProcess(b *testing.B) {
	e, err := New(Config{Extensions: b.TempDir(), Limits: sandbox.Limits{Wall: time.Minute}, Lookup: trueTool})
	if err != nil {
		b.Fatal(err)
	}
	call := executortest.Call("command:t/do", `{}`)
	b.Run("executor", func(b *testing.B) {
		for b.Loop() {
			if r, err := e.Invoke(b.Context(), call); err != nil || r.Failed {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("sandbox", func(b *testing.B) {
		work, err := e.work(call, "t", 0o700)
		if err != nil {
			b.Fatal(err)
		}
		defer work.Close()
		for b.Loop() {
			if _, err := sandbox.Run(b.Context(), sandbox.Spec{Path: "/usr/bin/true", Args: []string{"true"}, Work: work}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("facts", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Facts(b.Context(), call, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkArgv(b *testing.B) {
	c := &capability.Capability{Run: &capability.Recipe{Runner: "exec.postman_cli", Action: "get"}}
	args := json.RawMessage(`{"url":"https://example.com","v":true,"tag":["a","b"]}`)
	for b.Loop() {
		if _, err := Argv(c, json.RawMessage(placed), args); err != nil {
			b.Fatal(err)
		}
	}
}
