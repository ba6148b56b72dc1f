// Package shell carries out the one tool "shell": a command line, in one of
// three modes.
//
//   - off: nothing runs.
//   - allowlist: the line must be one simple command that begins with an
//     allowed prefix. It is taken apart here and run as arguments; no shell
//     reads it. Anything a shell would act on is refused, and named.
//   - full: /bin/sh reads the line, inside the sandbox.
//
// The zero value of everything is off. A request can lower the time and the
// output, never raise them. A command that fails is a result with its exit
// status and its output, head and tail.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
)

// A Mode says which commands may run. Any word but the three is off.
type Mode string

// The modes.
const (
	Off       Mode = "off"
	Allowlist Mode = "allowlist"
	Full      Mode = "full"
)

// Settings are what tool-access.json and the environment say of the tool. The
// zero value is off.
type Settings struct {
	Mode            Mode
	AllowedPrefixes []string // "git log": the first arguments, each whole; * stands for any part of one

	// Timeout and MaxOutputChars are the most that a call may have. Zero: 15 s
	// and 20,000. More than 120 s and 200,000 there never is.
	Timeout        time.Duration
	MaxOutputChars int

	// AllowAnyCwd lets a call name a folder outside the workspace, which it may
	// then write to.
	AllowAnyCwd bool

	// By names the variable of the environment, or the project's file, that
	// decided Mode and AllowedPrefixes. Empty: the user's own setting did.
	By string
}

const (
	timeoutDefault = 15 * time.Second
	timeoutCap     = 120 * time.Second
	outputDefault  = 20_000
	outputCap      = 200_000

	longestCommand = 64 << 10
)

// Config says where commands run.
type Config struct {
	// Workspace is the absolute folder that commands begin in and may write to.
	Workspace string

	// Guards returns what commands cannot read or change there unless they name
	// it. It is called for every call. If the sandbox cannot enforce it, the
	// result's Meta says so. Nil guards nothing.
	Guards func() executor.Guards

	// Prefix returns the beginning of a command that must be on the list to
	// allow it, for messages to people. Nil: the program's name.
	Prefix func(argv []string) []string

	// Guard, when not nil, can refuse a call before anything starts.
	Guard func(call capability.Call) error

	// Settings returns the settings that hold now; it is asked at every call, so
	// that what was taken away is gone at once. Nil is off.
	Settings func() Settings

	// Home returns an absolute folder for what tools keep for themselves when they
	// work for a principal. It is made if it is missing. The names directly in it
	// are guarded like those of the workspace. Nil: the workspace, or the folder
	// outside it that the command runs in.
	Home func(capability.Principal) string

	// Path lists the folders of programs. Empty: [executor.DefaultPath].
	Path string

	// Env names variables that are passed on, Getenv gives their values.
	Env    []string
	Getenv func(name string) (string, bool)

	// Network makes the way out of a call; nil, or a nil Egress, is none.
	Network func(ctx context.Context, call capability.Call) (sandbox.Egress, error)

	// Limits are those besides time and output.
	Limits sandbox.Limits

	// Require is the least isolation. Empty: [sandbox.RequireLandlock].
	Require sandbox.Requirement
}

// An Executor runs command lines. It is safe for concurrent use.
type Executor struct {
	cfg      Config
	root     *os.Root
	programs *executor.Programs
}

// New opens the workspace.
func New(cfg Config) (*Executor, error) {
	if !filepath.IsAbs(cfg.Workspace) {
		return nil, fmt.Errorf("shell executor: the workspace %q is not absolute", cfg.Workspace)
	}
	cfg.Workspace = filepath.Clean(cfg.Workspace)
	root, err := os.OpenRoot(cfg.Workspace)
	if err != nil {
		return nil, fmt.Errorf("shell executor: %w", err)
	}
	avoid := []string{cfg.Workspace}
	if cfg.Home != nil {
		avoid = append(avoid, filepath.Dir(cfg.Home(capability.Principal{})))
	}
	return &Executor{cfg: cfg, root: root, programs: executor.NewPrograms(cfg.Path, avoid...)}, nil
}

// Close releases the workspace. Running calls go on.
func (e *Executor) Close() error { return e.root.Close() }

