// Package account says what capabilities took of the prompt of a turn, in tokens.
package account

import (
	"context"
	"sync"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// A Turn is what an account is made of.
type Turn struct {
	Principal capability.Principal
	Session   string
	Number    int
	Model     string          // who was asked, as the caller writes it
	Live      []session.Entry // of the session when the turn ended
	Prefix    session.Entry   // the newest
	View      door.View
}

// An Accountant makes accounts. It is safe for concurrent use.
type Accountant struct {
	door  *door.Door
	count tokenizer.Counter // of messages
	tools tokenizer.Counter // of tools

	mu       sync.Mutex
	prefixes map[prefixKey]int // what prefixes of sessions hold for capabilities: counting takes longer than the rest
}

type prefixKey struct {
	session string
	seq     int
}

const maxPrefixes = 1000 // then the memory of prefixes starts from empty

// New returns an Accountant. The counter tools counts the texts of tools.
func New(d *door.Door, count, tools tokenizer.Counter) *Accountant {
	return &Accountant{door: d, count: count, tools: tools}
}

// Of adds up what stands in the prompt for capabilities: the map and the tools
// before the messages, what was added beside them, and what the model looked up.
// The program's own tools are there with and without Ken, and are not counted.
// An aborted turn has an account too, so Of goes on after the end of ctx.
func (a *Accountant) Of(ctx context.Context, t Turn) event.Account {
	out := event.Account{Tenant: t.Principal.Tenant, Model: t.Model}
	out.AllToolTokens = a.door.AwaitAllToolTokens(context.WithoutCancel(ctx), t.View)
	for i := range t.Live {
		e := &t.Live[i]
		n := 0
		switch e.Kind {
		case session.Prefix:
			if e.Seq == t.Prefix.Seq {
				n = a.prefix(t, e)
			}
		case session.Added:
			n = e.Tokens - a.environment(e)
		case session.Results:
			n = lookedUp(e, t.Prefix.Name == string(model.Whole))
		}
		out.Shown += n
		if e.Turn == t.Number {
			out.Added += n
		}
	}
	return out
}

// environment returns the tokens of an entry that are not about capabilities but
// about where the model is.
func (a *Accountant) environment(e *session.Entry) int {
	if e.Shown[deliver.EnvironmentID] == "" || len(e.Blocks) == 0 {
		return 0
	}
	return min(e.Tokens, prompt.Tokens(a.count, e.Blocks[:1]))
}

// lookedUp returns the tokens of an entry's results that are about
// capabilities, by their share of its bytes. If all tools are listed, only
// texts are read, which would be read without Ken too, so they do not count.
func lookedUp(e *session.Entry, listed bool) int {
	looked, all := 0, 0
	for i := range e.Blocks {
		r := e.Blocks[i].Result
		if r == nil {
			continue
		}
		n := 1
		for j := range r.Blocks {
			n += len(r.Blocks[j].Text)
			for _, tool := range r.Blocks[j].Tools {
				n += len(tool.Name) + len(tool.Description) + len(tool.Schema)
			}
		}
		all += n
		if r.Name == capability.ToolDiscover || r.Name == capability.ToolList || r.Name == capability.ToolDescribe && !listed {
			looked += n
		}
	}
	if looked == 0 {
		return 0
	}
	return e.Tokens * looked / all
}

// prefix returns the tokens of a prefix that are about capabilities.
func (a *Accountant) prefix(t Turn, e *session.Entry) int {
	key := prefixKey{t.Session, e.Seq}
	a.mu.Lock()
	n, ok := a.prefixes[key]
	a.mu.Unlock()
	if ok {
		return n
	}
	n = e.About
	for _, tool := range forCapabilities(t.View, e) {
		n += deliver.ToolTokens(tool, a.tools) // as the dump counts them
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.prefixes == nil || len(a.prefixes) >= maxPrefixes {
		a.prefixes = map[prefixKey]int{}
	}
	a.prefixes[key] = n
	return n
}

// forCapabilities returns the tools of a prefix that stand for the catalog: what
// was found, and those by which a model finds and calls.
func forCapabilities(v door.View, prefix *session.Entry) (tools []llm.Tool) {
	core := map[capability.ID]bool{}
	for e := range v.Own() {
		core[e.ID] = true
	}
	found := map[string]bool{}
	for _, o := range prefix.Offers {
		found[o.Tool] = !core[o.ID]
	}
	for _, tool := range prefix.Tools {
		switch tool.Name {
		case capability.ToolDiscover, capability.ToolList, capability.ToolDescribe, capability.ToolInvoke:
			tools = append(tools, tool)
		default:
			if found[tool.Name] {
				tools = append(tools, tool)
			}
		}
	}
	return tools
}
