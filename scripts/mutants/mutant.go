package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one small change of the product.
type mutant struct {
	file   string
	line   int
	what   string // what is changed
	edits  []edit // with %d for the number
	number int    // from 1
	killer string // the trial that noticed it
}

// An edit puts text before the byte at an offset of a file.
type edit struct {
	at   int
	text string
	span int // how many bytes what it opens has
}

func (m *mutant) String() string { return fmt.Sprintf("%s:%d %s", m.file, m.line, m.what) }

func (m *mutant) verdict(trials int) string {
	switch {
	case m.killer != "":
		return fmt.Sprintf("noticed by %s: %s", m.killer, m)
	case trials == 0:
		return fmt.Sprintf("reached by no test: %s", m)
	}
	return fmt.Sprintf("not noticed by %d: %s", trials, m)
}

// choose returns n of all changes that could be made, by the seed. A change keeps
// its place in the order as long as its line and function do.
func choose(root string, files []string, n int, seed int64) ([]*mutant, error) {
	type ranked struct {
		m    *mutant
		rank uint64
	}
	var all []ranked
	for _, name := range files {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		list, err := mutantsOf(name, src)
		if err != nil {
			return nil, err
		}
		seen := map[string]int{}
		for _, m := range list {
			seen[m.what]++
			h := fnv.New64a()
			fmt.Fprintln(h, seed, name, m.what, seen[m.what])
			all = append(all, ranked{m, mix(h.Sum64())})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	var out []*mutant
	for _, r := range all[:min(n, len(all))] {
		out = append(out, r.m)
	}
	return out, nil
}

// mix spreads the bits of a hash: FNV's high bits change little with the last bytes.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// mutantsOf lists the changes that can be made to a file: conditions are negated,
// operands of && and || taken as given, statements left out, errors forgotten, and
// true and false returned for each other.
func mutantsOf(name string, src []byte) ([]*mutant, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []*mutant
	at := func(p token.Pos) int { return set.Position(p).Offset }
	text := func(n ast.Node) string {
		return strings.Join(strings.Fields(string(src[at(n.Pos()):at(n.End())])), " ")
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "init" {
			continue
		}
		add := func(n ast.Node, what string, edits ...edit) {
			out = append(out, &mutant{file: name, line: set.Position(n.Pos()).Line, what: f.Name.Name + ": " + what, edits: edits})
		}
		wrap := func(n ast.Node, before, after string) []edit {
			return []edit{{at(n.Pos()), before, int(n.End() - n.Pos())}, {at(n.End()), after, 0}}
		}
		leaveOut := func(s ast.Stmt) {
			add(s, "leave out "+text(s), wrap(s, "if !mutant.On(%d) { ", " }")...)
		}
		errs := returnsError(f.Type)
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false // its results are another function's
			case *ast.IfStmt:
				add(n.Cond, "negate "+text(n.Cond), wrap(n.Cond, "mutant.On(%d) != (", ")")...)
			case *ast.BinaryExpr:
				switch n.Op {
				case token.LAND:
					add(n, "true for "+text(n.X)+" && …", wrap(n.X, "(mutant.On(%d) || ", ")")...)
					add(n, "true for … && "+text(n.Y), wrap(n.Y, "(mutant.On(%d) || ", ")")...)
				case token.LOR:
					add(n, "false for "+text(n.X)+" || …", wrap(n.X, "(!mutant.On(%d) && (", "))")...)
					add(n, "false for … || "+text(n.Y), wrap(n.Y, "(!mutant.On(%d) && (", "))")...)
				}
			case *ast.BlockStmt:
				for _, s := range n.List {
					statement(s, leaveOut)
				}
			case *ast.CaseClause:
				for _, s := range n.Body {
					statement(s, leaveOut)
				}
			case *ast.ReturnStmt:
				if len(n.Results) == 0 {
					break
				}
				last, ok := n.Results[len(n.Results)-1].(*ast.Ident)
				switch {
				case !ok:
				case last.Name == "err" && errs:
					add(n, "forget the error of "+text(n), edit{at(n.Pos()), "if mutant.On(%d) { err = nil }; ", 0})
				case last.Name == "true":
					add(n, text(n)+" is false", edit{at(last.Pos()), "!mutant.On(%d) && ", 0})
				case last.Name == "false":
					add(n, text(n)+" is true", edit{at(last.Pos()), "mutant.On(%d) || ", 0})
				}
			}
			return true
		})
	}
	return out, nil
}

func returnsError(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) == 0 {
		return false
	}
	id, ok := t.Results.List[len(t.Results.List)-1].Type.(*ast.Ident)
	return ok && id.Name == "error"
}

// statement calls leaveOut for a statement that compiles left out: a call, or an
// assignment to what was there before. Locks and their ends stay: without them a
// test hangs, which says nothing.
func statement(s ast.Stmt, leaveOut func(ast.Stmt)) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			if slices.Contains(strings.Fields("Lock Unlock RLock RUnlock Add Done Wait"), f.Sel.Name) {
				return
			}
		case *ast.Ident:
			if f.Name == "panic" {
				return
			}
		}
		leaveOut(s)
	case *ast.AssignStmt:
		if s.Tok == token.ASSIGN && !slices.ContainsFunc(s.Lhs, isBlank) {
			leaveOut(s)
		}
	case *ast.IncDecStmt:
		leaveOut(s)
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// rewrite returns a file with changes compiled in.
func rewrite(root, name string, list []*mutant) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, m := range list {
		for _, e := range m.edits {
			text := e.text
			if strings.Contains(text, "%d") {
				text = fmt.Sprintf(text, m.number)
			}
			edits = append(edits, edit{e.at, text, e.span})
		}
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	edits = append(edits, edit{set.Position(file.Name.End()).Offset, "; import mutant \"ken/internal/mutant\"", 0})
	// What ends at an offset is closed before what begins there is opened; of two
	// that begin there the longer one is opened first.
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Or(cmp.Compare(b2i(!closes(a)), b2i(!closes(b))), cmp.Compare(b.span, a.span))
	})
	var out []byte
	from := 0
	for _, e := range edits {
		out = append(append(out, src[from:e.at]...), e.text...)
		from = e.at
	}
	return append(out, src[from:]...), nil
}

func closes(e edit) bool { return strings.HasPrefix(e.text, ")") || strings.HasPrefix(e.text, " }") }
