//go:build linux

package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// wantedTools chooses the tools of the task from those that the server offers.
func wantedTools(t *testing.T, args ...string) []wanted {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(fixture(t), args...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var all []wanted
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := want(tool); ok {
			all = append(all, w)
		}
	}
	if len(all) < 5 {
		t.Fatalf("only %d tools can be called without knowing more of them, want 5", len(all))
	}
	var out []wanted
	for i := range 5 { // from all over the list
		out = append(out, all[i*len(all)/5])
	}
	return out
}

// tokensTable is what docs/clients.md shows.
const tokensTable = "../../connect/testdata/tokens.md"

// TestClientTokens counts what a finished task of five calls costs with 200 tools,
// for each client without Ken, with the surface that Ken chooses, and with the
// other one. -update writes the table.
func TestClientTokens(t *testing.T) {
	testkit.Nightly(t, "runs published clients")
	bench := os.Getenv("KEN_BENCH")
	if bench == "" {
		t.Skip("KEN_BENCH is not set: no catalog")
	}
	args := []string{"-tools", "200", "-catalog", filepath.Join(bench, "catalog", "npm-mcp", "corpus.jsonl")}
	tools := wantedTools(t, args...)
	for _, w := range tools {
		t.Logf("%s: %s", w.name, w.query)
	}
	var mu sync.Mutex
	rows := map[string]string{}
	t.Run("group", func(t *testing.T) { // which ends when all clients are done
		eachAgent(t, func(t *testing.T, a agent, program string) {
			t.Parallel()
			alone(t)
			none := taskCost(t, a, program, "none", tools, args)
			auto := taskCost(t, a, program, "auto", tools, args)
			surface := "direct"
			if auto.surface == "direct" {
				surface = "bridge"
			}
			other := taskCost(t, a, program, surface, tools, args)
			if auto.tokens > none.tokens || auto.tokens > other.tokens {
				t.Errorf("with Ken the task costs %d tokens (%s), without %d, with the surface %s %d: want the least", auto.tokens, auto.surface, none.tokens, surface, other.tokens)
			}
			// What ken connect prints is about definitions as MCP has them. Clients
			// write them in forms of their own.
			saved, said := none.menu-auto.menu, auto.before-auto.after
			if none.menu > auto.before && (saved < said*3/4 || saved > said*5/4) {
				t.Errorf("in every turn the menu is %d tokens shorter, and ken connect says %d", saved, said)
			}
			mu.Lock()
			defer mu.Unlock()
			rows[a.name] = fmt.Sprintf("| `%s` | %s in %d requests | %s in %d requests (%s) | %d %% | %s (%s) | %s | %s |\n", a.name,
				thousands(none.tokens), none.requests, thousands(auto.tokens), auto.requests, auto.surface, 100*(none.tokens-auto.tokens)/none.tokens,
				thousands(other.tokens), surface, thousands(none.menu), thousands(auto.menu))
		})
	})
	table := "| client | without Ken | with Ken | saved | the other surface | tools in a request, without | with Ken |\n|---|---|---|---|---|---|---|\n"
	for _, a := range agents() {
		table += rows[a.name]
	}
	t.Logf("\n%s", table)
	if *update && !t.Failed() {
		if err := os.WriteFile(tokensTable, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// taskCost runs the task once.
func taskCost(t *testing.T, a agent, program, way string, tools []wanted, args []string) cost {
	w := &worker{wire: a.wire, tools: tools, task: map[int]bool{}}
	server := llmtest.ServeOthers(t, a.wire, w.reply)
	yaml := allowAll
	if way != "auto" && way != "none" {
		yaml += "mcp: {surface: " + way + "}\n"
	}
	a.config = strings.NewReplacer("shop", "many").Replace(a.config)
	a.args = append([]string{}, a.args...)
	for i := range a.args {
		a.args[i] = strings.ReplaceAll(a.args[i], "shop", "many")
	}
	p, _ := a.newHome(t, yaml, server.URL(), args...)
	var report struct {
		Surface                   string
		TokensBefore, TokensAfter int
	}
	if way != "none" {
		text := p.must("connect", a.name, "--yes", "--json")
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatalf("ken connect printed %s: %v", text, err)
		}
		defer p.stop()
	}
	out := a.run(t, p, program, server.URL())
	if !strings.Contains(out, done) {
		t.Errorf("%s does not print %q:\n%s", a.program, done, out)
	}
	c := w.cost(server)
	c.surface, c.before, c.after = report.Surface, report.TokensBefore, report.TokensAfter
	t.Logf("%s: %+v, %d calls", way, c, w.at)
	for _, line := range w.lost {
		t.Error(line)
	}
	if dir := os.Getenv("KEN_CLIENTS_KEEP"); dir != "" {
		for _, seen := range server.Requests() {
			name := fmt.Sprintf("%s-%s-%02d.json", strings.ReplaceAll(t.Name(), "/", "-"), way, seen.Number)
			if err := os.WriteFile(filepath.Join(dir, name), seen.Body, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	return c
}

// thousands writes a number as people read it.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
