package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"ken/internal/programs"
	"ken/internal/run/executor"
)

// A line is a command line, taken apart.
type line struct {
	// commands are all simple commands in it, those inside substitutions too.
	// An argument that only a shell could work out stands there as written.
	commands [][]string

	// opaque names the first thing that makes the line do more than commands
	// show; "" when there is none.
	opaque string

	// compound names the first thing that makes the line more than one simple
	// command with fixed arguments; "" when it is one.
	compound string

	paths []executor.Path // files that redirections name
}

const (
	mostCommands = 256
	mostNodes    = 20_000
)

// parse takes a command line apart. An error says what is wrong and where; it
// repeats nothing of the line.
func parse(cmd string) (line, error) {
	var l line
	if !utf8.ValidString(cmd) {
		return l, errors.New("cmd is not UTF-8")
	}
	if i := strings.IndexFunc(cmd, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
		return l, fmt.Errorf("cmd contains a control character at byte %d", i)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(cmd), "")
	if err != nil {
		return l, position(err)
	}
	w := walker{line: &l, source: cmd}
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(cmd), ""); err != nil {
		w.found(file, "a construct that not every shell knows")
	}
	nodes := 0
	syntax.Walk(file, func(n syntax.Node) bool {
		nodes++
		if n != nil && nodes <= mostNodes {
			w.node(n)
		}
		return nodes <= mostNodes
	})
	if nodes > mostNodes || len(l.commands) > mostCommands {
		return line{}, errors.New("cmd contains too many commands")
	}
	if len(l.commands) == 0 && l.compound == "" {
		return l, errors.New("cmd contains no command")
	}
	return l, nil
}

// position returns a parse error with its position but without the text there.
func position(err error) error {
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		return fmt.Errorf("cmd cannot be read: line %d, column %d", e.Pos.Line(), e.Pos.Col())
	}
	if e, ok := errors.AsType[syntax.LangError](err); ok {
		return fmt.Errorf("cmd cannot be read: line %d, column %d", e.Pos.Line(), e.Pos.Col())
	}
	return errors.New("cmd cannot be read")
}

// A walker collects what a line holds.
type walker struct {
	line   *line
	source string
}

// found notes what hides something from a reader of the commands.
func (w *walker) found(n syntax.Node, what string) {
	if w.line.opaque == "" {
		w.line.opaque = at(n, what)
	}
	w.several(n, what)
}

// several notes what takes more than one simple command, all of them in sight.
func (w *walker) several(n syntax.Node, what string) { w.severalAt(n.Pos(), what) }

func (w *walker) severalAt(pos syntax.Pos, what string) {
	if w.line.compound == "" {
		w.line.compound = atPos(pos, what)
	}
}

func at(n syntax.Node, what string) string { return atPos(n.Pos(), what) }

func atPos(pos syntax.Pos, what string) string {
	return fmt.Sprintf("%s at line %d, column %d", what, pos.Line(), pos.Col())
}

func (w *walker) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.File:
		w.statements(n)
	case *syntax.Stmt:
		w.statement(n)
	case *syntax.CallExpr:
		w.call(n)
	case *syntax.Comment:
		w.several(n, "a comment")
	case *syntax.Redirect:
		w.redirect(n)
	case *syntax.Assign:
		w.found(n, "an assignment")
	case *syntax.CmdSubst:
		w.found(n, "a command substitution")
	case *syntax.ProcSubst:
		w.found(n, "a process substitution")
	case *syntax.ParamExp:
		w.found(n, "a variable")
	case *syntax.ArithmExp:
		w.found(n, "an arithmetic expansion")
	case *syntax.ExtGlob:
		w.found(n, "a pattern")
	case *syntax.BinaryCmd:
		w.severalAt(n.OpPos, "the operator "+n.Op.String())
	case *syntax.Subshell:
		w.several(n, "a subshell")
	case *syntax.Block:
		w.several(n, "a block")
	case *syntax.FuncDecl:
		w.found(n, "a function")
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		w.several(n, "a loop or a condition")
	case *syntax.ArithmCmd, *syntax.TestClause, *syntax.DeclClause, *syntax.LetClause, *syntax.TimeClause, *syntax.CoprocClause, *syntax.TestDecl:
		w.found(n, "a shell construct")
	}
}

func (w *walker) statements(f *syntax.File) {
	if len(f.Stmts) > 1 {
		w.several(f.Stmts[1], "a second command")
	}
}

