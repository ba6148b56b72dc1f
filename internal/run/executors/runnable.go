package executors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/run/executor"
	"ken/internal/run/executor/db"
	"ken/internal/run/plugins"
	"ken/internal/run/runner"
)

// Unrunnable returns a function that says why no executor runs a capability, or
// "" if one does. It is called for every capability before the first call, so it
// makes no executor.
func Unrunnable(added *plugins.Set, databases []config.Database) func(*capability.Capability) string {
	open := runners()
	for _, name := range added.Runners() {
		open[name] = true
	}
	return func(c *capability.Capability) string {
		name, ok := runner.Matching(open, c.RunBy())
		switch {
		case ok && name == "db.*":
			return withoutDatabase(c.Run, databases)
		case ok && (open[name] || c.Trust == capability.TrustBuiltin):
			return ""
		case ok:
			return "only tools that are part of Ken are run by " + c.RunBy() + "; give it a runner such as exec.git"
		case c.Run != nil && c.Run.Runner != "":
			return "nothing can run " + c.Run.Runner + " in this version"
		}
		return "nothing can run it: it does not say what runs it; add run, as in run: {runner: exec.git, argv: [git, status]}"
	}
}

// withoutDatabase says why a recipe for a database cannot be run, or "".
func withoutDatabase(run *capability.Recipe, databases []config.Database) string {
	verb := strings.TrimPrefix(run.Runner, "db.")
	switch {
	case !slices.Contains(db.Verbs(), verb):
		return "nothing can run " + run.Runner + " in this version; the runners for databases are db." + strings.Join(db.Verbs(), ", db.")
	case len(run.Argv) == 0:
		return `it does not say which database; add argv, as in argv: [shop, "SELECT …"]`
	case run.Argv[0] == db.Chosen:
		return ""
	case !slices.ContainsFunc(databases, func(d config.Database) bool { return d.Name == run.Argv[0] }):
		return "ken.yaml names no database " + run.Argv[0] + "; add it under databases"
	}
	return ""
}

// ProgramPath returns the folders of programs as a PATH: those of ken.yaml, or
// else those of the user's own PATH and then the system's.
func ProgramPath(folders []string, userPath string) string {
	if len(folders) == 0 {
		folders = append(filepath.SplitList(userPath), executor.DefaultPath)
	}
	return strings.Join(folders, string(os.PathListSeparator))
}