// Tools returns the tool that this executor carries out.
func Tools() []executor.Tool {
	return []executor.Tool{{
		Capability: capability.Capability{
			Kind: capability.KindTool, Name: "shell", Category: "system",
			Description: "Run a command in the workspace and return its output and exit status. Commands run confined, without a terminal and without input.",
			Tags:        []string{"command", "terminal", "run", "execute"},
			Aliases:     []string{"run_command", "execute_command"},
			Permissions: []string{executor.PermExec, executor.PermRead, executor.PermWrite},
			Run:         &capability.Recipe{Runner: "shell"},
		},
		Detail: capability.Detail{Schema: []byte(inputSchema)},
	}}
}

const inputSchema = `{"type":"object","properties":{` +
	`"cmd":{"type":"string","x-ken-rest":true,"description":"The command line"},` +
	`"command":{"type":"string","description":"The same as cmd; give one of them"},` +
	`"cwd":{"type":"string","description":"Folder to run it in, relative to the workspace"},` +
	`"timeoutMs":{"type":"integer","minimum":1,"description":"Stop it after this time; can only lower the limit"},` +
	`"maxOutputChars":{"type":"integer","minimum":1,"description":"Most characters to return; can only lower the limit"}},` +
	`"anyOf":[{"required":["cmd"]},{"required":["command"]}],"additionalProperties":false}`

type input struct {
	Cmd            string `json:"cmd"`
	Command        string `json:"command"` // what the tool takes under its other names
	Cwd            string `json:"cwd"`
	TimeoutMs      *int64 `json:"timeoutMs"`
	MaxOutputChars *int   `json:"maxOutputChars"`
}

// A request is a call, read and checked against the settings.
type request struct {
	cmd      string
	cwd      string // clean: relative to the workspace, or absolute
	line     line
	hidden   string // what makes git in the line run programs of the project
	settings Settings
	timeout  time.Duration
	chars    int
}

// read makes out what a call wants and refuses what the mode does not allow.
func (e *Executor) read(call capability.Call) (request, error) {
	var r request
	if e.cfg.Settings != nil {
		r.settings = e.cfg.Settings()
	}
	if m := r.settings.Mode; m != Allowlist && m != Full {
		return r, denied(call, "tools.shell.mode", errors.New("the shell is off"), allowing(r.settings.By, "enabled: true, mode: allowlist"))
	}
	in, err := executor.Decode[input](call)
	if err != nil {
		return r, err
	}
	if r.cmd = in.Cmd; r.cmd == "" {
		r.cmd = in.Command
	} else if in.Command != "" {
		return r, executor.BadArguments(call, errors.New("cmd and command are both given"), "give cmd alone")
	}
	switch {
	case strings.TrimSpace(r.cmd) == "":
		return r, executor.BadArguments(call, errors.New("cmd is empty"), "write the command to run")
	case len(r.cmd) > longestCommand:
		return r, executor.BadArguments(call, fmt.Errorf("cmd has %d bytes, more than %d", len(r.cmd), longestCommand), "put the steps into a file")
	case in.TimeoutMs != nil && *in.TimeoutMs <= 0, in.MaxOutputChars != nil && *in.MaxOutputChars <= 0:
		return r, executor.BadArguments(call, errors.New("a limit is not above zero"), "leave it out for the usual one")
	}
	r.limit(in)
	if r.cwd, err = e.cwd(call, in.Cwd, r.settings.AllowAnyCwd); err != nil {
		return r, err
	}
	if r.line, err = parse(r.cmd); err != nil {
		return r, executor.BadArguments(call, err, "check its quotes and brackets there")
	}
	if r.hidden = e.gitRuns(r); r.hidden != "" {
		found := "git, which may run a program that the project names: " + r.hidden
		if r.line.opaque == "" {
			r.line.opaque = found
		}
		if r.line.compound == "" {
			r.line.compound = found
		}
	}
	if r.settings.Mode == Allowlist {
		return r, r.allowed(call, e.cfg.Prefix)
	}
	return r, nil
}

// gitRuns returns the repository setting that makes git in this line run other
// programs.
func (e *Executor) gitRuns(r request) string {
	dir := r.cwd
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(e.cfg.Workspace, dir)
	}
	return executor.GitPrograms(r.line.commands, e.cfg.Workspace, dir)
}

