//go:build unix

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestMCPReplicas: real MCP clients whose requests go to two replicas in turn. Without a
// session, either of them answers. A session of an older version is not known on the other
// replica: that one answers with 404, and a client that begins again works there.
func TestMCPReplicas(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	r := newReplicas(t, 2, storetest.Postgres(t), "policy: {intents: \"off\"}\nmcp: {surface: direct}\n")
	dial := func(version string, pick *turns) (*mcp.ClientSession, error) {
		pick.replicas, pick.token = r, r[0].token
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		return client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: r[0].url + "/mcp", HTTPClient: &http.Client{Transport: pick}, MaxRetries: -1, DisableStandaloneSSE: true},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	read := func(cs *mcp.ClientSession) error {
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "note.txt"}})
		if err != nil {
			return err
		}
		if text, err := json.Marshal(res.Content); err != nil || res.IsError || !strings.Contains(string(text), "hello") {
			return fmt.Errorf("read_file: %s %v", text, err)
		}
		return nil
	}

	t.Run("without a session", func(t *testing.T) {
		pick := &turns{}
		cs, err := dial("2026-07-28", pick)
		if err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		if cs.ID() != "" {
			t.Fatalf("there is a session %q", cs.ID())
		}
		for range 10 {
			if _, err := cs.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := read(cs); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := pick.sent[0].Load(), pick.sent[1].Load(); a < 5 || b < 5 { // the client keeps the list
			t.Errorf("%d and %d requests went to the replicas, want both to answer", a, b)
		}
	})

	t.Run("with a session", func(t *testing.T) {
		pick := &turns{}
		pick.only.Store(1)
		cs, err := dial("2025-06-18", pick)
		if err != nil {
			t.Fatal(err)
		}
		if cs.ID() == "" {
			t.Fatal("there is no session")
		}
		if err := read(cs); err != nil {
			t.Fatal(err)
		}
		pick.only.Store(2)
		if err := read(cs); !errors.Is(err, mcp.ErrSessionMissing) {
			t.Errorf("on the other replica: %v, want that the session is missing", err)
		}
		if status := pick.last.Load(); status != http.StatusNotFound {
			t.Errorf("the other replica answered with %d, want 404", status)
		}
		_ = cs.Close()
		if cs, err = dial("2025-06-18", pick); err != nil {
			t.Fatal(err)
		}
		defer cs.Close()
		if err := read(cs); err != nil {
			t.Errorf("a new session: %v", err)
		}
	})
}

// turns sends requests to replicas in turn, or to one of them only.
type turns struct {
	replicas []*replica
	token    string
	only     atomic.Int64 // 0: each in turn; 1: the first; 2: the second
	count    atomic.Int64
	sent     [2]atomic.Int64
	last     atomic.Int64 // status
}

func (p *turns) RoundTrip(req *http.Request) (*http.Response, error) {
	i := p.only.Load() - 1
	if i < 0 {
		i = p.count.Add(1) % 2
	}
	p.sent[i].Add(1)
	req = req.Clone(req.Context())
	req.URL.Host = strings.TrimPrefix(p.replicas[i].url, "http://")
	req.Host = req.URL.Host
	req.Header.Set("Authorization", "Bearer "+p.token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		p.last.Store(int64(resp.StatusCode))
	}
	return resp, err
}
