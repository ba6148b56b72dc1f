package engine

import (
	"encoding/json"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/llm"
)

// The names of Ken's own tools, which no capability can have.
const (
	toolDiscover = capability.ToolDiscover
	toolList     = capability.ToolList
	toolDescribe = capability.ToolDescribe
	toolInvoke   = capability.ToolInvoke
	toolRead     = capability.ToolRead
	toolAsk      = capability.ToolAsk
	toolFinish   = capability.ToolFinish
	toolIntent   = capability.ToolIntent
)

// own reports whether a name is one of Ken's own tools.
func own(name string) bool { return capability.IsOwnTool(name) }

const (
	askSchema    = `{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"array","items":{"type":"string"}}},"required":["question"]}`
	finishSchema = `{"type":"object","properties":{"answer":{"type":"string"}}}`
	readSchema   = `{"type":"object","properties":{"handle":{"type":"string"},"op":{"enum":["head","tail","lines","chars","search","info"]},"count":{"type":"integer"},"from":{"type":"integer"},"to":{"type":"integer"},"pattern":{"type":"string"}},"required":["handle"]}`
)

// ownTools returns Ken's own tools in the order in which every model sees them.
// They never change within a session. The one for intents is the last.
func ownTools(d *door.Door, v door.View, rules IntentRules) []llm.Tool {
	tools := append([]llm.Tool(nil), d.Tools()...)
	tools = append(tools, llm.Tool{Name: toolInvoke, Description: "Call a capability by its id", Schema: json.RawMessage(envelope.Schema)})
	for e := range v.Own() {
		if e.Name == toolRead {
			tools = append(tools, llm.Tool{Name: toolRead, Description: e.Description, Schema: json.RawMessage(readSchema)})
		}
	}
	tools = append(tools,
		llm.Tool{Name: toolAsk, Description: "Ask the user and wait for the answer", Schema: json.RawMessage(askSchema)},
		llm.Tool{Name: toolFinish, Description: "End the turn; without calls an answer ends it too", Schema: json.RawMessage(finishSchema)},
	)
	if len(rules.Names) > 0 {
		tools = append(tools, intentTool(rules.Names))
	}
	return tools
}