func (w *walker) statement(s *syntax.Stmt) {
	switch {
	case s.Background || s.Disown:
		w.several(s, "a command in the background (&)")
	case s.Negated:
		w.several(s, "a negation (!)")
	case s.Coprocess:
		w.found(s, "a coprocess")
	case s.Semicolon.IsValid():
		w.several(s, "the separator ;")
	}
}

func (w *walker) redirect(r *syntax.Redirect) {
	w.found(r, "the redirection "+r.Op.String())
	if r.Word == nil || r.Hdoc != nil || r.Op == syntax.WordHdoc || r.Op == syntax.DplIn || r.Op == syntax.DplOut {
		return
	}
	name, what := w.word(r.Word)
	if what != "" || name == "" || name == "/dev/null" {
		return
	}
	w.line.paths = append(w.line.paths, executor.Path{Name: name, Write: r.Op != syntax.RdrIn})
}

func (w *walker) call(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	var argv []string
	for _, word := range c.Args {
		text, what := w.word(word)
		if what != "" {
			w.found(word, what)
		}
		argv = append(argv, text)
	}
	w.line.commands = append(w.line.commands, argv)
	if len(w.line.commands) > 1 {
		w.several(c, "a second command")
	}
	if runsText(argv) {
		w.found(c, "a command that runs its arguments as code")
	}
}

// runsText reports whether a program takes code, or another command, from its
// arguments, so that the line does more than it shows.
func runsText(argv []string) bool {
	name := programs.Name(argv[0])
	switch {
	case name == "source" || name == ".", programs.HidesCommand(name):
		return true
	case name == "sed" || name == "gsed" || strings.HasSuffix(name, "awk"): // their code is an argument like any other: the rules cover none of it
		return false
	}
	return programs.Is(name, programs.Interpreter) && !programs.Is(name, programs.Project) && takesCode(argv[1:])
}

// takesCode reports whether an interpreter reads code from its arguments, or
// from a pipe because it is given no file.
func takesCode(args []string) bool {
	for _, arg := range args {
		if len(arg) < 2 || arg[0] != '-' {
			return arg == "-"
		}
		long := strings.HasPrefix(arg, "--")
		if long && (strings.Contains(arg, "eval") || strings.Contains(arg, "command") || strings.Contains(arg, "print")) ||
			!long && strings.ContainsAny(arg, "cCeErRpsBi") {
			return true
		}
	}
	return !slices.Contains(args, "--version")
}

// word returns the one string that a word stands for. When a shell would have to
// work it out, it gives the text as written, and says what of it.
func (w *walker) word(word *syntax.Word) (text, what string) {
	var b strings.Builder
	for i, part := range word.Parts {
		t, odd := w.part(part, i == 0)
		b.WriteString(t)
		if odd != "" && what == "" {
			what = odd
		}
	}
	if what != "" {
		return w.source[min(int(word.Pos().Offset()), len(w.source)):min(int(word.End().Offset()), len(w.source))], what
	}
	return b.String(), ""
}

func (w *walker) part(part syntax.WordPart, first bool) (text, what string) {
	switch part := part.(type) {
	case *syntax.Lit:
		return literal(part.Value, first)
	case *syntax.SglQuoted:
		if part.Dollar {
			return "", "a quote with $"
		}
		return part.Value, ""
	case *syntax.DblQuoted:
		if part.Dollar {
			return "", "a quote with $"
		}
		var b strings.Builder
		for _, inner := range part.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				return "", expansion(inner)
			}
			b.WriteString(quoted(lit.Value))
		}
		return b.String(), ""
	}
	return "", expansion(part)
}

func expansion(part syntax.WordPart) string {
	switch part.(type) {
	case *syntax.CmdSubst:
		return "a command substitution"
	case *syntax.ProcSubst:
		return "a process substitution"
	case *syntax.ParamExp:
		return "a variable"
	case *syntax.ArithmExp:
		return "an arithmetic expansion"
	}
	return "a pattern"
}

// literal takes the backslashes off unquoted text, and says where a shell
// would put other words in its place.
func literal(s string, first bool) (text, what string) {
	if first && strings.HasPrefix(s, "~") {
		return s, "a home folder (~), which only a shell expands"
	}
	if s == "[" {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
			if i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[':
			return s, "a pattern, which only a shell expands (quote it to mean the character)"
		case '{':
			return s, "a brace, which only a shell expands (quote it to mean the character)"
		case '`', '$':
			return s, "a substitution"
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// quoted takes the backslashes off text in double quotes, where they protect
// only a few characters.
func quoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
