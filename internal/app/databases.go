package app

import (
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/run/executor/db"
)

// connections returns the databases of ken.yaml as the executor takes them.
func connections(list []config.Database) []db.Connection {
	var out []db.Connection
	for _, d := range list {
		out = append(out, db.Connection{
			Name: d.Name, Engine: string(d.Engine), Path: d.Path, URL: d.URL, Password: d.Password, Write: d.Access == config.AccessWrite,
			Description: d.Description, Rows: d.Rows, Bytes: d.Bytes, Timeout: d.Timeout,
		})
	}
	return out
}

func (a *App) newDatabases() (*db.Executor, error) {
	return db.New(db.Config{
		Connections: func() []db.Connection { return connections(a.effective().Databases) },
		Lookup:      a.lookup,
		Secret:      a.redactor.Resolve,
	})
}

// withoutDatabase says why a recipe for a database cannot be run, or "".
func (a *App) withoutDatabase(run *capability.Recipe) string {
	verb := strings.TrimPrefix(run.Runner, "db.")
	switch {
	case !slices.Contains(db.Verbs(), verb):
		return "nothing can run " + run.Runner + " in this version; the runners for databases are db." + strings.Join(db.Verbs(), ", db.")
	case len(run.Argv) == 0:
		return `it does not say which database; add argv, as in argv: [shop, "SELECT …"]`
	case run.Argv[0] == db.Chosen:
		return ""
	case !slices.ContainsFunc(a.Settings.Databases, func(d config.Database) bool { return d.Name == run.Argv[0] }):
		return "ken.yaml names no database " + run.Argv[0] + "; add it under databases"
	}
	return ""
}
