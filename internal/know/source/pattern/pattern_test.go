package pattern

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestPatternsCompile compiles every pattern of the packages around this one:
// what is compiled when first used would otherwise panic only there.
func TestPatternsCompile(t *testing.T) {
	var files []string
	err := filepath.WalkDir("..", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".go" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Lazy" {
				return true
			}
			if from, ok := f.X.(*ast.Ident); !ok || from.Name != "pattern" {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: a pattern is not a constant", name)
				return true
			}
			pattern, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n++
			return true
		})
	}
	if n < 20 {
		t.Errorf("%d patterns found, want the two dozen there are", n)
	}
}
