// Package files carries out the file tools: read_file, write_to_file,
// apply_diff, list_files and search_files.
//
// Every file is reached through a folder that was opened beforehand, name by
// name, and no symbolic link is followed; so a call can touch the file it names
// or none, whatever happens to the tree between the decision and the effect.
// What may be read and what may be written are scopes of their own.
//
// Reading returns a hash of the whole file; changing an existing file asks for
// it, so no caller overwrites what it has not seen. Results are bounded, say
// what was left out, and say how to go on.
//
// A file named .kenignore at the top of a scope hides what it lists, from all
// five tools; see [Ignore] for what it may hold. While it cannot be read,
// nothing can. What is Ken's own is closed to all five ([Config].Own).
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/run/executor"
)

// Config says what may be reached.
type Config struct {
	// Workspace is the absolute folder at which relative names begin.
	Workspace string

	// ReadOnly takes the right to change the workspace away.
	ReadOnly bool

	// Read and Write are further absolute folders; what can be written can be
	// read. One inside another, or inside the workspace, has its own scope.
	Read, Write []string

	// Guards returns the rules' lists. A search does not look into the files that
	// hold secrets by them, nor into .git. Reading one by name is for policy to
	// decide. It is called for each search, so that a change of the rules counts
	// for the next one. Nil lists none.
	Guards func() executor.Guards

	// Own are Ken's own files and folders, absolute: none of the tools reads,
	// lists, searches or changes what is in them, whatever name leads there.
	// OwnReadable are those in them that may be read and not changed.
	Own, OwnReadable []string

	// MaxFile is the largest file that is searched, changed or hashed. Zero: 8 MiB.
	MaxFile int64

	// MaxChars bounds the text of one result. Zero: 20,000.
	MaxChars int

	// HardLinks lets files be used that have a second name, which may lie
	// outside every scope.
	HardLinks bool
}

const (
	maxFileDefault  = 8 << 20
	maxCharsDefault = 20_000
)

// An Executor works on files. It is safe for concurrent use.
type Executor struct {
	cfg    Config
	scopes []*scope
	own    []mark

	// writing keeps two calls from both finding a file unchanged.
	writing sync.Mutex
}

// New opens the folders.
func New(cfg Config) (*Executor, error) {
	if cfg.MaxFile <= 0 {
		cfg.MaxFile = maxFileDefault
	}
	if cfg.MaxChars <= 0 {
		cfg.MaxChars = maxCharsDefault
	}
	e := &Executor{cfg: cfg, own: newMarks(cfg.Own, cfg.OwnReadable)}
	for _, want := range []struct {
		dirs  []string
		write bool
	}{{[]string{cfg.Workspace}, !cfg.ReadOnly}, {cfg.Write, true}, {cfg.Read, false}} {
		for _, dir := range want.dirs {
			s, err := openScope(dir, cfg.Workspace, want.write)
			if err != nil {
				e.Close()
				return nil, fmt.Errorf("files executor: %w", err)
			}
			s.above = groundAbove(e.marks(), s.real)
			e.scopes = append(e.scopes, s)
		}
	}
	// The innermost scope is the one that counts.
	slices.SortStableFunc(e.scopes, func(a, b *scope) int { return len(b.dir) - len(a.dir) })
	return e, nil
}

// Close releases the folders.
func (e *Executor) Close() error {
	for _, s := range e.scopes {
		s.root.Close()
	}
	return nil
}

// A tool is one of the five.
type tool struct {
	name, description string
	tags, aliases     []string // words to find it by; its former names
	schema            string
	required          []string
	readOnly          bool
	facts             func(e *Executor, call capability.Call) ([]executor.Path, bool, error)
	invoke            carrying
	check             carrying // what must fail; nil: unknown without doing it
}

// carrying is how a tool carries a call out, or looks whether it could.
type carrying func(e *Executor, ctx context.Context, call capability.Call) (capability.Result, error)

func tools() []tool {
	read, write := []string{executor.PermRead}, []string{executor.PermRead, executor.PermWrite}
	return []tool{
		{"read_file", "Read a text file of the workspace, or a part of it. Gives a hash that write_to_file asks for.",
			[]string{"open", "show", "view", "content"}, []string{"read-file"}, readSchema, read, true, (*Executor).readFacts, (*Executor).read, nil},
		{"write_to_file", "Write a whole file: a new one, or an existing one whose hash is given as expect.",
			[]string{"create", "save", "overwrite"}, nil, writeSchema, write, false, (*Executor).writeFacts, (*Executor).write, (*Executor).checkWrite},
		{"apply_diff", "Change files by a unified diff or by search/replace blocks. All of it applies, or nothing.",
			[]string{"edit", "modify", "patch", "replace"}, nil, diffSchema, write, false, (*Executor).diffFacts, (*Executor).applyDiff, (*Executor).checkDiff},
		{"list_files", "List the files of a folder of the workspace.",
			[]string{"directory", "folder", "tree", "ls"}, []string{"list-files"}, listSchema, read, true, (*Executor).listFacts, (*Executor).list, nil},
		{"search_files", "Find lines that match a regular expression in the files of a folder.",
			[]string{"grep", "text", "pattern"}, []string{"search-text"}, searchSchema, read, true, (*Executor).searchFacts, (*Executor).search, nil},
	}
}

