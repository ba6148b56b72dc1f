package capability

import "slices"

// The names of the tools by which Ken itself speaks with a model. No capability
// goes by one of them.
const (
	ToolDiscover = "discover_capabilities"
	ToolList     = "list_capabilities" // the same by another name, and the whole list
	ToolDescribe = "describe_capability"
	ToolInvoke   = "invoke_capability"
	ToolIntent   = "select_active_intent"
	ToolRead     = "read_result"
	ToolAsk      = "ask_user"
	ToolFinish   = "finish"
)

var ownTools = [...]string{ToolDiscover, ToolList, ToolDescribe, ToolInvoke, ToolIntent, ToolRead, ToolAsk, ToolFinish}

// OwnTools lists the names of Ken's own tools. The list is the caller's.
func OwnTools() []string { return slices.Clone(ownTools[:]) }

// IsOwnTool reports whether a name is exactly that of one of Ken's own tools.
func IsOwnTool(name string) bool { return slices.Contains(ownTools[:], name) }
