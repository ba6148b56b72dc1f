package recipe

import (
	"strings"

	"ken/internal/know/source/pattern"
)

// RunnerName matches the names that a runner may have.
var RunnerName = pattern.Lazy(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// ToolName matches the names that a program may have in a runner's name.
var ToolName = pattern.Lazy(`^[a-z0-9][a-z0-9_.-]*$`)

// EnvName matches the names of environment variables.
var EnvName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ToolOf returns the program that an exec runner stands for: "exec.postman_cli"
// is postman. Only one suffix, at the end, is taken off.
func ToolOf(runner string) (string, bool) {
	name, ok := strings.CutPrefix(runner, "exec.")
	if !ok {
		return "", false
	}
	for _, suffix := range []string{"_cli", "_tool"} {
		if short, cut := strings.CutSuffix(name, suffix); cut {
			return short, true
		}
	}
	return name, true
}

// RunnerOf returns a runner that stands for a program: the reverse of ToolOf.
func RunnerOf(tool string) string {
	if back, _ := ToolOf("exec." + tool); back != tool {
		return "exec." + tool + "_cli"
	}
	return "exec." + tool
}