// Tools returns the tools that this executor carries out.
func Tools() []executor.Tool {
	var out []executor.Tool
	for _, t := range tools() {
		c := capability.Capability{
			ID: capability.MakeID(capability.KindTool, t.name), Kind: capability.KindTool, Name: t.name, Category: "files",
			Description: t.description, Tags: t.tags, Aliases: t.aliases, Permissions: t.required, Run: &capability.Recipe{Runner: "files." + t.name},
			Effects: capability.Effects{ReadOnly: capability.HintOf(t.readOnly), OpenWorld: capability.No},
		}
		out = append(out, executor.Tool{Capability: c, Detail: capability.Detail{Schema: json.RawMessage(t.schema)}})
	}
	return out
}

func find(call capability.Call) (tool, error) {
	_, name, _ := strings.Cut(string(call.Target), ":")
	for _, t := range tools() {
		if t.name == name {
			return t, nil
		}
	}
	return tool{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(call.Target), Err: errors.New("not one of the file tools")}
}

// Facts returns every file that the call names, those inside a diff too.
func (e *Executor) Facts(_ context.Context, call capability.Call, _ *capability.Capability) (executor.Facts, error) {
	t, err := find(call)
	if err != nil {
		return executor.Facts{}, err
	}
	paths, destructive, err := t.facts(e, call)
	if err != nil {
		return executor.Facts{}, err
	}
	return executor.Facts{Paths: paths, Destructive: destructive, Required: t.required}, nil
}

// Invoke carries a call out.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	t, err := find(call)
	if err != nil {
		return capability.Result{}, err
	}
	return e.carry(ctx, call, t.name, t.invoke)
}

func (e *Executor) carry(ctx context.Context, call capability.Call, name string, how carrying) (capability.Result, error) {
	if err := ctx.Err(); err != nil {
		return capability.Result{}, stopped(call, err)
	}
	r, err := how(e, ctx, call)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = stopped(call, ctx.Err())
		}
		return capability.Result{}, err
	}
	if r.Meta == nil {
		r.Meta = map[string]string{}
	}
	r.Meta["tool"], r.Meta["isolation"] = name, `{"profile":"in-process"}`
	if r.Meta["truncated"] == "" {
		r.Meta["truncated"] = "false"
	}
	return r, nil
}

func stopped(call capability.Call, err error) error {
	kind := capability.Unavailable
	if errors.Is(err, context.DeadlineExceeded) {
		kind = capability.Timeout
	}
	return &capability.Error{Kind: kind, Op: "call", Target: string(call.Target), Err: err}
}

// answer makes a result of what is to be known and, after it, a text.
func answer(about any, text string, truncated bool) capability.Result {
	raw, err := json.Marshal(about)
	if err != nil {
		raw = []byte("{}") // plain structs: it cannot fail
	}
	r := capability.Result{Parts: []capability.Part{{JSON: raw, MIME: "application/json"}}, Meta: map[string]string{"truncated": fmt.Sprint(truncated)}}
	if text != "" {
		r.Parts = append(r.Parts, capability.Part{Text: text, MIME: "text/plain; charset=utf-8"})
	}
	return r
}

// failed is a failure that a model can read and mend.
func failed(format string, args ...any) capability.Result {
	return capability.Result{Failed: true, Parts: []capability.Part{{Text: fmt.Sprintf(format, args...)}}}
}

func denied(op, name, rule string, cause error, fix string) error {
	return &capability.Error{Kind: capability.Denied, Op: op, Target: name, Rule: rule, Err: cause, Fix: fix}
}

// trouble turns what went wrong with a file into a result or an error: a file
// that is missing is something a model can mend, one that may not be touched is
// a refusal.
func trouble(op string, p place, err error) (capability.Result, error) {
	var own *capability.Error
	var link *executor.LinkError
	switch {
	case errors.As(err, &own):
		return capability.Result{}, err
	case errors.As(err, &link):
		return capability.Result{}, denied(op, p.shown, "files.links", errors.New("the path contains a symbolic link, and Ken does not follow links"), leads(p, link))
	case errors.Is(err, fs.ErrNotExist):
		return failed("%s not found; list_files shows the files", p.shown), nil
	case errors.Is(err, fs.ErrPermission):
		return failed("%s: the system does not allow it", p.shown), nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return capability.Result{}, err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // without the folders above
	}
	return failed("%s: %v", p.shown, err), nil
}

// leads says where a link goes, as far as that is inside.
func leads(p place, link *executor.LinkError) string {
	to := path.Join(path.Dir(link.Name), filepath.ToSlash(link.Target))
	if clean, err := executor.CleanPath(to); err == nil && !path.IsAbs(link.Target) {
		return "name " + p.scope.shown(clean) + " itself"
	}
	return "the path leads outside the workspace; name a file of the workspace"
}
