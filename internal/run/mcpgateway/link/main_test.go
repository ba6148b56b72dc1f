//go:build unix

package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit"
	"ken/internal/testkit/linktest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	linktest.Main()
	goleak.VerifyTestMain(m)
}

func newServer(old bool) *mcp.Server {
	var opts mcp.ServerOptions
	if old {
		opts.SupportedProtocolVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	}
	return mcp.NewServer(&mcp.Implementation{Name: "tester", Title: "The Tester", Version: "1.2"}, &opts)
}

func open(t testing.TB, cfg link.Config) *link.Link {
	t.Helper()
	cfg.Name = "tester"
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	l, err := link.Open(ctx, cfg)
	if err != nil {
		t.Fatalf("Open() = %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return l
}

// to opens a link to a server.
func to(t testing.TB, start func(context.Context) (link.Process, error)) *link.Link {
	t.Helper()
	return open(t, link.Config{Target: link.Target{Start: start}})
}

func wantText(t *testing.T, l *link.Link, call capability.Call, tool, want string) {
	t.Helper()
	if res, err := l.Call(soon(t), call, tool); err != nil || textOf(res) != want {
		t.Errorf("Call(%s) = %v, %v, want %s", tool, res, err, want)
	}
}

// wantErr fails unless an error is of a kind and says some words. None is long or
// has an escape of a terminal.
func wantErr(t *testing.T, what string, err error, kind capability.ErrorKind, says ...string) {
	t.Helper()
	if err == nil || capability.KindOf(err) != kind || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%s: error = %v, want %v", what, err, kind)
		return
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want it to say %q", what, err, want)
		}
	}
}

func callOf(args string) capability.Call {
	return capability.Call{Target: "mcp:tester/x", Arguments: json.RawMessage(args), Principal: capability.Principal{ID: "ann"}}
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	return ctx
}

func textOf(res capability.Result) string {
	var all []string
	for _, p := range res.Parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "|")
}

func inquiryOf(t *testing.T, err error) *capability.Inquiry {
	t.Helper()
	q, ok := errors.AsType[*capability.Inquiry](err)
	if !ok || capability.KindOf(err) != capability.InputNeeded {
		t.Fatalf("error = %v, want an inquiry", err)
	}
	return q
}
