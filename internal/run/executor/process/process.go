// Package process runs the programs of extension packages: the capabilities
// whose recipe names a runner "exec.*".
//
// A recipe becomes an argument list without any shell: see [Argv]. The program
// is found by name in fixed folders and runs in the sandbox, in a work
// directory that only its extension has, with a small environment, and without
// a network unless one was granted. Whatever it writes, however it ends, the
// call has one result, with the isolation that was in force in its Meta.
//
// It may ask for the files of the workspace, which are then shown to it and in
// which it starts; whether it gets them is for [Config.Grant] to say.
package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
)

// Config says where extensions work and how much they may use.
type Config struct {
	// Extensions is the folder that holds a folder for each extension; in it
	// its work directory, ID/work, is made on first use. Required.
	Extensions string

	// Lookup returns the capability that a call means. Required.
	Lookup executor.Lookup

	// Grant says what policy lets a call have beyond its work directory. Nil
	// grants nothing.
	Grant func(ctx context.Context, call capability.Call, c *capability.Capability) (Grant, error)

	// Path lists the folders of programs, as PATH does. Empty:
	// [executor.DefaultPath].
	Path string

	// Workspace, when not empty, is the absolute folder that programs may be
	// granted: the files in it that arguments name are told to the rules.
	Workspace string

	// Avoid are folders that tools may write to: no program is taken from them.
	Avoid []string

	// Getenv returns the value of a variable or secret that a recipe names. Nil
	// knows none.
	Getenv func(name string) (string, bool)

	// Limits are the caps, and what holds where a recipe says nothing. A
	// recipe can only lower time and output. Zero fields mean the sandbox's
	// defaults: 300 s, 1 MiB of each stream.
	Limits sandbox.Limits

	// Require is the least isolation. Empty: [sandbox.RequireLandlock].
	Require sandbox.Requirement
}

// A Grant is what one call may have.
type Grant struct {
	// Hosts can be reached, as egress.Config.Allow has them. None: no network.
	Hosts    []string
	Networks []netip.Prefix
	MaxBytes int64 // up and down together; zero means the proxy's default
	Rate     int64 // bytes a second; zero means none

	// FromArguments lets it reach the hosts too that its arguments name as
	// addresses, at their ports.
	FromArguments bool

	// Read and Write are absolute paths in addition to the work directory. Dir,
	// if not empty, is the one of them in which the program starts. Guards list
	// what the program cannot read or change in them unless its arguments name
	// it. If the sandbox cannot enforce that, the result says so.
	Read, Write []string
	Dir         string
	Guards      executor.Guards
}

// An Executor runs the programs of extensions. It is safe for concurrent use.
type Executor struct {
	cfg      Config
	root     *os.Root
	programs *executor.Programs
	inside   *executor.Programs // those of packages, whose folder the sandbox shows

	mu      sync.Mutex
	schemas map[schemaKey]schema
}

// A schemaKey names a schema: a capability's hash covers it.
type schemaKey struct {
	id   capability.ID
	hash string
}

const mostSchemas = 4096

// schema reads a capability's schema, once.
func (e *Executor) schema(c *capability.Capability, raw json.RawMessage) (schema, error) {
	key := schemaKey{c.ID, c.Hash}
	e.mu.Lock()
	s, ok := e.schemas[key]
	e.mu.Unlock()
	if ok && key.hash != "" {
		return s, nil
	}
	s, err := readSchema(raw)
	if err != nil || key.hash == "" {
		return s, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.schemas) >= mostSchemas {
		clear(e.schemas)
	}
	e.schemas[key] = s
	return s, nil
}

// New opens the folder of extensions, which is made when missing.
func New(cfg Config) (*Executor, error) {
	if cfg.Lookup == nil {
		return nil, errors.New("make process executor: missing Config.Lookup")
	}
	if !filepath.IsAbs(cfg.Extensions) {
		return nil, fmt.Errorf("make process executor: the extensions folder %q is not an absolute path", cfg.Extensions)
	}
	if err := os.MkdirAll(cfg.Extensions, 0o700); err != nil {
		return nil, fmt.Errorf("process executor: %w", err)
	}
	root, err := os.OpenRoot(cfg.Extensions)
	if err != nil {
		return nil, fmt.Errorf("process executor: %w", err)
	}
	if cfg.Limits.Wall <= 0 {
		cfg.Limits.Wall = 300 * time.Second
	}
	if cfg.Limits.Output <= 0 {
		cfg.Limits.Output = 1 << 20
	}
	return &Executor{cfg: cfg, root: root, programs: executor.NewPrograms(cfg.Path, append(slices.Clip(cfg.Avoid), cfg.Extensions)...).Within(cfg.Require), inside: &executor.Programs{}, schemas: map[schemaKey]schema{}}, nil
}

// Close releases the folder. Running calls go on.
func (e *Executor) Close() error { return e.root.Close() }

