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
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

	// Lookup gives the capability that a call means. Required.
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

	// Getenv gives the value of a variable or secret that a recipe names. Nil
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

	// Read and Write are absolute paths besides the work directory. Dir, when
	// not empty, is the one of them that the program starts in, and Protect
	// are files and folders within Write that it cannot change, where they are
	// there and the isolation can hold that; else the result names them.
	Read, Write []string
	Dir         string
	Protect     []string
}

// An Executor runs the programs of extensions. It is safe for concurrent use.
type Executor struct {
	cfg      Config
	root     *os.Root
	programs *executor.Programs

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
		return nil, errors.New("process executor: no lookup; give it the catalog's")
	}
	if !filepath.IsAbs(cfg.Extensions) {
		return nil, fmt.Errorf("process executor: the folder of extensions %q is not absolute", cfg.Extensions)
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
	return &Executor{cfg: cfg, root: root, programs: executor.NewPrograms(cfg.Path, append(slices.Clip(cfg.Avoid), cfg.Extensions)...), schemas: map[schemaKey]schema{}}, nil
}

// Close gives the folder back. Running calls go on.
func (e *Executor) Close() error { return e.root.Close() }

// Facts gives the command that would run, and the hosts in its arguments.
func (e *Executor) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	p, err := e.plan(ctx, call)
	if err != nil {
		return executor.Facts{}, err
	}
	if c != nil && c.Hash != p.capability.Hash {
		return executor.Facts{}, changed(call)
	}
	f := executor.Facts{
		Commands: [][]string{p.argv}, Hosts: hosts(p.argv), Required: []string{executor.PermExec},
		WorkDir: filepath.Join(e.cfg.Extensions, p.extension, "work"), Args: p.args(), Isolation: executor.Planned(ctx, e.cfg.Require),
	}
	f.Paths = e.named(p.argv[1:], slices.Contains(p.capability.Permissions, executor.PermWrite))
	if len(f.Hosts) > 0 || slices.Contains(p.capability.Permissions, executor.PermNetwork) {
		f.Required = append(f.Required, executor.PermNetwork)
	}
	return f, nil
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
		Limits: p.limits, Require: e.cfg.Require,
	}
	executor.Live(call, &spec)
	held, unprotected := executor.Holdable(g.Protect), ""
	spec.Watch = slices.DeleteFunc(slices.Clone(g.Protect), func(name string) bool { return slices.Contains(held, name) })
	if sandbox.Probe(ctx).Isolation.Profile == sandbox.Full {
		spec.Protect = held
	} else {
		unprotected = strings.Join(held, ", ")
	}
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
	outcome, err := sandbox.Run(ctx, spec)
	if err != nil {
		return capability.Result{}, executor.Refused(call, err)
	}
	r := executor.Ending{OK: p.ok}.Result(ctx, outcome)
	p.describe(r.Meta)
	if unprotected != "" {
		r.Meta["unprotected"] = unprotected
	}
	executor.Made(&r, outcome.Made)
	if spec.Egress != nil {
		r.Meta["connections"] = strconv.FormatInt(seen.made.Load(), 10)
		r.Meta["connections_refused"] = strconv.FormatInt(seen.refused.Load(), 10)
		r.Meta["network_bytes"] = strconv.FormatInt(seen.bytes.Load(), 10)
		if len(seen.why) > 0 { // the program has ended: nobody adds to it
			r.Parts = append(r.Parts, capability.Part{Text: "The way to the network refused " + strings.Join(seen.why, "; ") + "."})
		}
	}
	return r, nil
}

// traffic counts what passed a proxy.
type traffic struct {
	made, refused, bytes atomic.Int64

	mu  sync.Mutex
	why []string // of the first few refusals
}

// mostReasons is how many refusals a result tells about.
const mostReasons = 5

