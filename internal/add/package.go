package add

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/know/source/format"
	"ken/internal/packagefiles"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
	"ken/internal/wholefile"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// Tools says how programs are run while a package is added.
type Tools struct {
	Path    string // folders of programs, as PATH has them
	Getenv  func(string) (string, bool)
	Require sandbox.Requirement
}

// A Package is an extension package that was read and is not added yet.
type Package struct {
	ID       string
	From     string
	Commit   string // of a repository
	SHA256   string // of all its files
	Steps    []Step // that install it
	Manifest *review.Manifest
	Problems []capability.Problem

	places Places
	tools  Tools
	staged string // a folder for all of it
	dir    string // the package in it
}

// A Step is one program that installs something into a package. It runs in the
// sandbox, may write to the package alone, and reaches the hosts alone.
type Step struct {
	Name  string   `json:"name,omitempty"`
	Argv  []string `json:"argv"`
	Hosts []string `json:"hosts,omitempty"`
}

const (
	stepTime = 10 * time.Minute
	maxSteps = 20
	planFile = "install/plan.yaml"
)

// ReadPackage reads a package from a folder, an archive, or a git repository
// ("git:URL" or "git:URL#REF"). The caller closes it.
func ReadPackage(ctx context.Context, places Places, from string, tools Tools) (_ *Package, err error) {
	p := &Package{From: from, places: places, tools: tools}
	if p.staged, err = places.stage(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(&capability.Error{Kind: kindOf(err), Op: "add package", Target: p.From, Err: err}, p.Close())
		}
	}()
	p.dir = filepath.Join(p.staged, "package")
	if err := p.fetch(ctx); err != nil {
		return nil, err
	}
	if p.dir, err = packageIn(p.dir); err != nil {
		return nil, err
	}
	if p.Steps, err = readPlan(p.dir); err != nil {
		return nil, err
	}
	return p, p.Load(ctx)
}

func kindOf(err error) capability.ErrorKind {
	if k := capability.KindOf(err); k != capability.Internal {
		return k
	}
	return capability.Invalid
}

// fetch copies, unpacks or clones the package into its folder.
func (p *Package) fetch(ctx context.Context) error {
	from, clone := p.From, strings.HasPrefix(p.From, "git:")
	if clone {
		from = filepath.Join(p.staged, "clone")
		if err := p.clone(ctx, strings.TrimPrefix(p.From, "git:")); err != nil {
			return err
		}
	}
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	if !clone {
		p.From = from
	}
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return &capability.Error{Kind: capability.NotFound, Op: "read", Target: from, Err: errors.New("no such file or folder"), Fix: "name a folder, an archive, or git: and an address"}
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := &writer{root: root}
	if info.IsDir() {
		in, err := os.OpenRoot(from)
		if err != nil {
			return err
		}
		defer in.Close()
		return w.copyFolder(in.FS())
	}
	if !info.Mode().IsRegular() {
		return errors.New("neither a folder nor an archive")
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.extract(f)
}

// packageIn returns the folder with the manifest: the one given, or the only one in
// it.
func packageIn(dir string) (string, error) {
	has := func(dir string) bool {
		info, err := os.Lstat(filepath.Join(dir, format.ExtensionManifest))
		return err == nil && info.Mode().IsRegular()
	}
	if has(dir) {
		return dir, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && entries[0].IsDir() && has(filepath.Join(dir, entries[0].Name())) {
		return filepath.Join(dir, entries[0].Name()), nil
	}
	return "", fmt.Errorf("there is no %s in it, so it is not an extension package; see docs/sources.md", format.ExtensionManifest)
}

// clone clones a repository in the sandbox. Only its host is reached.
func (p *Package) clone(ctx context.Context, address string) error {
	address, ref, _ := strings.Cut(address, "#")
	spec := sandbox.Spec{}
	var hosts []string
	switch u, err := url.Parse(address); {
	case err != nil || strings.HasPrefix(address, "-"):
		return errors.New("invalid address of a repository")
	case u.Scheme == "https" && u.Host != "":
		if u.User != nil {
			p.From = "git:https://" + u.Host + u.Path
			return errors.New("the address holds a name or password; Ken clones public repositories only")
		}
		hosts = []string{u.Host}
	case u.Scheme == "" || u.Scheme == "file":
		dir, err := filepath.Abs(u.Path)
		if err != nil {
			return err
		}
		address, spec.Read = "file://"+dir, []string{dir}
	default:
		return errors.New("a repository is cloned from https:// or from a folder of this machine")
	}
	argv := []string{"git", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*", "clone", "--quiet", "--depth=1", "--no-recurse-submodules"}
	if ref != "" {
		if strings.HasPrefix(ref, "-") {
			return fmt.Errorf("%q is not a branch or tag", ref)
		}
		argv = append(argv, "--branch="+ref)
	}
	if _, err := p.run(ctx, p.staged, spec, Step{Argv: append(argv, "--", address, "clone"), Hosts: hosts}); err != nil {
		return err
	}
	out, err := p.run(ctx, p.staged, sandbox.Spec{}, Step{Argv: []string{"git", "-c", "safe.directory=*", "-C", "clone", "rev-parse", "HEAD"}})
	p.Commit = strings.TrimSpace(out)
	return err
}

// RunStep runs one step of the install plan. Its failing is an error with what it
// wrote.
func (p *Package) RunStep(ctx context.Context, s Step) error {
	_, err := p.run(ctx, p.dir, sandbox.Spec{}, s)
	return err
}

// run runs a program in the sandbox, in a folder that it may write to.
func (p *Package) run(ctx context.Context, dir string, spec sandbox.Spec, s Step) (string, error) {
	programs := executor.NewPrograms(p.tools.Path, p.staged).Within(p.tools.Require)
	found, err := programs.Find(s.Argv[0])
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Argv[0], err)
	}
	work, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer work.Close()
	env, _ := executor.Environment(programs.List(), nil, p.tools.Getenv)
	spec.Path, spec.Args, spec.Work, spec.Env, spec.Require = found.Path, s.Argv, work, env, p.tools.Require
	spec.Limits = sandbox.Limits{Wall: stepTime, Output: 64 << 10}
	if len(s.Hosts) > 0 {
		proxy, err := egress.New(egress.Config{Allow: s.Hosts})
		if err != nil {
			return "", err
		}
		spec.Egress = proxy
	}
	outcome, err := sandbox.Run(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Argv[0], err)
	}
	out := outcome.Stdout.Text()
	if outcome.End != sandbox.Exited || outcome.ExitCode != 0 {
		text := strings.TrimSpace(cmp.Or(outcome.Stderr.Text(), out))
		return "", fmt.Errorf("%s ended with %s: %s", s.Argv[0], ending(outcome), executor.Clip(text, 2000))
	}
	return out, nil
}

