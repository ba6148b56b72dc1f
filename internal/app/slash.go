package app

import (
	"context"
	"encoding/json"
	"iter"
	"sync"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/talk/slash"
)

// commands are what a person can call by "/name", made once for a snapshot.
type commands struct {
	mu      sync.Mutex
	version uint64
	index   *slash.Index
}

// Commands gives the commands of the catalog as it stands: those that packages
// bring, and every tool that something here runs, under its name. What is
// switched off is among them, so that calling it says so.
func (a *App) Commands() *slash.Index {
	s := a.catalog.Snapshot()
	a.commands.mu.Lock()
	defer a.commands.mu.Unlock()
	if a.commands.index != nil && a.commands.version == s.Version() {
		return a.commands.index
	}
	var list []*capability.Capability
	var tools []slash.Command
	for e := range all(s, a.own.Snapshot()) {
		switch {
		case e.State != catalog.Active:
		case e.Kind == capability.KindCommand:
			list = append(list, e.Capability)
		case e.Run != nil:
			tools = append(tools, slash.Command{
				Name: e.Name, Summary: e.Description, Trust: e.Trust,
				Actions: []slash.Action{{Target: e.ID, Description: e.Description, Runner: e.Run.Runner, Unavailable: e.Unavailable}},
			})
		}
	}
	known := slash.Commands(list, nil)
	taken := map[string]bool{}
	for _, c := range known {
		taken[c.Name] = true
	}
	for _, t := range tools {
		if !taken[t.Name] { // a command stands before a tool of its name
			known = append(known, t)
			taken[t.Name] = true
		}
	}
	a.commands.index, a.commands.version = slash.New(known), s.Version()
	return a.commands.index
}

// all gives the entries of several snapshots.
func all(list ...*catalog.Snapshot) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for _, s := range list {
			for e := range s.All() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Route makes the call that a line stands for: "/command action arguments".
func (a *App) Route(ctx context.Context, line string) (capability.Call, error) {
	index := a.Commands()
	route, err := index.Parse(line)
	if err != nil {
		return capability.Call{}, err
	}
	signature, err := index.Signature(route.Target, func() (json.RawMessage, error) {
		_, detail, err := a.lookup(ctx, route.Target)
		return detail.Schema, err
	})
	if err != nil {
		return capability.Call{}, err
	}
	return route.Call(signature)
}
