package format

import (
	"fmt"
	"slices"
	"strings"

	"ken/internal/permission"
	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// ReadPermissions reads what a package asks for. An unknown name is kept: it
// grants nothing, and is shown to the person who reviews the package.
func (u *Unit) ReadPermissions(p string, r *yamldoc.Reader) []string {
	names := permission.Names()
	var out []string
	for _, given := range append(r.Words("permissionsRequired"), r.Words("permissions")...) {
		name := given
		if i := permission.Find(given); i >= 0 {
			name = names[i]
		} else {
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
