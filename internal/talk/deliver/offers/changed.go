package offers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// Changed returns the text about tools that the model can call and whose
// description or schema is no longer what it was given, and the marks by which
// it is given once. What was sent stays as it was, so that it stays cached: the
// text stands beside the message, and the newest counts.
func (r Reader) Changed(ctx context.Context, delivery model.DeliveryMode, entries []session.Entry, live deliver.Live) (text string, marks map[capability.ID]string) {
	if delivery == model.PerTurn { // every turn gives its tools again
		return "", nil
	}
	for _, given := range given(entries, live) {
		id := live.Tools[given.Name].ID
		e, err := r.View.Lookup(string(id))
		if err != nil || !Callable(e) {
			continue // a call says so
		}
		now, ok := r.definition(ctx, e)
		if !ok {
			continue
		}
		hash, told := hashOf(now), live.Shown[deliver.DefinitionID(id)]
		if told == hash || told == "" && hash == hashOf(given) {
			continue
		}
		said := now.Description + "\nIts input schema: " + Bounded(string(now.Schema))
		text += "\n" + given.Name + ":\n" + untrusted.Block(said, untrusted.BlockConfig{Origin: string(id), Max: len(said) + 24})
		if marks == nil {
			marks = map[capability.ID]string{}
		}
		marks[deliver.DefinitionID(id)] = hash
	}
	if text == "" {
		return "", nil
	}
	return "Tools that have changed since you were given them. From now on this counts:" + text, marks
}

// given returns the tools of capabilities as the model has them, in their order.
func given(entries []session.Entry, live deliver.Live) []llm.Tool {
	var out []llm.Tool
	at := map[string]int{}
	take := func(tools []llm.Tool) {
		for _, tool := range tools {
			o, known := live.Tools[tool.Name]
			if !known || capability.IsOwnTool(tool.Name) || o.Action != "" {
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
	take(live.Prefix)
	for i := range entries {
		if len(entries[i].Offers) == 0 || entries[i].Kind == session.Prefix {
			continue
		}
		for _, b := range entries[i].Blocks {
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

// hashOf identifies what a tool says about itself.
func hashOf(tool llm.Tool) string {
	sum := sha256.Sum256([]byte(tool.Description + "\x00" + string(tool.Schema)))
	return hex.EncodeToString(sum[:8])
}

// A Cache remembers the definitions of tools as a model is given them, by what
// identifies their texts: reading one means reading the disk. The zero value is
// empty. A Cache is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	tools map[cacheKey]llm.Tool
}

type cacheKey struct {
	id   capability.ID
	hash string
}

const maxCached = 4096 // then the cache starts from empty

// definition returns the tool that a model is given for an entry, and false if
// it cannot be read.
func (r Reader) definition(ctx context.Context, e *door.Entry) (llm.Tool, bool) {
	key := cacheKey{e.ID, e.Hash}
	r.Cache.mu.Lock()
	tool, ok := r.Cache.tools[key]
	r.Cache.mu.Unlock()
	if ok && e.Hash != "" {
		return tool, true
	}
	about, err := r.Door.Describe(ctx, r.View, string(e.ID))
	if err != nil {
		return llm.Tool{}, false
	}
	tool = toolOf(about)
	tool.Schema = deliver.Slim(tool.Schema)
	r.Cache.mu.Lock()
	defer r.Cache.mu.Unlock()
	if r.Cache.tools == nil || len(r.Cache.tools) >= maxCached {
		r.Cache.tools = map[cacheKey]llm.Tool{}
	}
	r.Cache.tools[key] = tool
	return tool, true
}
