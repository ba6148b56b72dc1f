package adding

import (
	"context"
	"fmt"

	"ken/internal/add/addplan"
	"ken/internal/cli/output"
)

func (c Config) printAdded(a addplan.App) error {
	list, err := a.List()
	if err != nil {
		return err
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

func (c Config) remove(ctx context.Context, a addplan.App, name string) error {
	r, err := a.Remove(ctx, name)
	if err != nil {
		return err
	}
	if *c.JSON {
		out := map[string]any{"removed": r.Name, "kind": r.Kind, "folder": r.Folder}
		switch r.Kind {
		case "server":
			out["file"], out["loggedOut"], out["secrets"], out["shared"] = r.File, r.LoggedOut, listOf(r.Secrets), listOf(r.Shared)
		case "package":
			out["work"], out["secrets"] = r.Work, listOf(r.Secrets)
		default:
			out["secrets"] = listOf(r.Secrets)
		}
		return c.PrintJSON(out)
	}
	if r.Kind == "server" {
		c.Out.Linef("%s is removed from %s", output.Line(r.Name), output.Line(r.File))
	} else {
		c.Out.Linef("%s is removed", output.Line(r.Name))
	}
	switch {
	case r.LoggedOut:
		c.Out.Linef("its login is removed too: the token and the client registration")
	case r.LoginUsed != "":
		c.Out.Linef("its login stays, because a server of this name is still defined: %s", output.Line(r.LoginUsed))
	}
	for _, s := range r.Shared {
		c.Out.Linef("the secret %s stays, because %s needs it", output.Line(s.Secret), output.Line(s.By))
	}
	if r.Work != "" {
		c.Out.Linef("what its programs wrote stays: %s", output.Line(r.Work))
	}
	for _, s := range r.Secrets {
		c.Out.Linef("the secret %s stays; ken secret rm %s removes it", output.Line(s), output.Line(s))
	}
	return nil
}