func (t *traffic) add(c egress.Connection) {
	if c.Refused != "" {
		t.refused.Add(1)
		t.mu.Lock()
		if why := c.Host + ": " + c.Refused; len(t.why) < mostReasons && !slices.Contains(t.why, why) {
			t.why = append(t.why, why)
		}
		t.mu.Unlock()
	} else {
		t.made.Add(1)
	}
	t.bytes.Add(c.Up + c.Down)
}

// A plan is a call made out: all that is needed to run it.
type plan struct {
	capability *capability.Capability
	extension  string
	argv       []string
	program    executor.Program
	env        []string
	limits     sandbox.Limits
	ok         []int
}

func (p *plan) describe(meta map[string]string) {
	meta["tool"] = filepath.Base(p.program.Path)
	meta["program"] = p.program.Path
	meta["program_sha256"] = p.program.SHA256
	meta["args_count"] = strconv.Itoa(len(p.argv) - 1)
	meta["work_dir"] = p.extension + "/work"
	meta["extension_id"] = p.extension
}

// named gives the files of the workspace that arguments name, alone or behind
// an equals sign. What a program makes of its arguments nobody can tell; what is
// there by that name it may well mean.
func (e *Executor) named(args []string, write bool) []executor.Path {
	if e.cfg.Workspace == "" {
		return nil
	}
	var out []executor.Path
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if filepath.IsAbs(arg) {
			rel, err := filepath.Rel(e.cfg.Workspace, arg)
			if err != nil {
				continue
			}
			arg = rel
		}
		if !filepath.IsLocal(arg) || len(arg) > 4096 {
			continue
		}
		if _, err := os.Lstat(filepath.Join(e.cfg.Workspace, arg)); err == nil && arg != "." {
			out = append(out, executor.Path{Name: filepath.ToSlash(filepath.Clean(arg)), Write: write})
		}
	}
	return out
}

// args counts the arguments that the command was given, without its action.
func (p *plan) args() int {
	n := len(p.argv) - 1
	if run := p.capability.Run; len(run.Argv) == 0 && run.Action != "" {
		n--
	}
	return n
}

func changed(call capability.Call) error {
	return &capability.Error{
		Kind: capability.Conflict, Op: "run", Target: string(call.Target),
		Err: errors.New("it is not what was decided on"), Fix: "look at it again and call it anew",
	}
}

func (e *Executor) plan(ctx context.Context, call capability.Call) (*plan, error) {
	c, detail, err := e.cfg.Lookup(ctx, call.Target)
	if err != nil {
		return nil, err
	}
	if call.CapabilityHash != "" && call.CapabilityHash != c.Hash {
		return nil, changed(call)
	}
	invalid := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "make the command of", Target: string(call.Target), Err: err, Fix: fix}
	}
	if c.Run == nil || !strings.HasPrefix(c.Run.Runner, "exec.") {
		return nil, invalid(errors.New("no program carries it out"), "add runner: to its manifest, as in runner: exec.git")
	}
	p := &plan{capability: c, limits: e.limits(c.Run), ok: c.Run.OKStatus}
	if p.extension, err = extensionOf(c); err != nil {
		return nil, invalid(err, "rename the extension")
	}
	s, err := e.schema(c, detail.Schema)
	if err == nil {
		p.argv, err = s.argv(c, call.Arguments)
	}
	if err != nil {
		return nil, executor.BadArguments(call, err, "")
	}
	if p.program, err = e.programs.Find(p.argv[0]); err != nil {
		return nil, &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: err, Fix: "install the program, or correct the manifest's runner"}
	}
	if pin := c.Run.ProgramSHA256; pin != "" && !strings.EqualFold(pin, p.program.SHA256) {
		return nil, &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "program_sha256",
			Err: errors.New("the installed program is not the one that its manifest pins"), Fix: "review the program, then correct the manifest"}
	}
	if p.env, err = e.environment(c); err != nil {
		return nil, invalid(err, "take it out of env_extras or env_values")
	}
	return p, nil
}