// Facts returns the command that would run, and the hosts in its arguments.
func (e *Executor) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return executor.Facts{}, err
	}
	if c != nil && c.Hash != p.capability.Hash {
		return executor.Facts{}, executor.Outdated("run", call)
	}
	f := executor.Facts{
		Commands: [][]string{p.argv}, Hosts: hosts(p.argv), Required: []string{executor.PermExec},
		WorkDir: filepath.Join(e.cfg.Extensions, p.extension, "work"), Args: p.args(), Isolation: executor.Planned(ctx, e.cfg.Require, sandbox.Open{}),
	}
	if f.Hidden = e.gitRuns(p); f.Hidden != "" {
		f.Opaque = "git, which may run a program that the project names: " + f.Hidden
	}
	code := e.code(p)
	f.Files, f.Unknown = code.Files, code.Unknown
	f.Paths = e.named(p.argv[1:], slices.Contains(p.capability.Permissions, executor.PermWrite))
	if len(f.Hosts) > 0 || slices.Contains(p.capability.Permissions, executor.PermNetwork) {
		f.Required = append(f.Required, executor.PermNetwork)
	}
	if e.cfg.Require != sandbox.Off && e.cfg.Grant != nil {
		// A grant that fails is reported when the call runs.
		if g, err := e.cfg.Grant(ctx, call, p.capability); err == nil {
			found := e.look(ctx, p, g)
			found.Asks(ctx, e.cfg.Require, &f)
		}
	}
	return f, nil
}

// readsWork reports whether a program may only read its work directory, because
// its extension does not declare permission to write.
func readsWork(c *capability.Capability) bool {
	_, packaged := c.Extension()
	return packaged && !slices.ContainsFunc(c.Permissions, func(p string) bool { return p == executor.PermWrite || p == "fs_write" || p == "fs.write" })
}

// look finds the guarded files in a program's folders, except those that its
// arguments name.
func (e *Executor) look(ctx context.Context, p *plan, g Grant) executor.Survey {
	if g.Guards == nil {
		return executor.Survey{}
	}
	var grounds []executor.Ground
	for _, dir := range g.Write {
		grounds = append(grounds, executor.Ground{Dir: dir, Write: true})
	}
	for _, dir := range g.Read {
		if !slices.Contains(g.Write, dir) {
			grounds = append(grounds, executor.Ground{Dir: dir})
		}
	}
	return executor.Look(ctx, g.Guards, g.Dir, grounds, g.Guards.Named("", [][]string{p.argv}))
}

// granted makes a call out, and what it may have.
func (e *Executor) granted(ctx context.Context, call capability.Call) (*plan, Grant, error) {
	p, err := e.plan(ctx, call)
	if err != nil || e.cfg.Grant == nil {
		return p, Grant{}, err
	}
	g, err := e.cfg.Grant(ctx, call, p.capability)
	return p, g, err
}

// Invoke runs the program. Its failing, and its being stopped, are results.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, g, err := e.granted(ctx, call)
	if err != nil {
		return capability.Result{}, err
	}
	work, err := e.work(call, p.extension, 0o700)
	if err != nil {
		return capability.Result{}, err
	}
	defer work.Close()
	spec := sandbox.Spec{
		Path: p.program.Path, Args: p.argv, Work: work, Env: p.env, Read: g.Read, Write: g.Write, Dir: g.Dir,
		Limits: p.limits, Require: e.cfg.Require, ReadOnly: readsWork(p.capability),
	}
	executor.Live(call, &spec)
	if p.dir != "" {
		spec.Read = append(slices.Clip(spec.Read), p.dir)
	}
	if p.input != nil {
		spec.Stdin = bytes.NewReader(p.input)
	}
	found := e.look(ctx, p, g)
	if call, err = found.Decided(ctx, call, e.cfg.Require); err != nil {
		return capability.Result{}, err
	}
	held := found.Hold(ctx, &spec)
	if g.FromArguments {
		g.Hosts = append(slices.Clip(g.Hosts), addresses(p.argv)...)
	}
	var seen traffic
	if len(g.Hosts) > 0 {
		proxy, err := egress.New(egress.Config{Allow: g.Hosts, Networks: g.Networks, MaxBytes: g.MaxBytes, Rate: g.Rate, Report: seen.add})
		if err != nil {
			return capability.Result{}, &capability.Error{Kind: capability.Invalid, Op: "grant network to", Target: string(call.Target), Err: err}
		}
		spec.Egress = proxy
	}
	files := e.code(p).Files
	if err := executor.SameCode(call, files); err != nil {
		return capability.Result{}, err
	}
	outcome, err := sandbox.Run(ctx, spec)
	if err != nil {
		return capability.Result{}, executor.Refused(call, err)
	}
	r := executor.Ending{OK: p.ok}.Result(ctx, outcome)
	if p.input != nil {
		answerAsJSON(&r)
	}
	p.describe(r.Meta)
	found.Tell(&r, held, e.look(ctx, p, g))
	executor.Changed(&r, files, e.code(p).Files)
	if spec.Egress != nil {
		r.Meta["connections"] = strconv.FormatInt(seen.made.Load(), 10)
		r.Meta["connections_refused"] = strconv.FormatInt(seen.refused.Load(), 10)
		r.Meta["network_bytes"] = strconv.FormatInt(seen.bytes.Load(), 10)
		if len(seen.why) > 0 { // the program has ended: nothing is added to it
			r.Parts = append(r.Parts, capability.Part{Text: "The way to the network refused " + strings.Join(seen.why, "; ") + "."})
		}
	}
	return r, nil
}

// work opens an extension's work directory, name by name: a link in its place
// would lead to another extension's. With a mode other than zero it is made.
func (e *Executor) work(call capability.Call, extension string, perm fs.FileMode) (*os.Root, error) {
	dir, err := executor.OpenDir(e.root, extension+"/work", perm)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Denied, Op: "open the work directory of", Target: string(call.Target), Rule: "extensions/" + extension + "/work",
			Err: err, Fix: "it must be a plain folder of the extension's own; remove what is in its place"}
	}
	return dir, nil
}
