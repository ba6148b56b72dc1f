package ken_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestNoTestJudgesTime: a test passes on a machine of any speed. So no test compares
// time that went by, or sleeps, but in a bubble of testing/synctest, where time is a
// number, and in internal/testkit, whose one limit ends hangs. Benchmarks measure time,
// and docs/bars.txt says what it may be.
func TestNoTestJudgesTime(t *testing.T) {
	testkit.CI(t, "it reads the source")
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, complaint := range judgesTime(t, p, src) {
			t.Error(complaint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func judgesTime(t *testing.T, name string, src []byte) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") || mentions(f, "synctest", "") || mentions(f.Type, "testing", "B") {
			continue
		}
		passed := map[string]bool{} // variables that hold time that went by
		ast.Inspect(f, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
				for i, value := range a.Rhs {
					if v, ok := a.Lhs[i].(*ast.Ident); ok && mentions(value, "time", "Since") && !isCall(value, "append") {
						passed[v.Name] = true
					}
				}
			}
			return true
		})
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if strings.Contains("< <= > >=", n.Op.String()) && (tells(n.X, passed) || tells(n.Y, passed)) {
					out = append(out, fmt.Sprintf("%s: %s judges how long something took: measure it in a benchmark, and give it a bar in docs/bars.txt", set.Position(n.Pos()), f.Name.Name))
				}
			case *ast.SelectorExpr:
				if mentions(n, "time", "Sleep") {
					out = append(out, fmt.Sprintf("%s: %s sleeps: wait for what must come with testkit.Wait", set.Position(n.Pos()), f.Name.Name))
				}
			}
			return true
		})
	}
	return out
}

// mentions reports whether a node has pkg.name in it, or with "" anything of pkg.
func mentions(n ast.Node, pkg, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && x.Name == pkg && (name == "" || s.Sel.Name == name)
		}
		return !found
	})
	return found
}

func isCall(e ast.Expr, name string) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := c.Fun.(*ast.Ident)
	return ok && f.Name == name
}

// tells reports whether an expression depends on time that went by.
func tells(e ast.Expr, passed map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && passed[id.Name]
		return !found
	})
	return found || mentions(e, "time", "Since")
}

// TestNoTestJudgesTimeCatch shows that the rule can fail.
func TestNoTestJudgesTimeCatch(t *testing.T) {
	for body, want := range map[string]bool{
		"if time.Since(x) > y {}":                          true,
		"took := time.Since(x); if y <= took.Seconds() {}": true,
		"time.Sleep(y)":                                    true,
		"t.Log(time.Since(x))":                             false,
		"synctest.Test(t, func(t *testing.T) { time.Sleep(y); _ = time.Since(x) > y })": false,
	} {
		if got := judgesTime(t, "x_test.go", []byte("package x\nfunc TestX(t *testing.T) {"+body+"}")); (len(got) > 0) != want {
			t.Errorf("%s: %q, want a complaint: %v", body, got, want)
		}
	}
}