func ending(o sandbox.Outcome) string {
	if o.End == sandbox.Exited {
		return fmt.Sprintf("status %d", o.ExitCode)
	}
	return string(o.End)
}

// readPlan reads the steps that install a package.
func readPlan(dir string) ([]Step, error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(planFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s; write steps: and a list of {name: …, argv: [program, argument], hosts: [host]}", planFile, fmt.Sprintf(format, args...))
	}
	doc, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		return nil, bad("%v", err)
	}
	r := yamldoc.NewReader(doc)
	var out []Step
	for i, item := range r.Items("steps") {
		s := Step{Name: item.String("name"), Argv: item.Strings("argv"), Hosts: item.Strings("hosts")}
		for _, f := range item.Rest() {
			return nil, bad("step %d has the unknown key %s", i+1, f.Key)
		}
		if len(s.Argv) == 0 || s.Argv[0] == "" || strings.ContainsAny(s.Argv[0], `/\`) || len(item.Issues()) > 0 {
			return nil, bad("step %d does not name a program", i+1)
		}
		if slices.ContainsFunc(s.Hosts, func(h string) bool { return h == "" || strings.Contains(h, "*") }) {
			return nil, bad("step %d names a host that is a pattern", i+1)
		}
		out = append(out, s)
	}
	for _, f := range r.Rest() {
		return nil, bad("it has the unknown key %s", f.Key)
	}
	if len(r.Issues()) > 0 || len(out) == 0 || len(out) > maxSteps {
		return nil, bad("it has %d steps that can be read, and must have 1 to %d", len(out), maxSteps)
	}
	return out, nil
}

// Load reads the package as it is now: before and after its steps.
func (p *Package) Load(ctx context.Context) error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if p.SHA256, err = packagefiles.Digest(root.FS()); err != nil {
		return err
	}
	batch, err := p.places.Load(ctx, p.dir)
	if err != nil {
		return err
	}
	p.Problems = batch.Problems
	list := review.NewBook(batch.Capabilities).Manifests()
	if len(list) != 1 {
		for _, problem := range batch.Problems {
			if problem.Severity == capability.Grave {
				return fmt.Errorf("%s; %s", problem.Message, problem.Fix)
			}
		}
		return fmt.Errorf("contains %d extension packages; name the folder of one", len(list))
	}
	p.Manifest, p.ID = list[0], list[0].ID
	return nil
}

// Folder returns the folder that the package has once it is added.
func (p *Package) Folder() string { return filepath.Join(p.places.Extensions, p.ID) }

// Same reports whether a manifest is of what was read: the same package, and the
// same actions with the same programs.
func (p *Package) Same(m *review.Manifest) bool {
	hashes := func(m *review.Manifest) []string {
		out := []string{m.Package.Hash}
		for _, c := range m.Actions {
			out = append(out, string(c.ID)+" "+c.Hash)
		}
		return out
	}
	return slices.Equal(hashes(m), hashes(p.Manifest))
}

// Add moves the package into its place. The work folder of an earlier version
// stays.
func (p *Package) Add() error {
	if err := os.MkdirAll(p.places.Extensions, dirMode); err != nil {
		return err
	}
	text := "# Written by ken add.\nfrom: " + yamledit.Flow(p.From) + "\n"
	if p.Commit != "" {
		text += "commit: " + yamledit.Flow(p.Commit) + "\n"
	}
	if err := wholefile.Write(p.places.packageMarker(p.ID), []byte(text), fileMode); err != nil {
		return err
	}
	old := filepath.Join(p.Folder(), "work")
	if _, err := os.Lstat(old); err == nil {
		if err := os.Rename(old, filepath.Join(p.dir, "work")); err != nil {
			return err
		}
	}
	return p.places.move(p.dir, p.Folder())
}

// Close removes what was staged and not added.
func (p *Package) Close() error { return p.places.unstage(p.staged) }
