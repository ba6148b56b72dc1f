package mcpserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
)

// TestUnsent: a client is told which server cannot be reached and what to do, not
// the SDK's word for a message that did not leave. What a server answered is
// passed on.
func TestUnsent(t *testing.T) {
	down := &capability.Error{
		Kind: capability.Unavailable, Op: "start MCP server", Target: "wiki", Fix: "check url",
		Err: fmt.Errorf("the server cannot be reached: %w", &jsonrpc.Error{Code: -32005, Message: "rejected by transport"}),
	}
	ep := new(endpoint)
	a, err := ep.refused(t.Context(), new(exchange), &mcp.CallToolParamsRaw{Name: "x"}, down)
	if err != nil || !strings.Contains(string(a.body), "start MCP server wiki: the server cannot be reached") || !strings.Contains(string(a.body), "check url") {
		t.Errorf("a call of a server that is down: %+v, %v", a, err)
	}
	if got := wireError(t.Context(), down, ""); !strings.Contains(got.Error(), "start MCP server wiki: the server cannot be reached") {
		t.Errorf("another request to a server that is down: %v", got)
	}

	for _, code := range []int64{-32050, -32005} {
		said := &jsonrpc.Error{Code: code, Message: "full"}
		refused := &capability.Error{Kind: capability.Upstream, Op: "call", Target: "x", Err: said}
		if _, err := ep.refused(t.Context(), new(exchange), &mcp.CallToolParamsRaw{Name: "x"}, refused); !errors.Is(err, said) {
			t.Errorf("the answer of a server: %v, want %v", err, said)
		}
	}
}
