package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/govern/extensions"
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
func (c *addCommand) extension(ctx context.Context, a *app.App) (err error) {
	p, err := add.ReadPackage(ctx, a.AddPlaces(), c.request.From, a.AddTools())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := notElsewhere(ctx, a, p); err != nil {
		return err
	}
	if !c.json {
		c.printPackage(p)
	}
	if c.dry {
		if c.json {
			return c.printJSON(packageOf(p))
		}
		c.out.Linef("Nothing was changed.")
		return nil
	}
	if len(p.Steps) > 0 {
		if ok, err := c.install(ctx, p); err != nil || !ok {
			return err
		}
		if !c.json { // what it is now is what will be accepted
			c.printPackage(p)
		}
	}
	if ok, err := c.agree(ctx, c.yes, "Add it, and switch it on?"); err != nil || !ok {
		return err
	}
	notes := map[string]string{"from": p.From, "commit": p.Commit, "folder": p.Folder()}
	if err := a.RecordAdded(ctx, "add", "extension", p.ID, p.SHA256, notes); err != nil {
		return fmt.Errorf("add package %s: not added, because the audit log could not be written: %w", p.ID, err)
	}
	if err := p.Add(); err != nil {
		return err
	}
	x, err := c.enableAdded(ctx, p)
	if err != nil {
		return err
	}
	if c.json {
		done := packageOf(p)
		done.Added, done.Enabled = true, true
		return c.printJSON(done)
	}
	c.out.Linef("%s %s, and %s is on", c.out.Style(output.Green, "added:"), output.Line(p.Folder()), output.Line(p.ID))
	(&extensionCommand{c.environment}).printUnavailable(x)
	for _, action := range x.Manifest.Actions {
		if action.Kind == capability.KindCommand {
			c.out.Linef("next: ken run '/%s'", output.Line(action.Name))
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
func notElsewhere(ctx context.Context, a *app.App, p *add.Package) error {
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
		if ok, err := c.agree(ctx, c.yes, fmt.Sprintf("Run step %d in the sandbox: %s?", i+1, stepText(s))); err != nil || !ok {
			return false, err
		}
		if err := p.RunStep(ctx, s); err != nil {
			return false, &capability.Error{
				Kind: capability.Unavailable, Op: "install package", Target: p.ID, Err: fmt.Errorf("step %d failed, so nothing was added: %w", i+1, err),
				Fix: "a step has no network but the hosts that it names, and writes to the package alone; correct install/plan.yaml",
			}
		}
		if !c.json {
			c.out.Linef("%s step %d", c.out.Style(output.Green, "done:"), i+1)
		}
	}
	return true, p.Load(ctx)
}

// enableAdded switches a package on that was just added, if it is the one that was
// shown.
func (c *addCommand) enableAdded(ctx context.Context, p *add.Package) (extensions.Extension, error) {
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
	if err != nil {
		return extensions.Extension{}, err
	}
	x, err := a.Extensions.Find(ctx, p.ID, p.Folder())
	if err == nil && !p.Same(x.Manifest) {
		err = &capability.Error{
			Kind: capability.Conflict, Op: "enable extension", Target: p.ID, Err: errors.New("it is not what was shown"),
			Fix: "look at it with ken extension review " + p.ID,
		}
	}
	if err == nil {
		err = a.Extensions.Enable(ctx, a.Principal, x, "added with ken add")
	}
	return x, errors.Join(err, a.Close())
}

// removePackage removes an extension package that was added.
func (c *environment) removePackage(ctx context.Context, a *app.App, id string) error {
	folder, ok := add.FindPackage(a.AddPlaces(), id)
	if !ok {
		return add.NotAdded(id)
	}
	secrets := secretsBelow(a, folder)
	if _, err := a.Extensions.Disable(ctx, a.Principal, id, folder, "removed with ken remove"); err != nil && capability.KindOf(err) != capability.NotFound {
		return err
	}
	work, err := add.RemovePackage(a.AddPlaces(), id)
	if err != nil {
		return err
	}
	if err := a.RecordAdded(ctx, "remove", "extension", id, "", map[string]string{"folder": folder}); err != nil {
		return fmt.Errorf("remove package %s: removed, but the audit log could not be written: %w", id, err)
	}
	if c.json {
		return c.printJSON(map[string]any{"removed": id, "kind": "package", "folder": folder, "work": work, "secrets": listOf(secrets)})
	}
	c.out.Linef("%s is removed", output.Line(id))
	if work != "" {
		c.out.Linef("what its programs wrote stays: %s", output.Line(work))
	}
	for _, s := range secrets {
		c.out.Linef("the secret %s stays; ken secret rm %s removes it", output.Line(s), output.Line(s))
	}
	return nil
}
