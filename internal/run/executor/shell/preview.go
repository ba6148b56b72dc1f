package shell

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/programs"
	"ken/internal/run/executor"
)

var _ executor.Previewer = (*Executor)(nil)

// Preview returns the command line with its risky parts marked.
func (e *Executor) Preview(_ context.Context, call capability.Call, _ *capability.Capability) ([]executor.Shown, error) {
	r, err := e.read(call)
	if err != nil {
		return nil, err
	}
	return []executor.Shown{{Name: "command", Text: r.cmd, Marks: marks(r.cmd, func(name string) bool { return e.outside(r.cwd, name) })}}, nil
}

// outside reports whether a name is that of a file outside the workspace, if a
// command in the folder cwd uses it.
func (e *Executor) outside(cwd, name string) bool {
	if strings.HasPrefix(name, "~") || strings.HasPrefix(name, "$HOME") {
		return true
	}
	if !filepath.IsAbs(name) {
		if !filepath.IsAbs(cwd) {
			cwd = filepath.Join(e.cfg.Workspace, cwd)
		}
		name = filepath.Join(cwd, name)
	}
	rel, err := filepath.Rel(e.cfg.Workspace, name)
	return err != nil || !filepath.IsLocal(rel)
}

// marks returns the risky parts of a command line that parse accepts, in order.
func marks(cmd string, outside func(name string) bool) []executor.Mark {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(cmd), "")
	if err != nil {
		return nil
	}
	m := marker{walker: walker{line: &line{}, source: cmd}, outside: outside}
	syntax.Walk(file, func(n syntax.Node) bool {
		m.node(n)
		return true
	})
	// The longer of two that begin together stays, and takes the reason of what
	// overlaps it.
	coldsort.Stable(m.list, func(a, b executor.Mark) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	var out []executor.Mark
	end := 0
	for _, one := range m.list {
		if one.From >= end && one.To > one.From && one.To <= len(cmd) {
			out = append(out, one)
			end = one.To
		} else if n := len(out); n > 0 && one.From < end && one.Why != runsCode && one.Why != out[n-1].Why {
			out[n-1].Why += "; " + one.Why
		}
	}
	return out
}

// runsCode is the reason for a program that takes code from its arguments, or from a
// pipe.
const runsCode = "runs text as code"

// A marker collects the risky parts of a line.
type marker struct {
	walker  walker
	outside func(name string) bool
	list    []executor.Mark
}

func (m *marker) mark(from, to syntax.Pos, why string) {
	m.list = append(m.list, executor.Mark{From: int(from.Offset()), To: int(to.Offset()), Why: why})
}

// begin marks the first bytes of a node, because what is inside has marks of its own.
func (m *marker) begin(n syntax.Node, size int, why string) {
	from := int(n.Pos().Offset())
	m.list = append(m.list, executor.Mark{From: from, To: from + size, Why: why})
}

func (m *marker) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		m.call(n)
	case *syntax.Redirect:
		m.redirect(n)
	case *syntax.BinaryCmd:
		m.pipe(n)
	case *syntax.CmdSubst:
		size := len("$(")
		if n.Backquotes {
			size = 1
		}
		m.begin(n, size, "runs a command and puts what it writes here")
	case *syntax.ProcSubst:
		m.begin(n, len("<("), "runs a command and passes what it writes as a file")
	case *syntax.Stmt:
		if n.Background && n.Semicolon.IsValid() {
			at := int(n.Semicolon.Offset())
			m.list = append(m.list, executor.Mark{From: at, To: at + 1, Why: "goes on in the background"})
		}
	}
}

func (m *marker) argv(c *syntax.CallExpr) []string {
	var argv []string
	for _, word := range c.Args {
		text, _ := m.walker.word(word)
		argv = append(argv, text)
	}
	return argv
}

func (m *marker) call(c *syntax.CallExpr) {
	argv := m.argv(c)
	if len(argv) == 0 {
		return
	}
	for _, one := range programs.Concerns(argv) {
		word := c.Args[one.Arg]
		m.mark(word.Pos(), word.End(), one.Why)
	}
	if name := programs.Name(argv[0]); runsText(argv) && (!programs.Is(name, programs.Starter) || name == "eval") {
		m.mark(c.Args[0].Pos(), c.Args[0].End(), runsCode)
	}
	if strings.HasPrefix(argv[0], "$") || strings.HasPrefix(argv[0], "`") {
		m.mark(c.Args[0].Pos(), c.Args[0].End(), "runs a program that the line does not name")
	}
	for _, from := range programs.Starts(argv) {
		if name := programs.Name(argv[from]); !programs.Destroys(argv[from:]) || name == "git" || name == "find" {
			continue
		}
		for i, arg := range argv[from+1:] {
			if !strings.HasPrefix(arg, "-") && m.outside(arg) {
				m.mark(c.Args[from+1+i].Pos(), c.Args[from+1+i].End(), "outside the workspace")
			}
		}
	}
}

func (m *marker) redirect(r *syntax.Redirect) {
	if r.Word == nil || r.Hdoc != nil || r.Op == syntax.RdrIn || r.Op == syntax.WordHdoc || r.Op == syntax.DplIn || r.Op == syntax.DplOut {
		return
	}
	name, unclear := m.walker.word(r.Word)
	switch {
	case name == "/dev/null":
	case m.outside(name):
		m.mark(r.OpPos, r.Word.End(), "writes a file outside the workspace")
	case unclear != "":
		m.mark(r.OpPos, r.Word.End(), "writes a file that the line does not name")
	case r.Op != syntax.AppOut && r.Op != syntax.AppAll:
		m.mark(r.OpPos, r.Word.End(), "replaces the file if it is there")
	}
}

// pipe marks a pipe into a program that runs what it reads.
func (m *marker) pipe(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		return
	}
	c, ok := b.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	argv := m.argv(c)
	for _, from := range programs.Starts(argv) {
		if name := programs.Name(argv[from]); programs.Is(name, programs.Interpreter) && runsText(argv[from:]) {
			m.mark(b.OpPos, c.Args[from].End(), "runs what the command before it writes")
			return
		}
	}
}
