package adding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/cli/output"
)

// isPackage reports whether an argument of ken add names a package: a repository,
// or a file or folder that is there.
func isPackage(given string) bool {
	if rest, ok := strings.CutPrefix(given, "git:"); ok {
		return rest != ""
	}
	_, err := os.Stat(given)
	return given != "" && err == nil
}

// isDocument reports whether a file is a document by its name, and no package.
func isDocument(given string) bool {
	switch strings.ToLower(filepath.Ext(given)) {
	case ".json", ".yaml", ".yml":
		info, err := os.Stat(given)
		return err == nil && info.Mode().IsRegular()
	}
	return false
}

// A packageAdded is what ken add --json prints of a package.
type packageAdded struct {
	Kind    string     `json:"kind"`
	ID      string     `json:"id"`
	From    string     `json:"from"`
	Commit  string     `json:"commit,omitempty"`
	SHA256  string     `json:"sha256"`
	Steps   []add.Step `json:"steps"`
	Lines   any        `json:"lines"`
	Added   bool       `json:"added"`
	Folder  string     `json:"folder"`
	Enabled bool       `json:"enabled"`
}

// extension adds an extension package.
func (c *addCommand) extension(ctx context.Context, a App) (err error) {
	p, err := add.ReadPackage(ctx, a.Places, c.request.From, a.Tools)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := notElsewhere(ctx, a, p); err != nil {
		return err
	}
	if !*c.JSON {
		c.printPackage(p)
	}
	if c.dry {
		if *c.JSON {
			return c.PrintJSON(packageOf(p))
		}
		c.Out.Linef("Nothing was changed.")
		return nil
	}
	if len(p.Steps) > 0 {
		if ok, err := c.install(ctx, p); err != nil || !ok {
			return err
		}
		if !*c.JSON { // what it is now is what will be accepted
			c.printPackage(p)
		}
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it, and switch it on?"); err != nil || !ok {
		return err
	}
	notes := map[string]string{"from": p.From, "commit": p.Commit, "folder": p.Folder()}
	if err := a.Record(ctx, "add", "extension", p.ID, p.SHA256, notes); err != nil {
		return fmt.Errorf("add package %s: not added, because the audit log could not be written: %w", p.ID, err)
	}
	if err := p.Add(); err != nil {
		return err
	}
	x, err := c.Enable(ctx, p)
	if err != nil {
		return err
	}
	if *c.JSON {
		done := packageOf(p)
		done.Added, done.Enabled = true, true
		return c.PrintJSON(done)
	}
	c.Out.Linef("%s %s, and %s is on", c.Out.Style(output.Green, "added:"), output.Line(p.Folder()), output.Line(p.ID))
	for _, u := range x.Unavailable {
		c.Out.Linef("%s  %s: %s", c.Out.Style(output.Yellow, fmt.Sprintf("%-14s", "unavailable")), output.Line(string(u.ID)), output.Line(u.Why))
	}
	for _, action := range x.Manifest.Actions {
		if action.Kind == capability.KindCommand {
			c.Out.Linef("next: ken run '/%s'", output.Line(action.Name))
			break
		}
	}
	return nil
}

func packageOf(p *add.Package) packageAdded {
	return packageAdded{
		Kind: "package", ID: p.ID, From: p.From, Commit: p.Commit, SHA256: p.SHA256, Steps: listOf(p.Steps), Lines: p.Manifest.Lines(), Folder: p.Folder(),
	}
}

// notElsewhere returns an error if another folder has a package of the same id.
func notElsewhere(ctx context.Context, a App, p *add.Package) error {
	list, err := a.Extensions.List(ctx)
	if err != nil {
		return err
	}
	for _, x := range list {
		if x.Manifest.ID == p.ID && x.Manifest.Place != p.Folder() {
			return &capability.Error{
				Kind: capability.Conflict, Op: "add package", Target: p.ID, Err: fmt.Errorf("%s has a package of this id", x.Manifest.Place),
				Fix: "remove that folder, or give the package another id in its manifest.json",
			}
		}
	}
	return nil
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
func (c *addCommand) install(ctx context.Context, p *add.Package) (bool, error) {
	for i, s := range p.Steps {
		if ok, err := c.Agree(ctx, c.yes, fmt.Sprintf("Run step %d in the sandbox: %s?", i+1, stepText(s))); err != nil || !ok {
			return false, err
		}
		if err := p.RunStep(ctx, s); err != nil {
			return false, &capability.Error{
				Kind: capability.Unavailable, Op: "install package", Target: p.ID, Err: fmt.Errorf("step %d failed, so nothing was added: %w", i+1, err),
				Fix: "a step has no network but the hosts that it names, and writes to the package alone; correct install/plan.yaml",
			}
		}
		if !*c.JSON {
			c.Out.Linef("%s step %d", c.Out.Style(output.Green, "done:"), i+1)
		}
	}
	return true, p.Load(ctx)
}
