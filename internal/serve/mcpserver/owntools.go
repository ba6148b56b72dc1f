package mcpserver

import (
	"encoding/json"
	"strings"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/jsonappend"
)

// The names of Ken's own tools.
const (
	toolDiscover = capability.ToolDiscover
	toolList     = capability.ToolList
	toolDescribe = capability.ToolDescribe
	toolInvoke   = capability.ToolInvoke
	toolIntent   = capability.ToolIntent
	toolRead     = capability.ToolRead
)

func reserved(name string) bool {
	switch name {
	case toolDiscover, toolList, toolDescribe, toolInvoke, toolIntent, toolRead:
		return true
	}
	return false
}

// shown marks tools that a client must not hide behind a search of its own.
// As of 2026-11 Claude Code is the one client with a mark for it.
const shown = `"_meta":{"anthropic/alwaysLoad":true}`

// onlyReads is true of Ken's own tools that change nothing, not even an intent. Clients
// that ask before each tool let such tools through.
const onlyReads = `,"annotations":{"readOnlyHint":true,"openWorldHint":false}`

// ownTitle returns how people know a tool of Ken's own.
func ownTitle(name string) string {
	switch name {
	case toolDiscover:
		return "Find capabilities"
	case toolList:
		return "List capabilities"
	case toolDescribe:
		return "Read a capability"
	case toolInvoke:
		return "Call a capability"
	case toolIntent:
		return "Declare an intent"
	}
	return "Read a long result"
}

// metaTools returns Ken's own tools. They are as short as they can be: every
// model reads them in every turn.
func (s *Server) metaTools(menu string, results bool) (names []string, items []json.RawMessage) {
	surface, plain := surfaceOf(menu), strings.Contains(menu, textOnly)
	add := func(name, description, schema string) {
		b := append([]byte(`{"name":`), jsonappend.String(nil, name)...)
		b = append(b, `,"title":`...)
		b = jsonappend.String(b, ownTitle(name))
		b = append(b, `,"description":`...)
		b = jsonappend.String(b, description)
		b = append(b, `,"inputSchema":`...)
		b = append(b, schema...)
		if output := s.cfg.Door.OutputSchema(name); output != nil && !plain {
			b = append(b, `,"outputSchema":`...)
			b = append(b, output...)
		}
		if name != toolInvoke && name != toolIntent {
			b = append(b, onlyReads...)
		}
		b = append(b, ',')
		b = append(b, shown...)
		names, items = append(names, name), append(items, append(b, '}'))
	}
	// Both are on every surface, because texts and the reference can only be
	// read through them.
	for _, t := range s.cfg.Door.Tools() {
		add(t.Name, t.Description, string(t.Schema))
	}
	if surface == bridge {
		add(toolInvoke, "Call a capability by its id", envelope.Schema)
	}
	if intents := s.cfg.Intents(); len(intents) > 0 {
		var b []byte
		for i, name := range intents {
			if i > 0 {
				b = append(b, ',')
			}
			b = jsonappend.String(b, name)
		}
		add(toolIntent, "Say what you are about to do",
			`{"type":"object","properties":{"intent":{"enum":[`+string(b)+`]}},"required":["intent"]}`)
	}
	if results {
		add(toolRead, "Read on in a long result",
			`{"type":"object","properties":{"handle":{"type":"string"},"op":{"enum":["head","tail","lines","search"]},"from":{"type":"integer"},"to":{"type":"integer"},"pattern":{"type":"string"}}}`)
	}
	return names, items
}
