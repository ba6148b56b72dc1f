package engine

import (
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
)

// newRequest returns what is sent: the session as it stands, in the same bytes as
// before, and nothing else.
func newRequest(s setup, h history, p progress) llm.Request {
	inline, search := s.takes(p, model.Inline), s.takes(p, model.Search)
	req := llm.Request{
		Model: s.model.Name, Tools: h.prefix.Tools, System: h.prefix.System, Messages: sendable(prompt.Messages(h.live), inline, search),
		MaxTokens: s.model.MaxTokens, Allowed: allowedNames(s, h, p), Cache: s.in.Session, Effort: s.model.Effort,
	}
	if h.prefix.Name == string(model.Search) && search {
		req.Search = toolDiscover // from the first request on: later it would break the prefix
	}
	return req
}

// sendable leaves out what the provider would refuse: tools in the middle of a
// conversation that the model does not take. What they are called by is still
// known.
func sendable(messages []llm.Message, inline, search bool) []llm.Message {
	if inline && search {
		return messages
	}
	for i := range messages {
		m := &messages[i]
		for j := range m.Blocks {
			b := &m.Blocks[j]
			if !inline && len(b.Tools) > 0 || !search && b.Result != nil && hasTools(b.Result.Blocks) {
				m.Blocks = withoutTools(m.Blocks, inline, search)
				break
			}
		}
	}
	return messages
}

func hasTools(blocks []llm.Block) bool {
	for i := range blocks {
		if len(blocks[i].Tools) > 0 {
			return true
		}
	}
	return false
}

// withoutTools copies blocks without the tools that are not taken.
func withoutTools(blocks []llm.Block, inline, search bool) []llm.Block {
	out := make([]llm.Block, 0, len(blocks))
	for _, b := range blocks {
		if len(b.Tools) > 0 && !inline {
			continue
		}
		if b.Result != nil && !search {
			r := *b.Result
			r.Blocks = withoutTools(r.Blocks, false, false)
			b.Result = &r
		}
		out = append(out, b)
	}
	return out
}

// allowedNames returns the tools that may be called now, for providers that can
// restrict a model to them; nil means all.
func allowedNames(s setup, h history, p progress) []string {
	allows := s.rules.Allows
	if allows == nil || len(s.rules.Names) == 0 {
		return nil
	}
	intent := p.intents.active
	if s.rules.Request {
		intent = "" // it ends with this request
	}
	var names []string
	narrowed := false
	for _, tool := range declaredTools(h) {
		if !own(tool) {
			e, err := s.view.Lookup(string(h.known.Tools[tool].ID))
			// Before an intent is declared the model may declare one and call
			// in the same answer.
			if err != nil || intent != "" && !allows(intent, e) {
				narrowed = true
				continue
			}
		}
		names = append(names, tool)
	}
	if !narrowed {
		return nil
	}
	return names
}

// declaredTools returns the tools that a request declares, each once, in order.
func declaredTools(h history) []string {
	names := make([]string, 0, len(h.prefix.Tools)+len(h.known.Tools))
	seen := make(map[string]bool, cap(names))
	for _, tool := range h.prefix.Tools {
		names = append(names, tool.Name)
		seen[tool.Name] = true
	}
	for i := range h.live {
		if h.live[i].Kind == session.Prefix {
			continue
		}
		for _, o := range h.live[i].Offers {
			if _, sent := h.known.Tools[o.Tool]; sent && !seen[o.Tool] {
				names = append(names, o.Tool)
				seen[o.Tool] = true
			}
		}
	}
	return names
}
