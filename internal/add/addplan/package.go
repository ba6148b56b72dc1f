package addplan

import (
	"context"
	"errors"
	"fmt"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/govern/extensions"
	"ken/internal/govern/review"
)

// A Package is an extension package that was read and is not added yet.
type Package struct {
	Kind    string        `json:"kind"` // package
	ID      string        `json:"id"`
	From    string        `json:"from"`
	Commit  string        `json:"commit,omitempty"`
	SHA256  string        `json:"sha256"`
	Steps   []add.Step    `json:"steps"`
	Lines   []review.Line `json:"lines"`
	Added   bool          `json:"added"`
	Folder  string        `json:"folder"`
	Enabled bool          `json:"enabled"`

	app  App
	read *add.Package
	done int // steps that ran
}

// ReadPackage reads a package from a folder, an archive or a repository. It runs
// none of its steps. The caller closes the plan.
func (a App) ReadPackage(ctx context.Context, from string) (*Package, error) {
	x, err := add.ReadPackage(ctx, a.Places, from, a.Tools)
	if err != nil {
		return nil, err
	}
	if err := a.notElsewhere(ctx, x); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	p := &Package{app: a, read: x}
	p.fill()
	return p, nil
}

func (p *Package) fill() {
	x := p.read
	p.Kind, p.ID, p.From, p.Commit, p.SHA256, p.Steps, p.Lines, p.Folder = "package", x.ID, x.From, x.Commit, x.SHA256, listOf(x.Steps), x.Manifest.Lines(), x.Folder()
}

// Read returns the package itself.
func (p *Package) Read() *add.Package { return p.read }

// RunStep runs one install step in the sandbox. Steps are numbered from 0 and run
// in order.
func (p *Package) RunStep(ctx context.Context, i int) error {
	if err := p.read.RunStep(ctx, p.Steps[i]); err != nil {
		return &capability.Error{
			Kind: capability.Unavailable, Op: "install package", Target: p.ID, Err: fmt.Errorf("step %d failed, so nothing was added: %w", i+1, err),
			Fix: "a step has no network but the hosts that it names, and writes to the package alone; correct install/plan.yaml",
		}
	}
	p.done = i + 1
	return nil
}

// Install runs all steps and reads the package again.
func (p *Package) Install(ctx context.Context) error {
	for i := p.done; i < len(p.Steps); i++ {
		if err := p.RunStep(ctx, i); err != nil {
			return err
		}
	}
	return p.Reload(ctx)
}

// Installed reports whether all steps ran.
func (p *Package) Installed() bool { return p.done == len(p.Steps) }

// Reload reads the package again after its steps: what it is now is what will be
// accepted.
func (p *Package) Reload(ctx context.Context) error {
	if err := p.read.Load(ctx); err != nil {
		return err
	}
	p.fill()
	return nil
}

// Add copies the package to where the catalog reads it, and switches it on. All
// steps must have run.
func (p *Package) Add(ctx context.Context) (x extensions.Extension, err error) {
	if !p.Installed() {
		return x, &capability.Error{Kind: capability.Conflict, Op: "add package", Target: p.ID, Err: errors.New("its install steps have not run yet"), Fix: "run them first"}
	}
	notes := map[string]string{"from": p.From, "commit": p.Commit, "folder": p.Folder}
	if err := p.app.Record(ctx, "add", "extension", p.ID, p.SHA256, notes); err != nil {
		return x, fmt.Errorf("add package %s: not added, because the audit log could not be written: %w", p.ID, err)
	}
	if err := p.read.Add(); err != nil {
		return x, err
	}
	p.Added = true
	if x, err = p.app.Enable(ctx, p.read); err != nil {
		return x, err
	}
	p.Enabled = true
	return x, nil
}

// Close removes what was fetched, unless the package was added.
func (p *Package) Close() error { return p.read.Close() }

// notElsewhere returns an error if another folder has a package of the same id.
func (a App) notElsewhere(ctx context.Context, p *add.Package) error {
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