// limits lowers the caps to what a recipe asks for.
func (e *Executor) limits(r *capability.Recipe) sandbox.Limits {
	l := e.cfg.Limits
	if t := time.Duration(r.TimeoutSec) * time.Second; t > 0 {
		l.Wall = min(l.Wall, t)
	}
	if n := int64(r.MaxOutputSize); n > 0 {
		l.Output = min(l.Output, n)
	}
	return l
}

// environment holds what the recipe names. A variable that speaks of a secret
// must be declared as one, so that a person sees it when reviewing.
func (e *Executor) environment(c *capability.Capability) ([]string, error) {
	names := slices.Clone(c.RequiredSecrets)
	for _, name := range c.Run.Env {
		if secretName(name) && !slices.Contains(c.RequiredSecrets, name) {
			return nil, fmt.Errorf("variable %s speaks of a secret and is not among required_secrets", name)
		}
		names = append(names, name)
	}
	env, refused := executor.Environment(e.programs.List(), names, e.cfg.Getenv)
	if len(refused) > 0 {
		return nil, fmt.Errorf("variable %s decides which code a program loads and is never passed on", refused[0])
	}
	for _, set := range c.Run.EnvValues {
		if err := maySet(env, set); err != nil {
			return nil, err
		}
		env = append(env, set)
	}
	return env, nil
}

// maySet refuses a value of the manifest's own where there is one already, and
// for variables that no manifest decides about.
func maySet(env []string, set string) error {
	name, value, ok := strings.Cut(set, "=")
	taken := name == "HOME" || slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	switch {
	case !ok || name == "" || strings.ContainsRune(set, 0):
		return fmt.Errorf("variable %.40q has no name and value", set)
	case executor.LoadsCode(name):
		return fmt.Errorf("variable %s decides which code a program loads and is never set", name)
	case secretName(name) && value != "":
		return fmt.Errorf("variable %s speaks of a secret, and a manifest holds none; name it in required_secrets", name)
	case taken:
		return fmt.Errorf("variable %s has a value already", name)
	}
	return nil
}

func secretName(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH", "COOKIE", "DSN"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return false
}

// extensionOf gives the name of the folder that a capability works in: its
// package's id, or its own where it came without one. Those that a project or
// somebody else brought have a folder for each place they came from, since
// another project may use the same name.
func extensionOf(c *capability.Capability) (string, error) {
	name, packaged := c.Extension()
	if !packaged {
		name = string(c.ID)
		if c.Trust < capability.TrustUser {
			sum := sha256.Sum256([]byte(c.Origin.Source))
			name += "-" + hex.EncodeToString(sum[:6])
		}
	}
	name = strings.NewReplacer(":", "_", "/", "_").Replace(name)
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return "", fmt.Errorf("the id of the extension holds %q; letters, digits, dots, dashes and underscores make a folder", r)
		}
	}
	if name == "" || strings.HasPrefix(name, ".") || len(name) > 128 {
		return "", errors.New("the id of the extension cannot name a folder")
	}
	return name, nil
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

// hosts finds the hosts that stand in arguments. What a program makes of its
// arguments nobody can tell; the sandbox holds it, not this.
func hosts(argv []string) []string {
	var out []string
	for _, u := range urls(argv) {
		if h := strings.ToLower(u.Hostname()); !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	return out
}

// addresses gives them as a proxy allows them.
func addresses(argv []string) []string {
	var out []string
	for _, u := range urls(argv) {
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" {
			host = net.JoinHostPort(host, port)
		}
		out = append(out, host)
	}
	return out
}

func urls(argv []string) []*url.URL {
	var out []*url.URL
	for _, arg := range argv[1:] {
		i := strings.Index(arg, "://")
		if i < 0 {
			continue
		}
		start := i
		for start > 0 && (arg[start-1] >= 'a' && arg[start-1] <= 'z' || arg[start-1] >= 'A' && arg[start-1] <= 'Z' || arg[start-1] == '+') {
			start--
		}
		// A star would be a pattern where a name is meant.
		if u, err := url.Parse(arg[start:]); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), "*") {
			out = append(out, u)
		}
	}
	return out
}
