//go:build linux

package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
	"ken/internal/tokenizer"
	"ken/llm/llmtest"
)

// A wanted is a tool that the task needs, with arguments that its schema allows.
type wanted struct {
	name, query string
	required    []string
	args        map[string]any
}

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

// plainTool matches a tool whose name no client changes, with a sentence about it.
var plainTool = regexp.MustCompile(`^[a-z][a-z0-9_]{4,28} [A-Z][ -~]{40,}`)

// want reports whether a tool takes nothing but required texts.
func want(tool *mcp.Tool) (w wanted, ok bool) {
	text, err := json.Marshal(tool.InputSchema)
	if err != nil {
		return w, false
	}
	var schema struct {
		Properties map[string]map[string]any
		Required   []string
	}
	if json.Unmarshal(text, &schema) != nil || len(schema.Required) == 0 || !plainTool.MatchString(tool.Name+" "+tool.Description) {
		return w, false
	}
	w = wanted{name: tool.Name, required: schema.Required, args: map[string]any{}}
	w.query, _, _ = strings.Cut(tool.Description, ".")
	for _, name := range schema.Required {
		p := schema.Properties[name]
		for _, limit := range []string{"enum", "pattern", "format", "maxLength", "minLength", "const", "anyOf"} {
			if p[limit] != nil {
				return w, false
			}
		}
		if p["type"] != "string" {
			return w, false
		}
		w.args[name] = "one"
	}
	return w, true
}

// A worker is the model of the task: one call after another, and before each what
// the client makes necessary.
type worker struct {
	wire  llmtest.Wire
	tools []wanted

	mu    sync.Mutex
	at    int // the tool that is to be called
	phase int // 1: it was searched, 2: it was read
	over  bool
	task  map[int]bool // the requests of the task, by number: clients ask for titles and notes too
	lost  []string
}

const done = "All five are done."

func (w *worker) reply(seen llmtest.Seen) llmtest.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := toolNames(w.wire, seen.Body)
	if w.at >= len(w.tools) {
		if !w.over {
			w.over, w.task[seen.Number] = true, true
		}
		return llmtest.Reply{Text: done}
	}
	t := w.tools[w.at]
	own := ""
	for _, name := range names {
		if isOwn(name, t.name) {
			own = name
		}
	}
	search, invoke := named(names, clientSearch), named(names, "invoke_capability")
	if search == "" {
		search = named(names, "tool_search") // Qwen Code's
	}
	var out llmtest.Reply
	switch {
	case own != "":
		out = w.call(own, t.args)
	case invoke != "":
		out = w.throughKen(seen, names, t)
	case search == "":
		return llmtest.Reply{Text: "A title"}
	case w.phase == 0:
		w.phase = 1
		out = calls(search, map[string]any{"query": "select:" + hidden(seen.Body, t.name), "max_results": 5})
	case named(names, "tool_call") != "": // Qwen Code does not show what it found
		out = w.call("tool_call", map[string]any{"name": hidden(seen.Body, t.name), "arguments": t.args})
	default:
		out = w.call(hidden(seen.Body, t.name), t.args)
	}
	w.task[seen.Number] = true
	return out
}

// call calls the tool that is next.
func (w *worker) call(name string, args map[string]any) llmtest.Reply {
	w.at, w.phase = w.at+1, 0
	return calls(name, args)
}

// hidden returns the name of a tool that the client keeps back and names in its
// first message.
func hidden(body []byte, tool string) string {
	return string(regexp.MustCompile(`mcp__\w+__` + tool + `\b`).Find(body))
}

// throughKen searches the tool, reads it if the search has not told enough, and
// calls it.
func (w *worker) throughKen(seen llmtest.Seen, names []string, t wanted) llmtest.Reply {
	id := "mcp:many/" + t.name
	switch {
	case w.phase == 0:
		w.phase = 1
		return calls(named(names, "discover_capabilities"), map[string]any{"query": t.query})
	case w.phase == 1 && !knows(seen.Body, t):
		w.phase = 2
		return calls(named(names, "describe_capability"), map[string]any{"id": id})
	}
	if !strings.Contains(string(seen.Body), id) {
		w.lost = append(w.lost, t.name+" was not found by "+t.query)
	}
	return w.call(named(names, "invoke_capability"), map[string]any{"capability": id, "arguments": t.args})
}

// isOwn reports whether a name is that of a tool with what clients and Ken put
// before it.
func isOwn(name, tool string) bool {
	before, ok := strings.CutSuffix(name, tool)
	before = strings.Trim(before, "_-")
	return ok && (before == "" || before == "mcp__many" || before == "mcp_many" || before == "many" ||
		before == "mcp__ken" || before == "mcp_ken" || before == "ken" || before == "mcp__ken__many" || before == "mcp_ken_many__" || before == "ken_many")
}

// knows reports whether the search already told the model what it must pass.
func knows(body []byte, t wanted) bool {
	at := strings.LastIndex(string(body), "mcp:many/"+t.name+" ")
	if at < 0 {
		return false
	}
	line, _, _ := strings.Cut(string(body[at:]), `\n`)
	for _, name := range t.required {
		if !strings.Contains(line, name+":") {
			return false
		}
	}
	return true
}

// A cost is what a client sent to its model for the task.
type cost struct {
	requests, tokens int
	menu             int // of the longest list of tools

	surface       string // as ken connect says
	before, after int    // tokens in every turn, as ken connect says
}

// cost counts the requests of the task.
func (w *worker) cost(server *llmtest.Server) cost {
	w.mu.Lock()
	defer w.mu.Unlock()
	var c cost
	for _, seen := range server.Requests() {
		if !w.task[seen.Number] {
			continue
		}
		tools := toolsOf(w.wire, seen.Body)
		c.requests++
		n := tokenizer.Count(string(seen.Body))
		menu := 0
		for _, t := range tools {
			k := tokenizer.Count(string(t.Raw))
			if t.Defer && !strings.Contains(string(seen.Body), `"tool_name":"`+t.Name+`"`) {
				n -= k // not given to the model
				continue
			}
			menu += k
		}
		c.tokens += n
		c.menu = max(c.menu, menu)
	}
	return c
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
