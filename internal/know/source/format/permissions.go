package format

import (
	"fmt"
	"slices"
	"strings"

	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// knownPermissions maps every name of a permission to the one Ken uses.
func knownPermissions() map[string]string {
	return map[string]string{
		"exec": "exec", "exec_shell": "exec",
		"network": "network", "net": "network", "http": "network",
		"filesystem.read": "filesystem.read", "fs_read": "filesystem.read",
		"filesystem.write": "filesystem.write", "fs_write": "filesystem.write",
		"browser": "browser", "llm": "llm",
	}
}

// ReadPermissions reads what a package asks for. An unknown name is kept: it
// grants nothing, and is shown to the person who reviews the package.
func (u *Unit) ReadPermissions(p string, r *yamldoc.Reader) []string {
	known := knownPermissions()
	var out []string
	for _, given := range append(r.Words("permissionsRequired"), r.Words("permissions")...) {
		name, ok := known[given]
		if !ok {
			name = given
			names := []string{"exec", "network", "filesystem.read", "filesystem.write", "browser", "llm"}
			fix := "the permissions are " + strings.Join(names, ", ")
			if near := spelling.Nearest(given, names); near != "" {
				fix = "did you mean " + near + "?"
			}
			u.Warn("unknown-permission", p, r.Line("permissionsRequired"), fmt.Sprintf("no permission is called %q, so it is never granted", given), fix)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
