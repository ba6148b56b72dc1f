package engine

import (
	"context"
	"sync"

	"ken/capability"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
)

// account adds up what stands in the prompt for capabilities: the map and the
// tools before the messages, what was added beside them, and what the model
// looked up. The program's own tools are there with and without Ken, and are
// not counted.
func (t *turn) account() event.Account {
	a := event.Account{Tenant: t.in.Principal.Tenant}
	if t.model.Model == nil { // nobody was asked
		return a
	}
	a.Model = t.model.Ref
	a.Dump = t.e.cfg.Door.AwaitDump(context.WithoutCancel(t.ctx), t.view) // an aborted turn has a cost too
	for i := range t.live {
		e := &t.live[i]
		n := 0
		switch e.Kind {
		case session.Prefix:
			if e.Seq == t.prefix.Seq {
				n = t.e.weighed.prefix(t, e)
			}
		case session.Added:
			n = e.Tokens - t.elsewhere(e)
		case session.Results:
			n = lookedUp(e, t.prefix.Name == string(model.Whole))
		}
		a.Shown += n
		if e.Turn == t.number {
			a.Added += n
		}
	}
	return a
}

// elsewhere returns what an entry says that is not about capabilities: where
// the model is.
func (t *turn) elsewhere(e *session.Entry) int {
	if e.Shown[environmentID] == "" || len(e.Blocks) == 0 {
		return 0
	}
	return min(e.Tokens, t.tokens(e.Blocks[:1]))
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
		if r.Name == toolDiscover || r.Name == toolList || r.Name == toolDescribe && !listed {
			looked += n
		}
	}
	if looked == 0 {
		return 0
	}
	return e.Tokens * looked / all
}

// weighed remembers what the prefixes of sessions hold for capabilities, for
// counting takes longer than the rest of a turn's end. The zero value is empty.
type weighed struct {
	mu   sync.Mutex
	made map[prefixOf]int
}

type prefixOf struct {
	session string
	seq     int
}

const mostWeighed = 1000 // then it is begun anew

func (w *weighed) prefix(t *turn, e *session.Entry) int {
	key := prefixOf{t.in.Session, e.Seq}
	w.mu.Lock()
	n, ok := w.made[key]
	w.mu.Unlock()
	if ok {
		return n
	}
	n = e.About
	for _, tool := range t.forCapabilities(e) {
		n += deliver.ToolTokens(tool, t.e.tools) // as [door.Door.Dump] counts them
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == nil || len(w.made) >= mostWeighed {
		w.made = map[prefixOf]int{}
	}
	w.made[key] = n
	return n
}

// forCapabilities returns the tools of a prefix that stand for the catalog: what
// was found, and those by which a model finds and calls.
func (t *turn) forCapabilities(prefix *session.Entry) (tools []llm.Tool) {
	core := map[capability.ID]bool{}
	for e := range t.view.Own() {
		core[e.ID] = true
	}
	found := map[string]bool{}
	for _, o := range prefix.Offers {
		found[o.Tool] = !core[o.ID]
	}
	for _, tool := range prefix.Tools {
		switch tool.Name {
		case toolDiscover, toolList, toolDescribe, toolInvoke:
			tools = append(tools, tool)
		default:
			if found[tool.Name] {
				tools = append(tools, tool)
			}
		}
	}
	return tools
}
