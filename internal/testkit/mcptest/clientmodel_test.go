//go:build linux

package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ken/llm"
	"ken/llm/llmtest"
)

// finished is the last thing that the model says.
const finished = "Order 4711 is gone."

// A model plays the language model of a client: it knows what it wants to call,
// and takes names from the tools that the client shows it.
type model struct {
	wire  llmtest.Wire
	grant func(ticket string) error // approves in another terminal

	mu    sync.Mutex
	turn  int
	said  []string // what went as it should not
	tools []string // at the last turn

	again    int             // calls that were repeated because the server was starting
	granted  bool            // the write was approved
	searched map[string]bool // tools that the client's own search was asked for
}

var ticket = regexp.MustCompile(`ken approve grant ([a-z0-9]+)`)

// A turn is a call, and what its result must contain.
type turn struct {
	tool string
	args map[string]any
	want string
}

func (m *model) reply(seen llmtest.Seen) llmtest.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = toolNames(m.wire, seen.Body)
	if named(m.tools, "discover_capabilities") == "" {
		return llmtest.Reply{Text: "An order"} // a title, or a question of the client's own
	}
	order := map[string]any{"number": 4711}
	read := turn{"read_order", order, "one teapot, not shipped"}
	write := turn{"cancel_order", order, "ken approve grant"}
	turns := []turn{
		{"discover_capabilities", map[string]any{"query": "cancel an order of the shop"}, "mcp:shop/cancel_order"},
		{"describe_capability", map[string]any{"id": "mcp:shop/cancel_order"}, "Cancels an order of the shop for good"},
		read, write, write,
	}
	turns[4].want = "Order 4711 is canceled"
	if m.turn > 0 && m.turn <= len(turns) {
		before := turns[m.turn-1]
		switch has := strings.Contains(string(seen.Body), before.want); {
		case has:
		case m.again < 100 && strings.Contains(string(seen.Body), " starting: "): // this machine is slow
			m.again++
			m.turn--
		default:
			m.said = append(m.said, fmt.Sprintf("after %s the request lacks %q", before.tool, before.want))
			return llmtest.Reply{Text: "I give up after " + before.tool}
		}
	}
	if m.turn == 4 && !m.granted {
		m.granted = true
		if err := m.grant(string(ticket.FindSubmatch(seen.Body)[1])); err != nil {
			m.said = append(m.said, err.Error())
			return llmtest.Reply{Text: "I give up: it was not approved"}
		}
	}
	if m.turn >= len(turns) {
		return llmtest.Reply{Text: finished}
	}
	next := turns[m.turn]
	name, args := m.call(seen.Body, "mcp:shop/"+next.tool, next.tool, next.args)
	if named(m.tools, next.tool) == "" && named(m.tools, "invoke_capability") == "" && !m.searched[next.tool] {
		m.searched[next.tool] = true
		return calls(clientSearch, map[string]any{"query": "select:" + name, "max_results": 5})
	}
	m.turn++
	return calls(name, args)
}

// clientSearch is Claude Code's own search for tools that it keeps back.
const clientSearch = "ToolSearch"

// call returns how a client calls a tool: under its own name, or through Ken's.
func (m *model) call(body []byte, id, name string, args map[string]any) (string, map[string]any) {
	if own := named(m.tools, name); own != "" {
		return own, args
	}
	if invoke := named(m.tools, "invoke_capability"); invoke != "" {
		return invoke, map[string]any{"capability": id, "arguments": args}
	}
	// The names of tools that the client keeps back stand in its first message.
	return string(regexp.MustCompile(`mcp__\w+__` + name + `\b`).Find(body)), args
}

func calls(name string, args map[string]any) llmtest.Reply {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llmtest.Reply{Calls: []llm.ToolCall{{Name: name, Arguments: text}}}
}

// named returns the name under which a client has a tool; empty: it has none.
func named(tools []string, name string) string {
	for _, t := range tools {
		if t == name || strings.HasSuffix(t, "_"+name) || strings.HasSuffix(t, "-"+name) {
			return t
		}
	}
	return ""
}

// toolNames returns the tools that a request shows to the model.
func toolNames(wire llmtest.Wire, body []byte) []string {
	var out []string
	for _, t := range toolsOf(wire, body) {
		out = append(out, t.Name)
	}
	return out
}

// A shownTool is a tool as a request has it.
type shownTool struct {
	Name  string
	Defer bool `json:"defer_loading"`
	Raw   json.RawMessage
}

func toolsOf(wire llmtest.Wire, body []byte) []shownTool {
	var o struct{ Tools []json.RawMessage }
	if json.Unmarshal(body, &o) != nil {
		return nil
	}
	var out []shownTool
	for _, raw := range o.Tools {
		var t struct {
			shownTool
			Type                 string
			Function             shownTool
			Tools                []json.RawMessage
			FunctionDeclarations []json.RawMessage
		}
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		inner := append(t.Tools, t.FunctionDeclarations...)
		if wire == llmtest.Chat {
			t.shownTool.Name = t.Function.Name
		}
		if len(inner) == 0 {
			out = append(out, shownTool{Name: t.Name, Defer: t.Defer, Raw: raw})
		}
		for _, one := range inner {
			var i shownTool
			if json.Unmarshal(one, &i) == nil {
				i.Raw = one
				out = append(out, i)
			}
		}
	}
	return out
}

// report fails the test with what went wrong, and keeps the requests where
// KEN_CLIENTS_KEEP names a folder.
func (m *model) report(t *testing.T, server *llmtest.Server) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.said {
		t.Error(line)
	}
	if m.turn == 0 {
		t.Errorf("the client never showed Ken's tools to its model; it showed %q", m.tools)
	}
	if dir := os.Getenv("KEN_CLIENTS_KEEP"); dir != "" {
		for _, seen := range server.Requests() {
			name := fmt.Sprintf("%s-%02d.json", strings.ReplaceAll(t.Name(), "/", "-"), seen.Number)
			if err := os.WriteFile(filepath.Join(dir, name), seen.Body, 0o600); err != nil {
				t.Error(err)
			}
			t.Logf("request %d %s: %d bytes, unread %q, refused %q", seen.Number, seen.Path, len(seen.Body), seen.Unread, seen.Refused)
		}
	}
}
