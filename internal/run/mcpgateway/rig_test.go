//go:build unix

package mcpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/sandbox"
	"ken/internal/testkit/mcptest/sample"
)

// stdio defines a server that this binary is.
func stdio(t testing.TB, name, mode string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		Name: name, Command: exe, Env: map[string]string{sample.Var: mode}, Trust: capability.TrustUser,
		Origin: capability.Origin{Path: "/home/u/.ken/mcp.json"}, StartTimeout: 30 * time.Second, Timeout: 30 * time.Second,
	}
}

// gateway makes a gateway that is closed with the test.
func gateway(t testing.TB, cfg Config, servers ...Server) *Gateway {
	t.Helper()
	cfg.Servers = servers
	if cfg.Work == "" {
		cfg.Work = t.TempDir()
	}
	if cfg.Require == "" {
		cfg.Require = sandbox.Off
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return g
}

// listed makes a gateway and lists its servers.
func listed(t testing.TB, cfg Config, servers ...Server) *Gateway {
	t.Helper()
	g := gateway(t, cfg, servers...)
	for _, st := range g.List(t.Context()) {
		if st.Err != "" {
			t.Fatalf("List: %s: %s; %s", st.Name, st.Err, st.Fix)
		}
	}
	return g
}

func callAs(who, session, target, args string) capability.Call {
	if args == "" {
		args = "{}"
	}
	return capability.Call{
		Target: capability.ID("mcp:" + target), Arguments: json.RawMessage(args), Session: session,
		Principal: capability.Principal{ID: who},
	}
}

// textOf returns the text of a result.
func textOf(r capability.Result) string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// invoke makes a call that must work.
func invoke(t testing.TB, g *Gateway, call capability.Call) string {
	t.Helper()
	res, err := g.Invoke(t.Context(), call)
	if err != nil || res.Failed {
		t.Fatalf("Invoke(%s) = %+v, %v", call.Target, res, err)
	}
	return textOf(res)
}

func pidOf(t testing.TB, g *Gateway, who, session, server string) int {
	t.Helper()
	pid, err := strconv.Atoi(invoke(t, g, callAs(who, session, server+"/pid", "")))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// gives makes a call that must end with a text.
func gives(t testing.TB, g *Gateway, call capability.Call, want string) {
	t.Helper()
	if got := invoke(t, g, call); got != want {
		t.Errorf("%s %s = %q, want %q", call.Target, call.Arguments, got, want)
	}
}

// refused makes a call that must fail with a kind of error that says some words. It
// returns the error.
func refused(t testing.TB, g *Gateway, call capability.Call, kind capability.ErrorKind, says ...string) *capability.Error {
	t.Helper()
	res, err := g.Invoke(t.Context(), call)
	e, _ := errors.AsType[*capability.Error](err)
	if e == nil || e.Kind != kind {
		t.Fatalf("Invoke(%s %s) = %+v, %v; want %v", call.Target, call.Arguments, res, err, kind)
	}
	for _, want := range says {
		if !strings.Contains(e.Error()+"\n"+e.Fix, want) {
			t.Errorf("Invoke(%s %s) = %v; fix: %s; want it to say %q", call.Target, call.Arguments, err, e.Fix, want)
		}
	}
	return e
}

func load(t testing.TB, g *Gateway) capability.Batch {
	t.Helper()
	var all capability.Batch
	for _, src := range g.Sources() {
		b, err := src.Load(t.Context())
		if err != nil {
			t.Fatalf("Load(%s) = %v", src.Name(), err)
		}
		all.Capabilities = append(all.Capabilities, b.Capabilities...)
		all.Problems = append(all.Problems, b.Problems...)
	}
	return all
}

func byID(b capability.Batch) map[capability.ID]*capability.Capability {
	out := map[capability.ID]*capability.Capability{}
	for _, c := range b.Capabilities {
		out[c.ID] = c
	}
	return out
}

// watch runs a source's Watch and hands its batches on.
func watch(t testing.TB, src capability.Source) <-chan capability.Batch {
	t.Helper()
	if _, err := src.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan capability.Batch, 16)
	done := make(chan struct{})
	var seq iter.Seq2[capability.Batch, error] = src.(capability.Watcher).Watch(ctx)
	go func() {
		defer close(done)
		for b, err := range seq {
			if err != nil {
				t.Errorf("Watch yields %v", err)
			}
			out <- b
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}
