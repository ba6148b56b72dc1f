package engine

import (
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// What is shown besides capabilities has marks among them, which are no ids of
// capabilities: of the environment, and of the definition of a tool, once it was
// given again.
const (
	environmentID  capability.ID = "ken:environment"
	definitionMark capability.ID = "ken:definition/"
)

func definitionID(id capability.ID) capability.ID { return definitionMark + id }

// defines returns the tool whose definition a mark stands for.
func defines(id capability.ID) (capability.ID, bool) {
	tool, ok := strings.CutPrefix(string(id), string(definitionMark))
	return capability.ID(tool), ok
}

// isMark reports whether what is shown is no capability.
func isMark(id capability.ID) bool {
	_, ok := defines(id)
	return ok || id == environmentID
}

// changed returns the text about tools that the model can call and whose
// description or schema is no longer what it was given, and the marks by which
// it is given once. What was sent stays as it was, so that it stays cached: the
// text stands beside the message, and the newest counts.
func (t *turn) changed() (text string, marks map[capability.ID]string) {
	if t.rung == model.PerTurn || t.prefix.Seq == 0 { // it is given anew in any case
		return "", nil
	}
	for _, given := range t.given() {
		id := t.known.Tools[given.Name].ID
		e, err := t.view.Lookup(string(id))
		if err != nil || !callable(e) {
			continue // a call says so
		}
		now, ok := t.e.defined.of(t, e)
		if !ok {
			continue
		}
		hash, told := definition(now), t.known.Shown[definitionID(id)]
		if told == hash || told == "" && hash == definition(given) {
			continue
		}
		said := now.Description + "\nIts input schema: " + bounded(string(now.Schema))
		text += "\n" + given.Name + ":\n" + untrusted.Block(said, untrusted.BlockConfig{Origin: string(id), Max: len(said) + 24})
		if marks == nil {
			marks = map[capability.ID]string{}
		}
		marks[definitionID(id)] = hash
	}
	if text == "" {
		return "", nil
	}
	return "Tools that have changed since you were given them. From now on this counts:" + text, marks
}

// given are the tools of capabilities as the model has them, in their order.
func (t *turn) given() []llm.Tool {
	var out []llm.Tool
	at := map[string]int{}
	take := func(tools []llm.Tool) {
		for _, tool := range tools {
			o, live := t.known.Tools[tool.Name]
			if !live || own(tool.Name) || o.Action != "" {
				continue
			}
			if i, again := at[tool.Name]; again {
				out[i] = tool // the newest counts
				continue
			}
			at[tool.Name] = len(out)
			out = append(out, tool)
		}
	}
	take(t.prefix.Tools)
	for i := range t.live {
		if len(t.live[i].Offers) == 0 || t.live[i].Kind == session.Prefix {
			continue
		}
		for _, b := range t.live[i].Blocks {
			take(b.Tools)
			if b.Result != nil {
				for _, in := range b.Result.Blocks {
					take(in.Tools)
				}
			}
		}
	}
	return out
}

// definition names what a tool says of itself.
func definition(tool llm.Tool) string { return hashOf(tool.Description + "\x00" + string(tool.Schema)) }

// defined remembers the definitions of tools as a model is given them, by what
// identifies their texts: to read one takes a look at the disk.
type defined struct {
	mu   sync.Mutex
	made map[definedBy]llm.Tool
}

type definedBy struct {
	id   capability.ID
	hash string
}

const mostDefined = 4096 // then it is begun anew

func (d *defined) of(t *turn, e *door.Entry) (llm.Tool, bool) {
	key := definedBy{e.ID, e.Hash}
	d.mu.Lock()
	tool, ok := d.made[key]
	d.mu.Unlock()
	if ok && e.Hash != "" {
		return tool, true
	}
	about, err := t.e.cfg.Door.Describe(t.ctx, t.view, string(e.ID))
	if err != nil {
		return llm.Tool{}, false
	}
	tool = toolOf(about)
	tool.Schema = deliver.Slim(tool.Schema)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil || len(d.made) >= mostDefined {
		d.made = map[definedBy]llm.Tool{}
	}
	d.made[key] = tool
	return tool, true
}
