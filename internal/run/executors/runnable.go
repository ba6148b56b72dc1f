package executors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/run/executor"
	"ken/internal/run/executor/api"
	"ken/internal/run/executor/browser"
	"ken/internal/run/executor/db"
	"ken/internal/run/executor/process"
	"ken/internal/run/plugins"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
)

// Unrunnable returns a function that says why no executor runs a capability, or
// "" if one does. It is called for every capability before the first call, so it
// makes no executor. databases returns those that ken.yaml names; nil means none.
func Unrunnable(added *plugins.Set, databases func() []config.Database) func(*capability.Capability) string {
	open := runners()
	for _, name := range added.Runners() {
		open[name] = true
	}
	return func(c *capability.Capability) string {
		name, ok := runner.Matching(open, c.RunBy())
		switch {
		case ok && name == "db.*":
			var named []config.Database
			if databases != nil {
				named = databases()
			}
			return withoutDatabase(c.Run, named)
		case ok && name == "api.*" && c.Run != nil:
			return api.Unusable(c)
		case ok && name == "browser.*" && !slices.Contains(browser.Verbs(), strings.TrimPrefix(c.RunBy(), "browser.")):
			return "nothing can run " + c.RunBy() + " in this version; the runners for pages are browser." + strings.Join(browser.Verbs(), ", browser.")
		case ok && name == "llm.ask" && c.Run.Ask == nil:
			return `it does not say what to ask; add ask, as in ask: {prompt: "Summarize {text}"}`
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
		return withoutFile(databases) // of all of them
	}
	i := slices.IndexFunc(databases, func(d config.Database) bool { return d.Name == run.Argv[0] })
	if i < 0 {
		return "ken.yaml names no database " + run.Argv[0] + "; add it under databases"
	}
	return withoutFile(databases[i : i+1])
}

// withoutFile says why the file of a database cannot be opened, if that is so of
// all that are given, or "".
func withoutFile(list []config.Database) string {
	first := ""
	for _, d := range list {
		err := db.FileError(connections([]config.Database{d})[0])
		if err == nil {
			return ""
		}
		if first == "" {
			first = fmt.Sprintf("database %s: %v; put it there, or correct databases.%[1]s.path in ken.yaml", d.Name, err)
		}
	}
	return first
}

// MissingFiles returns a number that changes when the file of a database appears or
// goes.
func MissingFiles(list []config.Database) (n uint64) {
	for _, d := range list {
		n *= 2
		if withoutFile([]config.Database{d}) != "" {
			n++
		}
	}
	return n
}

// UnusablePrograms returns a function that says why the program that runs a
// capability cannot be run, or "" if it can. It looks for each program once.
func UnusablePrograms(programs *executor.Programs) func(*capability.Capability) string {
	known := map[string]string{}
	return func(c *capability.Capability) string {
		if strings.HasPrefix(c.Run.Runner, "browser.") {
			why, ok := known["browser"]
			if !ok {
				why = unusableBrowser(programs)
				known["browser"] = why
			}
			return why
		}
		name := ProgramOf(c)
		if name == "" {
			return ""
		}
		why, ok := known[name]
		if !ok {
			why = unusableProgram(programs, name)
			known[name] = why
		}
		return why
	}
}

// ProgramOf returns the installed program that runs a capability, or "" for one that is
// run by something else, or by a program of its package.
func ProgramOf(c *capability.Capability) string {
	if c.Run == nil {
		return ""
	}
	name, err := process.Tool(c.Run.Runner)
	if err != nil || c.Run.Program != "" && len(c.RequiredBins) == 0 {
		return ""
	}
	if len(c.Run.Argv) > 0 {
		name = c.Run.Argv[0]
	}
	return name
}

// unusableBrowser says why no Chromium can be run, or "".
func unusableBrowser(programs *executor.Programs) string {
	worst := ""
	for _, name := range browser.Programs() {
		err := programs.Check(name)
		if err == nil {
			return ""
		}
		if !errors.Is(err, fs.ErrNotExist) {
			worst = unusableProgram(programs, name)
		}
	}
	if worst == "" {
		worst = "Chromium is not in the folders where Ken looks for programs; install the program chromium, or name its folder in extensions.path"
	}
	return worst
}

func unusableProgram(programs *executor.Programs, name string) string {
	err := programs.Check(name)
	closed, isClosed := errors.AsType[*sandbox.ClosedError](err)
	switch {
	case err == nil:
		return ""
	case isClosed:
		return err.Error() + "; " + closed.Fix()
	case errors.Is(err, fs.ErrNotExist):
		return "the program " + name + " is not in the folders where Ken looks for programs; install it, or name its folder in extensions.path"
	}
	return err.Error()
}

// ProgramPath returns the folders of programs as a PATH: those of ken.yaml, or
// else those of the user's own PATH and then the system's.
func ProgramPath(folders []string, userPath string) string {
	if len(folders) == 0 {
		folders = append(filepath.SplitList(userPath), executor.DefaultPath)
	}
	return strings.Join(folders, string(os.PathListSeparator))
}
