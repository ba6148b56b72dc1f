package executors

import (
	"context"
	"slices"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/executor"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/db"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/results"
	"ken/internal/run/executor/shell"
)

// BuiltinTools returns the tools that are part of Ken, as a source of the
// catalog: they are counted, found and required like any other tool.
func BuiltinTools(name string) *source.Memory {
	return Memory(name, capability.TrustBuiltin, files.Tools(), shell.Tools(), results.Tools(), analyze.Tools())
}

// BuiltinCatalog returns a catalog of only the tools that are part of Ken. They
// can be called even if --catalog replaces all sources.
func BuiltinCatalog(ctx context.Context) (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{BuiltinTools("ken")}, Machine: catalog.ThisMachine()})
	if err == nil {
		err = c.Load(ctx)
	}
	return c, err
}

// Memory returns a source of tools.
func Memory(name string, trust capability.Trust, lists ...[]executor.Tool) *source.Memory {
	m := source.NewMemory(name, trust)
	for _, t := range slices.Concat(lists...) {
		m.Put(t.Capability, t.Detail)
	}
	return m
}

// Refill replaces the tools of a source.
func Refill(ctx context.Context, m *source.Memory, list []executor.Tool) {
	old, _ := m.Load(ctx) // a memory can always be read
	for _, c := range old.Capabilities {
		if !slices.ContainsFunc(list, func(t executor.Tool) bool { return t.Capability.ID == c.ID }) {
			m.Remove(c.ID)
		}
	}
	for _, t := range list {
		m.Put(t.Capability, t.Detail)
	}
}

// DatabaseTools returns the tools of the databases that ken.yaml names.
func DatabaseTools(list []config.Database) []executor.Tool { return db.Tools(connections(list)) }

// CheckDatabase opens a database of ken.yaml for reading and closes it again. It
// returns what its user may do beyond reading, in sentences.
func CheckDatabase(ctx context.Context, d config.Database, secret func(reference string) (string, error)) ([]string, error) {
	return db.Check(ctx, connections([]config.Database{d})[0], secret)
}

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
