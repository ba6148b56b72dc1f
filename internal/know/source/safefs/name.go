package safefs

import (
	"path"
	"slices"
	"strings"
)

// BaseName returns the lower-case last element of a path.
func BaseName(p string) string { return strings.ToLower(path.Base(p)) }

// HasExt reports whether a path has one of the extensions, in any case.
func HasExt(p string, exts ...string) bool {
	return slices.Contains(exts, strings.ToLower(path.Ext(p)))
}

// InFolder reports whether the file lies directly in a folder of that name.
func InFolder(p, folder string) bool {
	return strings.EqualFold(path.Base(path.Dir(p)), folder)
}

// SkipFolder reports whether a folder of that name is passed over: it holds
// other people's files, or none that Ken reads.
func SkipFolder(name string) bool {
	switch name {
	case ".git", "node_modules", "__pycache__", ".venv", ".svn", ".hg":
		return true
	}
	return false
}
