package adding

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/cli/output"
)

func (c Config) printAdded(a App) error {
	list, err := add.List(a.Places)
	if err != nil {
		return err
	}
	servers, err := addmcp.List(a.Servers.Config)
	if err != nil {
		return err
	}
	for _, s := range servers {
		list = append(list, add.Added{Kind: "server", Name: s.Name, From: cmp.Or(s.Package, s.From), Folder: s.Folder})
	}
	if *c.JSON {
		return c.PrintJSON(map[string]any{"added": listOf(list)})
	}
	var rows [][]string
	for _, x := range list {
		rows = append(rows, []string{x.Kind, x.Name, x.From})
	}
	c.Out.Table([]output.Column{{Style: output.Cyan}, {Style: output.Bold}, {Style: output.Dim, Grow: true}}, rows)
	if len(rows) == 0 {
		fmt.Fprintln(c.Err, "ken: nothing was added with ken add")
	}
	return nil
}

func (c Config) remove(ctx context.Context, a App, name string) error {
	places := a.Places
	folder, ok := add.FindAPI(places, name)
	if !ok {
		if is, err := c.removeServer(ctx, a, name); is {
			return err
		}
		return c.removePackage(ctx, a, name)
	}
	secrets := secretsBelow(a, folder)
	if err := add.RemoveAPI(places, name); err != nil {
		return err
	}
	if err := a.Record(ctx, "remove", "api", name, "", map[string]string{"folder": folder}); err != nil {
		return fmt.Errorf("remove API %s: removed, but the audit log could not be written: %w", name, err)
	}
	if *c.JSON {
		return c.PrintJSON(map[string]any{"removed": name, "kind": "api", "folder": folder, "secrets": listOf(secrets)})
	}
	c.Out.Linef("%s is removed", output.Line(name))
	for _, s := range secrets {
		c.Out.Linef("the secret %s stays; ken secret rm %s removes it", output.Line(s), output.Line(s))
	}
	return nil
}

// secretsBelow returns the secrets that are set and that only the capabilities of
// a folder need.
func secretsBelow(a App, folder string) []string {
	var out []string
	others := map[string]bool{}
	for e := range a.Catalog.Snapshot().All() {
		rel, err := filepath.Rel(folder, e.Origin.Path)
		inside := err == nil && filepath.IsLocal(rel)
		for _, s := range e.RequiredSecrets {
			switch {
			case !inside:
				others[s] = true
			case a.HasSecret(s) && !slices.Contains(out, s):
				out = append(out, s)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return others[s] })
}

// removePackage removes an extension package that was added.
func (c Config) removePackage(ctx context.Context, a App, id string) error {
	folder, ok := add.FindPackage(a.Places, id)
	if !ok {
		return add.NotAdded(id)
	}
	secrets := secretsBelow(a, folder)
	if _, err := a.Extensions.Disable(ctx, a.By, id, folder, "removed with ken remove"); err != nil && capability.KindOf(err) != capability.NotFound {
		return err
	}
	work, err := add.RemovePackage(a.Places, id)
	if err != nil {
		return err
	}
	if err := a.Record(ctx, "remove", "extension", id, "", map[string]string{"folder": folder}); err != nil {
		return fmt.Errorf("remove package %s: removed, but the audit log could not be written: %w", id, err)
	}
	if *c.JSON {
		return c.PrintJSON(map[string]any{"removed": id, "kind": "package", "folder": folder, "work": work, "secrets": listOf(secrets)})
	}
	c.Out.Linef("%s is removed", output.Line(id))
	if work != "" {
		c.Out.Linef("what its programs wrote stays: %s", output.Line(work))
	}
	for _, s := range secrets {
		c.Out.Linef("the secret %s stays; ken secret rm %s removes it", output.Line(s), output.Line(s))
	}
	return nil
}
