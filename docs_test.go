package ken_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestTroubleshooting: every error text that docs/troubleshooting.md quotes is in
// the source.
func TestTroubleshooting(t *testing.T) {
	testkit.CI(t, "it reads the source")
	page, err := os.ReadFile("docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var quoted []string
	for _, m := range regexp.MustCompile("(?m)^(?:### |Also )`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		quoted = append(quoted, m[1])
	}
	if len(quoted) < 30 {
		t.Fatalf("docs/troubleshooting.md quotes %d texts: %q", len(quoted), quoted)
	}
	texts := sourceTexts(t, os.DirFS("."))
	for _, q := range quoted {
		if !quotes(texts, q) {
			t.Errorf("docs/troubleshooting.md quotes %q, and no text in the source has it", q)
		}
	}
}

// TestTroubleshootingCatches checks which quotations are found.
func TestTroubleshootingCatches(t *testing.T) {
	texts := []string{"listen on …: another program uses this port; …", "ken catalog show … lists its arguments"}
	for quoted, want := range map[string]bool{
		"another program uses this port":           true,
		"listen on …: another program":             true,
		"ken catalog show … lists its arguments":   true,
		"uses this port; …":                        true,
		"another program uses the port":            false,
		"another program … lists its arguments":    false,
		"ken catalog show … lists its arguments …": false,
	} {
		if got := quotes(texts, quoted); got != want {
			t.Errorf("quotes(%q) = %v, want %v", quoted, got, want)
		}
	}
}

// quotes reports whether a text has the words of a quotation, in which … stands
// for what is filled in.
func quotes(texts []string, quoted string) bool {
	for _, text := range texts {
		if strings.Contains(text, quoted) {
			return true
		}
	}
	return false
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?(\[[0-9]+\])?[a-zA-Z]`)

// sourceTexts returns the texts in the code that is not a test. What is filled in
// is … in them: verbs of formats, and values between two texts.
func sourceTexts(t *testing.T, root fs.FS) []string {
	t.Helper()
	var texts []string
	err := fs.WalkDir(root, "internal", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BinaryExpr, *ast.BasicLit:
				if text := textOf(n.(ast.Expr)); strings.Trim(text, "… ") != "" {
					texts = append(texts, verb.ReplaceAllString(text, "…"))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// textOf returns the value of a text or of a sum of texts.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return strings.ReplaceAll(textOf(e.X)+textOf(e.Y), "……", "…")
		}
	}
	return "…"
}