// limit takes the least of what is asked for, what is set, and the cap.
func (r *request) limit(in input) {
	r.timeout, r.chars = r.settings.Timeout, r.settings.MaxOutputChars
	if r.timeout <= 0 {
		r.timeout = timeoutDefault
	}
	if r.chars <= 0 {
		r.chars = outputDefault
	}
	r.timeout, r.chars = min(r.timeout, timeoutCap), min(r.chars, outputCap)
	if in.TimeoutMs != nil && *in.TimeoutMs < int64(r.timeout/time.Millisecond) {
		r.timeout = time.Duration(*in.TimeoutMs) * time.Millisecond
	}
	if in.MaxOutputChars != nil {
		r.chars = min(r.chars, *in.MaxOutputChars)
	}
}

// allowed refuses, in the mode allowlist, all but one simple command with an
// allowed beginning.
func (r *request) allowed(call capability.Call, prefix func([]string) []string) error {
	if found := r.line.compound; found != "" {
		return denied(call, "tools.shell.mode", fmt.Errorf("the mode allowlist runs one plain command without a shell, but this line contains %s", found),
			"write one program with its arguments, or make several calls; "+allowing(r.settings.By, "mode: full"))
	}
	argv := r.line.commands[0]
	for _, prefix := range r.settings.AllowedPrefixes {
		if begins(argv, strings.Fields(prefix)) {
			return nil
		}
	}
	more := argv[:1]
	if prefix != nil {
		more = prefix(argv)
	}
	return denied(call, "tools.shell.allowedPrefixes", errors.New("the command is not on the list of allowed ones"),
		"allowed are: "+list(r.settings.AllowedPrefixes)+"; "+widening(r.settings, strings.Join(more, " ")))
}

func list(prefixes []string) string {
	if len(prefixes) == 0 {
		return "none"
	}
	return strings.Join(prefixes, ", ")
}

// begins reports whether a command's first arguments are those of a prefix,
// each as a whole.
func begins(argv, prefix []string) bool {
	if len(prefix) == 0 || len(argv) < len(prefix) {
		return false
	}
	for i, want := range prefix {
		if argv[i] == want {
			continue
		}
		// A star never stands for the program, or for nothing.
		if i == 0 || !strings.Contains(want, "*") {
			return false
		}
		if ok, err := path.Match(strings.ReplaceAll(want, "/", "\x00"), strings.ReplaceAll(argv[i], "/", "\x00")); err != nil || !ok {
			return false
		}
	}
	return true
}

func denied(call capability.Call, rule string, cause error, fix string) error {
	return &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: rule, Err: cause, Fix: fix}
}

// cwd returns the folder in the one spelling that rules and handles use.
func (e *Executor) cwd(call capability.Call, given string, anywhere bool) (string, error) {
	if given == "" {
		return ".", nil
	}
	if filepath.IsAbs(given) {
		clean := filepath.Clean(given)
		rel, err := filepath.Rel(e.cfg.Workspace, clean)
		if err == nil && filepath.IsLocal(rel) {
			given = filepath.ToSlash(rel)
		} else if anywhere && clean == given {
			return given, nil
		} else {
			return "", outside(call)
		}
	}
	name, err := executor.CleanPath(given)
	if errors.Is(err, executor.ErrTraversal) {
		return "", denied(call, "tools.shell.allowAnyCwd", err, "name a folder of the workspace")
	}
	if err != nil {
		return "", executor.BadArguments(call, fmt.Errorf("cwd: %w", err), "")
	}
	return name, nil
}

func outside(call capability.Call) error {
	return denied(call, "tools.shell.allowAnyCwd", errors.New("the folder is outside the workspace"),
		"name a folder of the workspace; "+allowing("", "allowAnyCwd: true"))
}

// Facts returns the commands of the line. In the mode full the line may hold
// more than can be told; then Opaque says so.
func (e *Executor) Facts(ctx context.Context, call capability.Call, _ *capability.Capability) (executor.Facts, error) {
	r, err := e.read(call)
	if err != nil {
		return executor.Facts{}, err
	}
	code := e.code(r)
	f := executor.Facts{
		Files: code.Files, Unknown: code.Unknown,
		Commands: r.line.commands, Opaque: r.line.opaque, Hidden: r.hidden, Paths: r.line.paths, Required: []string{executor.PermExec},
		Inline: r.chars, WorkDir: r.cwd, Isolation: executor.Planned(ctx, e.cfg.Require, sandbox.Open{}), Secrets: e.cfg.Env,
	}
	if r.settings.Mode == Full {
		f.Line = r.cmd
	}
	for _, p := range r.line.paths {
		if p.Write {
			f.Named = append(f.Named, p.Name) // other programs read what is written there
		}
	}
	if filepath.IsAbs(r.cwd) {
		f.Paths = append(f.Paths, executor.Path{Name: r.cwd, Write: true})
	}
	if e.cfg.Require != sandbox.Off {
		found := e.look(ctx, call, r)
		found.Asks(ctx, e.cfg.Require, &f)
	}
	return f, nil
}

