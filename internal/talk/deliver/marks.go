package deliver

import (
	"strings"

	"ken/capability"
)

// Among the capabilities in [session.Entry.Shown] are marks, which are not ids of
// capabilities: of the environment, and of the definition of a tool that was
// given again.
const (
	EnvironmentID  capability.ID = "ken:environment"
	definitionMark capability.ID = "ken:definition/"
)

// DefinitionID returns the mark of a tool's definition.
func DefinitionID(id capability.ID) capability.ID { return definitionMark + id }

// Defines returns the tool whose definition a mark stands for.
func Defines(id capability.ID) (capability.ID, bool) {
	tool, ok := strings.CutPrefix(string(id), string(definitionMark))
	return capability.ID(tool), ok
}

// IsMark reports whether id is a mark and not a capability.
func IsMark(id capability.ID) bool {
	_, ok := Defines(id)
	return ok || id == EnvironmentID
}
