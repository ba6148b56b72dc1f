package anthropic

import "ken/llm"

// tools appends the list: first the given ones, marked at their end, then those
// that searches found, in order of first appearance.
func (e *encoder) tools(req llm.Request) {
	found := searched(req)
	if len(req.Tools)+len(found) == 0 {
		return
	}
	e.raw(`,"tools":[`)
	for i, t := range req.Tools {
		if i > 0 {
			e.raw(`,`)
		}
		e.tool(t).close(e.cache && i == len(req.Tools)-1)
	}
	if len(found) > 0 {
		e.uses.search, e.deferred = true, make(map[string]bool, len(found))
	}
	for i, t := range found {
		e.deferred[t.Name] = true
		if i+len(req.Tools) > 0 {
			e.raw(`,`)
		}
		e.tool(t).raw(`,"defer_loading":true}`)
	}
	e.raw(`]`)
}

// tool appends a tool without its closing brace.
func (e *encoder) tool(t llm.Tool) *encoder {
	e.raw(`{"name":`).str(t.Name)
	if t.Description != "" {
		e.raw(`,"description":`).str(t.Description)
	}
	e.raw(`,"input_schema":`)
	if len(t.Schema) == 0 {
		return e.raw(`{"type":"object"}`)
	}
	return e.json(t.Schema, "schema", t.Name)
}

// searched returns the tools that results of the conversation brought and that
// neither the list nor a message had defined before.
func searched(req llm.Request) []llm.Tool {
	var found []llm.Tool
	var known map[string]bool
	add := func(t llm.Tool, define bool) {
		if known == nil {
			known = make(map[string]bool, len(req.Tools))
			for _, t := range req.Tools {
				known[t.Name] = true
			}
		}
		if !known[t.Name] && define {
			found = append(found, t)
		}
		known[t.Name] = true
	}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			for _, t := range b.Tools {
				add(t, false)
			}
			if b.Result == nil {
				continue
			}
			for _, rb := range b.Result.Blocks {
				for _, t := range rb.Tools {
					add(t, true)
				}
			}
		}
	}
	return found
}

// additions appends the message of the system's that gives tools from here on.
func (e *encoder) additions(tools []llm.Tool, mark bool, start int) {
	e.uses.inline = true
	e.comma(start).raw(`{"role":"system","content":[`)
	for i, t := range tools {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":`)
		e.tool(t).raw(`}}`).close(mark && i == len(tools)-1)
	}
	e.raw(`]}`)
}
