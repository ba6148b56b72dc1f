//go:build linux

package mcptest

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/tokenizer"
	"ken/llm/llmtest"
)

// A wanted is a tool that the task needs, with arguments that its schema allows.
type wanted struct {
	name, query string
	required    []string
	args        map[string]any
}

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

// plainTool matches a tool whose name no client changes, with a sentence about it.
var plainTool = regexp.MustCompile(`^[a-z][a-z0-9_]{4,28} [A-Z][ -~]{40,}`)

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
