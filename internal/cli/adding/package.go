package adding

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addplan"
	"ken/internal/cli/output"
)

// extension adds an extension package.
func (c *addCommand) extension(ctx context.Context, a addplan.App) (err error) {
	p, err := a.ReadPackage(ctx, c.request.From)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if !*c.JSON {
		c.printPackage(p.Read())
	}
	if c.dry {
		if *c.JSON {
			return c.PrintJSON(p)
		}
		c.Out.Linef("Nothing was changed.")
		return nil
	}
	if len(p.Steps) > 0 {
		if ok, err := c.install(ctx, p); err != nil || !ok {
			return err
		}
		if !*c.JSON { // what it is now is what will be accepted
			c.printPackage(p.Read())
		}
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it, and switch it on?"); err != nil || !ok {
		return err
	}
	x, err := p.Add(ctx)
	if err != nil {
		return err
	}
	if *c.JSON {
		return c.PrintJSON(p)
	}
	c.Out.Linef("%s %s, and %s is on", c.Out.Style(output.Green, "added:"), output.Line(p.Folder), output.Line(p.ID))
	for _, u := range x.Unavailable {
		c.Out.Linef("%s  %s: %s", c.Out.Style(output.Yellow, fmt.Sprintf("%-14s", "unavailable")), output.Line(string(u.ID)), output.Line(u.Why))
	}
	c.printTry(x.Manifest.Actions)
	return nil
}

// printTry names something of a package to try: a command that only reads, or else
// one to look at before it runs.
func (c *addCommand) printTry(actions []*capability.Capability) {
	var first *capability.Capability
	for _, action := range actions {
		switch {
		case action.Kind != capability.KindCommand:
		case action.Said().ReadOnly == capability.Yes:
			c.Out.Linef("next: ken run '/%s'", output.Line(action.Name))
			return
		case first == nil:
			first = action
		}
	}
	if first != nil {
		c.Out.Linef("next: ken catalog show '%s'", output.Line(string(first.ID)))
	}
}

func (c *addCommand) printPackage(p *add.Package) {
	fact := func(name, text string) { c.fact(name, text) }
	fact("package", output.Line(p.ID))
	fact("from", output.Line(p.From))
	if p.Commit != "" {
		fact("commit", output.Line(p.Commit))
	}
	for _, line := range p.Manifest.Lines() {
		switch strings.TrimSpace(line.Name) {
		case "extension", "place", "schema", "digest":
			continue
		}
		fact(line.Name, line.Text)
	}
	for _, problem := range p.Problems {
		fact("note", output.Line(problem.Message))
	}
	for i, s := range p.Steps {
		c.fact(fmt.Sprintf("step %d", i+1), stepText(s))
	}
	fact("files", p.SHA256)
}

func stepText(s add.Step) string {
	text := "`" + strings.Join(s.Argv, " ") + "`"
	if len(s.Hosts) > 0 {
		text += ", reaches " + strings.Join(s.Hosts, ", ")
	} else {
		text += ", without a network"
	}
	if s.Name != "" {
		text = s.Name + ": " + text
	}
	return output.Line(text)
}

// install runs the steps of a package in the sandbox, each after a yes, and reads
// the package again.
func (c *addCommand) install(ctx context.Context, p *addplan.Package) (bool, error) {
	for i, s := range p.Steps {
		if ok, err := c.Agree(ctx, c.yes, fmt.Sprintf("Run step %d in the sandbox: %s?", i+1, stepText(s))); err != nil || !ok {
			return false, err
		}
		if err := p.RunStep(ctx, i); err != nil {
			return false, err
		}
		if !*c.JSON {
			c.Out.Linef("%s step %d", c.Out.Style(output.Green, "done:"), i+1)
		}
	}
	return true, p.Reload(ctx)
}