// look finds the guarded files where a line runs, except those it names.
func (e *Executor) look(ctx context.Context, call capability.Call, r request) executor.Survey {
	if e.cfg.Guards == nil {
		return executor.Survey{}
	}
	g := e.cfg.Guards()
	ground := executor.Ground{Dir: e.cfg.Workspace, Write: true}
	dir := r.cwd
	if filepath.IsAbs(r.cwd) {
		ground.Dir, dir = r.cwd, ""
	}
	var agreed []executor.Path
	if g != nil {
		agreed = slices.Concat(r.line.paths, g.Named(dir, r.line.commands))
	}
	grounds := []executor.Ground{ground}
	if home := e.home(call); home != "" {
		grounds = append(grounds, executor.Ground{Dir: home, Write: true, As: "~", Top: true})
	}
	return executor.Look(ctx, g, e.cfg.Workspace, grounds, agreed)
}

// code returns what decides what a line does.
func (e *Executor) code(r request) executor.Code {
	dir := r.cwd
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(e.cfg.Workspace, dir)
	}
	t := executor.Task{Commands: r.line.commands, Dirs: []string{dir}}
	if r.settings.Mode == Full {
		t.Shell, t.Text, t.Opaque = "/bin/sh", r.cmd, r.line.opaque
		for _, p := range r.line.paths {
			if p.Write {
				t.Written = append(t.Written, p.Name)
			}
		}
	}
	return e.programs.Code(t)
}

// Invoke runs the line. Its failing, and its being stopped, are results.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, missing, err := e.prepare(call, e.cfg.Getenv)
	if err != nil || missing.Failed {
		return missing, err
	}
	defer p.work.Close()
	spec, err := e.spec(ctx, call, p)
	if err != nil {
		return capability.Result{}, err
	}
	if !filepath.IsAbs(p.cwd) {
		spec.Dir = p.cwd
	}
	found := e.look(ctx, call, p.request)
	if call, err = found.Decided(ctx, call, e.cfg.Require); err != nil {
		return capability.Result{}, err
	}
	held := found.Hold(ctx, &spec)
	files := e.code(p.request).Files
	if err := executor.SameCode(call, files); err != nil {
		return capability.Result{}, err
	}
	outcome, err := sandbox.Run(ctx, spec)
	if err != nil {
		return capability.Result{}, executor.Refused(call, err)
	}
	out := executor.Ending{}.Result(ctx, outcome) // the runner shows Facts.Inline of it and keeps the rest
	out.Meta["tool"], out.Meta["mode"], out.Meta["cwd"] = "shell", string(p.settings.Mode), p.cwd
	out.Meta["program"], out.Meta["program_sha256"] = p.program.Path, p.program.SHA256
	found.Tell(&out, held, e.look(ctx, call, p.request))
	executor.Changed(&out, files, e.code(p.request).Files)
	return out, nil
}

// home returns the folder for what tools keep for themselves, without links, or
// "" if there is none.
func (e *Executor) home(call capability.Call) string {
	if e.cfg.Home == nil {
		return ""
	}
	return executor.Resolved(e.cfg.Home(call.Principal))
}

func (e *Executor) spec(ctx context.Context, call capability.Call, p prepared) (sandbox.Spec, error) {
	s := sandbox.Spec{Path: p.program.Path, Args: p.argv, Work: p.work, Env: p.env, Limits: e.cfg.Limits, Require: e.cfg.Require}
	executor.Live(call, &s)
	s.Limits.Wall = p.timeout
	if home := e.home(call); home != "" {
		if err := os.MkdirAll(home, 0o700); err != nil {
			return s, &capability.Error{Kind: capability.Unavailable, Op: "make a home directory for", Target: string(call.Target), Err: err}
		}
		s.Env, s.Write = append(s.Env, "HOME="+home), append(s.Write, home)
	}
	if e.cfg.Network != nil {
		way, err := e.cfg.Network(ctx, call)
		if err != nil {
			return s, err
		}
		s.Egress = way
	}
	return s, nil
}
