package ken_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// A layer is a package, or with /... a folder of packages that may import each
// other, and the packages of this module that it may import. Imports made only by
// tests do not count.
type layer struct {
	packages string
	may      string // names and folders, apart by spaces; all = every earlier line
}

const (
	words  = "capability llm plugin " // what everybody says
	ground = "internal/address internal/bytesize internal/coldsort internal/dirs internal/duration internal/envelope internal/fileerror internal/glob internal/jsonappend internal/jsonvalid internal/language internal/lazy internal/objectstore internal/packagefiles internal/permission internal/procid internal/programs internal/schema internal/secret internal/secret/detect internal/serverenv internal/spelling internal/store internal/tokenizer internal/tracecontext internal/untrusted internal/wholefile internal/yamldoc internal/yamledit "
	all    = "..."
)

// layers is the order of all packages, lowest first. A package imports only
// packages of earlier lines, whatever its own line allows. A new package needs a
// line here.
var layers = []layer{
	// The ground floor: words. See also stdOnly.
	{"capability", ""},
	{"llm", ""},
	{"llm/llmtest", "llm"},
	{"plugin", "capability llm"},

	// What every wing stands on. They import each other only as their line says.
	{"internal/spelling", ""},
	{"internal/yamldoc", "internal/spelling"},
	{"internal/yamledit", "internal/yamldoc"},
	{"internal/untrusted", "capability"},
	{"internal/tokenizer", ""},
	{"internal/tracecontext", ""},
	{"internal/language", ""},
	{"internal/glob", ""},
	{"internal/permission", ""},
	{"internal/jsonappend", ""},
	{"internal/jsonvalid", ""},
	{"internal/coldsort", ""},
	{"internal/duration", ""},
	{"internal/lazy", ""},
	{"internal/memory", ""},
	{"internal/packagefiles", ""},
	{"internal/procid", ""},
	{"internal/programs", ""},
	{"internal/serverenv", ""},
	{"internal/envelope", "capability internal/jsonvalid internal/untrusted"},
	{"internal/address", ""},
	{"internal/bytesize", ""},
	{"internal/dirs", "capability"},
	{"internal/fileerror", "capability"},
	{"internal/wholefile", ""},
	{"internal/secret", "capability internal/coldsort internal/wholefile"},
	{"internal/objectstore", "capability"},
	{"internal/secret/detect", ""},
	{"internal/schema", "capability"},
	{"internal/store", ""},
	{"internal/backup", ""},
	{"web", ""},

	// Know: what exists.
	{"internal/know/source/...", words + ground},
	{"internal/know/embed", words + ground},
	{"internal/know/embed/pack", "internal/know/embed"},
	{"internal/know/embed/remote", words + ground},
	{"internal/know/reader", words + ground + "internal/know/embed"},
	{"internal/know/reader/pack", "internal/know/reader"},
	{"internal/know/index/...", words + ground + "internal/know/..."},
	{"internal/know/catalog", words + ground},

	// Govern: what may happen, and what did.
	{"internal/govern/policy", words + "internal/address internal/glob internal/permission internal/programs"}, // pure: no store, no files, no syntax
	{"internal/govern/policyfile", words + "internal/spelling internal/yamldoc internal/govern/policy"},
	{"internal/config/orchestration", words + ground + "internal/govern/policy"},
	{"internal/config", words + ground + "internal/config/orchestration internal/govern/policy internal/govern/policyfile"},
	{"internal/config/sample", "internal/config"},
	{"internal/config/sources", words + ground + "internal/config internal/know/..."},
	{"internal/govern/reload", words + ground + "internal/govern/policy internal/config"},
	{"internal/govern/shared", words + ground},
	{"internal/govern/quota", "internal/store"},
	{"internal/govern/audit", words + ground + "internal/govern/policy"},
	{"internal/govern/auditshare", words + ground + "internal/govern/audit"},
	{"internal/govern/redaction", words + ground + "internal/govern/audit"},
	{"internal/govern/approval", words + ground + "internal/govern/policy internal/govern/audit"},
	{"internal/govern/approval/preview", "capability"},
	{"internal/govern/trace", words + ground + "internal/govern/policy"},
	{"internal/govern/review", words + ground + "internal/govern/policy internal/govern/audit"},
	{"internal/govern/pin", words + ground + "internal/govern/policy internal/govern/audit"},
	{"internal/govern/extensions", words + ground + "internal/know/catalog internal/govern/audit internal/govern/policy internal/govern/review"},
	{"internal/connect/permission", words + ground},
	{"internal/connect/places", ""},
	{"internal/connect/yamltable", "internal/yamldoc internal/yamledit"},
	{"internal/connect", words + ground + "internal/connect/permission internal/connect/places internal/connect/yamltable"},

	// Find: what matters now.
	{"internal/find/ranking", words + ground + "internal/know/catalog internal/know/index internal/know/embed"},
	{"internal/find/card", words + ground},
	{"internal/find/graph", words + ground + "internal/know/catalog"},
	{"internal/find/show", words + ground + "internal/know/catalog"},
	{"internal/find/discover", words + ground + "internal/know/... internal/govern/policy internal/find/..."},
	{"internal/find/outcome", words + ground + "internal/find/discover"},
	{"internal/find/tune", words + ground + "internal/config internal/find/..."},
	{"internal/find/vectors", words + ground + "internal/config internal/know/... internal/find/ranking"},
	{"internal/find/eval", words + ground + "internal/know/... internal/find/..."},
	{"internal/find/checkup", words + ground + "internal/know/index internal/find/eval internal/find/outcome"},

	// Run: from a call to its effect.
	{"internal/run/sandbox/confine", ""}, // what the helper process runs: it stays light
	{"internal/run/sandbox", "internal/duration internal/run/sandbox/confine"},
	{"internal/run/sandbox/egress", "internal/address"},
	{"internal/run/result", words + ground},
	{"internal/run/executor/...", words + ground + "internal/run/sandbox internal/run/sandbox/egress internal/run/result"},
	{"internal/run/mcpgateway/...", words + ground + "internal/know/... internal/govern/pin internal/run/sandbox internal/run/sandbox/egress internal/run/executor"},
	{"internal/run/mcpservers/...", words + ground + "internal/config internal/connect internal/govern/... internal/know/... internal/run/mcpgateway/... internal/run/sandbox"},
	{"internal/run/grants", words + ground + "internal/config internal/govern/policy internal/govern/reload internal/run/executor internal/run/executor/process"},
	{"internal/run/hook", words + ground + "internal/run/sandbox"},
	{"internal/run/runner", words + ground + "internal/know/catalog internal/govern/... internal/run/..."},
	{"internal/run/queue", words + ground + "internal/run/runner"},
	{"internal/run/plugins", words + ground + "internal/config internal/run/..."},
	{"internal/run/childmode", "internal/run/executor/db internal/run/sandbox"},
	{"internal/run/executors", words + ground + "internal/config internal/know/... internal/govern/policy internal/govern/redaction internal/run/..."},

	// What people add to it.
	{"internal/add", words + ground + "internal/know/source/... internal/govern/review internal/run/executor internal/run/sandbox internal/run/sandbox/egress"},

	{"internal/add/addmcp", words + ground + "internal/run/executor internal/run/sandbox"},

	{"internal/add/addplan", words + ground + "internal/add internal/add/addmcp internal/govern/extensions internal/govern/policy internal/govern/review internal/know/catalog"},

	// The door: all that anyone above may do.
	{"internal/door", words + ground + "internal/know/... internal/govern/... internal/find/... internal/run/..."},

	// Talk: a conversation. It reaches effects through the door only.
	{"internal/talk/model", words + ground},
	{"internal/talk/provider/...", words + ground + "internal/talk/model"},
	{"internal/talk/opener", words + ground + "internal/config internal/find/outcome internal/talk/model internal/talk/provider/..."},
	{"internal/setup", words + ground + "internal/connect internal/talk/opener"},
	{"internal/talk/session", words + ground},
	{"internal/talk/demo", "llm"},
	{"internal/talk/prompt", words + ground + "internal/door internal/talk/session"},
	{"internal/talk/layerfiles", words + ground + "internal/talk/prompt"},
	{"internal/talk/deliver/...", words + ground + "internal/door internal/talk/model internal/talk/session"},
	{"internal/talk/slash", words + "internal/coldsort internal/spelling"},
	{"internal/talk/event", words + ground + "internal/door internal/talk/model"},
	{"internal/talk/commands", words + ground + "internal/door internal/govern/policy internal/know/catalog internal/know/source/mcptools internal/talk/event internal/talk/slash"},
	{"internal/talk/consent", words + ground + "internal/govern/approval internal/talk/event"},
	{"internal/talk/layers", words + ground + "internal/config/orchestration internal/door internal/govern/policy internal/govern/reload internal/know/catalog internal/talk/event internal/talk/layerfiles internal/talk/model internal/talk/prompt internal/talk/session"},
	{"internal/talk/toolcall", words + ground + "internal/talk/session"},
	{"internal/talk/ask", words + ground + "internal/talk/event internal/talk/session"},
	{"internal/talk/compact", words + ground + "internal/talk/model internal/talk/prompt internal/talk/session"},
	{"internal/talk/account", words + ground + "internal/door internal/talk/..."},
	{"internal/talk/engine", words + ground + "internal/door internal/talk/..."},

	// Serve: the surfaces.
	{"internal/serve/problem", "capability internal/store"}, // the kinds of its failures
	{"internal/serve/auth", words + ground + "internal/serve/problem"},
	{"internal/serve/replica", words + ground},
	{"internal/serve/metrics", words + ground + "internal/find/outcome"},
	{"internal/serve/doctor", words + ground + "internal/door"},
	{"internal/serve/clusterhealth", words + ground + "internal/serve/doctor internal/serve/replica"},
	{"internal/serve/httpapi/...", words + ground + "web internal/door internal/govern/... internal/find/... internal/run/queue internal/talk/... internal/setup internal/add/... internal/connect internal/serve/problem internal/serve/auth internal/serve/doctor"}, // of what lies below the door it takes words, and the queue of calls that run later
	{"internal/serve/skillshelf", "capability internal/coldsort"},
	{"internal/serve/clearmessage", "internal/jsonvalid internal/untrusted"},
	{"internal/serve/servercard", ""},
	{"internal/serve/refusal", ""},
	{"internal/serve/mcpsession", "internal/jsonvalid internal/serve/clearmessage internal/serve/refusal internal/untrusted"},
	{"internal/serve/mcpserver", words + ground + "internal/door internal/serve/auth internal/serve/clearmessage internal/serve/mcpsession internal/serve/refusal internal/serve/skillshelf"},
	{"internal/serve/mcpbridge", words + ground + "internal/door internal/know/... internal/govern/approval internal/govern/audit internal/govern/redaction internal/run/mcpgateway internal/run/queue internal/serve/auth internal/serve/problem internal/serve/httpapi/wire internal/serve/mcpserver internal/serve/skillshelf"},
	{"internal/serve/shim/...", ""}, // what a client starts for every window: it stays light
	{"internal/serve/daemon", words + "internal/duration internal/serve/shim"},
	{"internal/serve/health", words + ground + "internal/config internal/know/... internal/govern/... internal/run/... internal/serve/doctor internal/serve/shim"},
	{"internal/serve/reviews", words + ground + "internal/govern/... internal/run/mcpservers/... internal/serve/auth internal/serve/httpapi/catalogapi"},
	{"internal/serve/settings", words + ground + "internal/config internal/govern/... internal/serve/auth internal/serve/httpapi/systemapi"},

	// The program: wiring, commands, library.
	{"internal/app", all},
	{"internal/cli/output", "capability internal/untrusted internal/run/runner"},
	{"internal/cli/catalogreport", "capability internal/cli/output internal/door internal/untrusted"},
	{"internal/cli/connectreport", words + "internal/setup internal/connect internal/connect/permission internal/cli/output internal/serve/mcpserver"},
	{"internal/cli/statsreport", "internal/duration internal/cli/output internal/door internal/find/outcome"},
	{"internal/cli/manual", ""},
	{"internal/cli/moment", ""},
	{"internal/cli/working", ""},
	{"internal/cli/helptext", "internal/cli/output internal/spelling"},
	{"internal/cli/choosing", "internal/cli/output internal/secret internal/talk/opener"},
	{"internal/cli/adding", words + "internal/add internal/add/addplan internal/cli/output"},
	{"internal/cli/asking", "internal/cli/output internal/govern/approval internal/talk/consent"},
	{"internal/cli/auditing", "internal/duration internal/cli/output internal/govern/audit"},
	{"internal/cli/backups", "internal/backup internal/cli/output internal/config internal/dirs internal/govern/audit internal/serve/daemon internal/serve/shim internal/store"},
	{"internal/cli/discovering", "capability internal/duration internal/cli/output internal/door internal/find/vectors"},
	{"internal/cli/evals", "capability internal/cli/output internal/door internal/find/checkup internal/find/eval internal/find/vectors internal/know/catalog"},
	{"internal/cli/tokens", words + "internal/cli/output internal/serve/auth"},
	{"internal/cli/jobs", words + "internal/cli/output internal/run/queue"},
	{"internal/cli/chat", words + ground + "internal/cli/output internal/door internal/talk/..."},
	{"internal/cli", all},
	{".", words + "internal/app internal/config internal/door internal/govern/... internal/run/... internal/talk/..."},
	{"cmd/ken", "internal/cli internal/run/childmode internal/serve/shim/entry"},

	// Beside it.
	{"internal/testkit/...", all}, // what tests share; no product package may import it
	{"examples/...", words + "llm/llmtest ."},
	{"scripts/settings", "internal/config internal/dirs"},
	{"scripts/...", ""},
}

// stdOnly are the packages that import nothing but the standard library.
var stdOnly = []string{"capability", "llm"}

func TestLayers(t *testing.T) {
	testkit.CI(t, "it reads the source")
	module, packages := goList(t)
	if len(packages) == 0 {
		t.Fatal("go list ./... names no package")
	}
	for _, complaint := range forbidden(layers, stdOnly, module, packages) {
		t.Error(complaint)
	}
}

// TestLayersCatch shows that each rule can fail.
func TestLayersCatch(t *testing.T) {
	layers := []layer{
		{"floor", ""},
		{"ground", "floor"},
		{"low/...", "floor ground"},
		{"high", "floor low/... top"},
		{"top", all},
		{".", "top"},
	}
	tests := []struct {
		pkg     string
		imports []string
		want    string // part of the one complaint; empty for none
	}{
		{"m/floor", []string{"fmt", "net/http"}, ""},
		{"m/ground", []string{"m/floor", "example.com/lib"}, ""},
		{"m/low", []string{"m/low/part"}, ""},
		{"m/low/part", []string{"m/floor", "m/low"}, ""},
		{"m/high", []string{"m/low/part", "m/low"}, ""},
		{"m/top", []string{"m/high", "m/floor", "m/low"}, ""},
		{"m", []string{"m/top"}, ""},
		{"m/floor", []string{"m/ground"}, "later line"},
		{"m/floor", []string{"example.com/lib"}, "standard library"},
		{"m/high", []string{"m/ground"}, "may not import"},
		{"m/high", []string{"m/top"}, "later line"},
		{"m/ground", []string{"m/low"}, "later line"},
		{"m/missing", nil, "has no line"},
		{"m/top", []string{"m/missing"}, "has no line"},
	}
	for _, tt := range tests {
		got := forbidden(layers, []string{"floor"}, "m", []listed{{ImportPath: tt.pkg, Imports: tt.imports}})
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s importing %v: complaints %q, want %q", tt.pkg, tt.imports, got, tt.want)
		}
	}
}

// longestChain is the most packages of this module that may import each other in
// a row. Each package on the way is one more to read for whoever follows a call.
const longestChain = 11

func TestImportChain(t *testing.T) {
	testkit.CI(t, "it reads the source")
	module, packages := goList(t)
	if got := longest(module, packages); len(got) > longestChain {
		t.Errorf("a chain of %d packages, want at most %d: %s", len(got), longestChain, strings.Join(got, " > "))
	}
}

// TestImportChainCatch shows that one more package in a row is noticed.
func TestImportChainCatch(t *testing.T) {
	list := []listed{
		{ImportPath: "m", Imports: []string{"m/a", "m/c", "fmt"}},
		{ImportPath: "m/a", Imports: []string{"m/b", "example.com/lib"}},
		{ImportPath: "m/b", Imports: []string{"m/c"}},
		{ImportPath: "m/c"},
	}
	if got := longest("m", list); !slices.Equal(got, []string{".", "a", "b", "c"}) {
		t.Errorf("the longest chain is %q", got)
	}
	if got := longest("m", list[2:]); len(got) != 2 {
		t.Errorf("the longest chain is %q, want two packages", got)
	}
}

// longest returns the longest chain of packages in which each imports the next.
func longest(module string, packages []listed) []string {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.ImportPath] = p.Imports
	}
	known := map[string][]string{}
	var from func(string) []string
	from = func(pkg string) []string {
		if chain, ok := known[pkg]; ok {
			return chain
		}
		var rest []string
		for _, imported := range imports[pkg] {
			if _, ours := imports[imported]; !ours {
				continue
			}
			if chain := from(imported); len(chain) > len(rest) {
				rest = chain
			}
		}
		known[pkg] = append([]string{within(module, pkg)}, rest...)
		return known[pkg]
	}
	var out []string
	for _, p := range packages {
		if chain := from(p.ImportPath); len(chain) > len(out) {
			out = chain
		}
	}
	return out
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T) (module string, packages []listed) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Module", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return module, packages
		} else if err != nil {
			t.Fatal(err)
		}
		module = p.Module.Path
		packages = append(packages, p)
	}
}

// forbidden lists every import that the layers do not allow.
func forbidden(layers []layer, stdOnly []string, module string, packages []listed) []string {
	var out []string
	for _, p := range packages {
		name := within(module, p.ImportPath)
		line := lineOf(layers, name)
		if line < 0 {
			out = append(out, fmt.Sprintf("%s has no line in layers_test.go; add one", name))
			continue
		}
		for _, imported := range p.Imports {
			if why := judge(layers, stdOnly, module, name, line, imported); why != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", name, imported, why))
			}
		}
	}
	return out
}

func judge(layers []layer, stdOnly []string, module, name string, line int, imported string) string {
	if imported != module && !strings.HasPrefix(imported, module+"/") {
		if slices.Contains(stdOnly, name) && strings.Contains(strings.Split(imported, "/")[0], ".") {
			return "it may import only the standard library"
		}
		return ""
	}
	target := within(module, imported)
	at := lineOf(layers, target)
	switch {
	case at < 0:
		return "that has no line in layers_test.go; add one"
	case at == line:
		return "" // packages of one folder
	case at > line:
		return "that is on a later line of layers_test.go"
	case layers[line].may == all:
		return ""
	}
	for allowed := range strings.FieldsSeq(layers[line].may) {
		if covers(allowed, target) {
			return ""
		}
	}
	return "it may not import that; see its line in layers_test.go"
}

// within returns a package's path below the module, "." for the module itself.
func within(module, pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

func lineOf(layers []layer, name string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return covers(l.packages, name) })
}

func covers(pattern, name string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == folder || strings.HasPrefix(name, folder+"/")
	}
	return name == pattern
}

// TestCodeRules holds the code to the rules that a reader cannot be expected to
// notice: no init functions, no values hidden in contexts, no packages named
// after nothing.
func TestCodeRules(t *testing.T) {
	testkit.CI(t, "it reads the source")
	eachSource(t, func(p string, _ []byte, file *ast.File) {
		for _, complaint := range broken(p, file) {
			t.Errorf("%s: %s", p, complaint)
		}
	})
}

// eachSource calls do for every Go file of this module that is not a test, by its
// path with slashes.
func eachSource(t *testing.T, do func(p string, src []byte, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		do(filepath.ToSlash(p), src, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCodeRulesCatch shows that each rule can fail.
func TestCodeRulesCatch(t *testing.T) {
	tests := []struct{ path, src, want string }{
		{"internal/x/x.go", "package x\nfunc f() {}", ""},
		{"internal/x/x.go", "package x\nfunc init() {}", "init"},
		{"internal/x/x.go", "package x\ntype t int\nfunc (t) init() {}", ""},
		{"internal/x/x.go", "package x\nimport \"context\"\nvar c = context.WithValue(nil, 1, 2)", "WithValue"},
		{"internal/serve/httpapi/x.go", "package httpapi\nimport \"context\"\nvar c = context.WithValue(nil, 1, 2)", ""},
		{"internal/util/x.go", "package util", "says nothing"},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), tt.path, tt.src, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(broken(tt.path, file), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q: %q, want %q", tt.path, tt.src, got, tt.want)
		}
	}
}

func broken(p string, file *ast.File) []string {
	var out []string
	if slices.Contains(strings.Fields("util utils common helper helpers base core types models manager interfaces"), file.Name.Name) {
		out = append(out, "the package name "+file.Name.Name+" says nothing; name it after what it does")
	}
	mayHide := slices.Contains([]string{"internal/serve/httpapi", "internal/serve/mcpserver"}, path.Dir(p))
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				out = append(out, "func init: build things where they are used, in internal/app")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name == "WithValue" && !mayHide {
				out = append(out, "context.WithValue: pass it as an argument")
			}
		}
		return true
	})
	return out
}

// mostCode is the most lines of code that a package may hold, without blank
// lines, comments and tests, and mostMethods the most methods of one type.
const (
	mostCode    = 4800
	mostMethods = 60
)

// TestCodeSize holds packages and types to a size that one person can read.
func TestCodeSize(t *testing.T) {
	testkit.CI(t, "it reads the source")
	code, methods := map[string]int{}, map[string]int{}
	eachSource(t, func(p string, src []byte, file *ast.File) {
		folder := path.Dir(p)
		code[folder] += codeLines(src)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[folder+"."+typeName(f.Recv.List[0].Type)]++
			}
		}
	})
	for folder, n := range code {
		if n > mostCode {
			t.Errorf("%s has %d lines of code, want at most %d: give a part of it a package of its own", folder, n, mostCode)
		}
	}
	for _, complaint := range tooMany(methods, mostMethods, nil, "methods") {
		t.Error(complaint)
	}
}

// tooMany returns what is wrong with the numbers of things that types have: more
// than the most, and exceptions that are not what the type has any more.
func tooMany(have map[string]int, most int, above map[string]int, things string) []string {
	var out []string
	for name, n := range have {
		if allowed := max(most, above[name]); n > allowed {
			out = append(out, fmt.Sprintf("%s has %d %s, want at most %d: give a part of its state a type of its own", name, n, things, allowed))
		}
	}
	for name, allowed := range above {
		switch n := have[name]; {
		case n <= most:
			out = append(out, fmt.Sprintf("%s has %d %s: remove its exception", name, n, things))
		case n < allowed:
			out = append(out, fmt.Sprintf("%s has %d %s: lower its exception from %d", name, n, things, allowed))
		}
	}
	return out
}

func TestTooMany(t *testing.T) {
	have := map[string]int{"a": 3, "b": 4, "c": 5, "d": 5, "e": 2}
	got := tooMany(have, 3, map[string]int{"c": 5, "d": 6, "e": 4}, "fields")
	slices.Sort(got)
	want := []string{"b has 4 fields, want at most 3: give a part of its state a type of its own", "d has 5 fields: lower its exception from 6", "e has 2 fields: remove its exception"}
	if !slices.Equal(got, want) {
		t.Errorf("complaints %q, want %q", got, want)
	}
}

// mostFields is the most fields of a struct that changes after it was made.
const mostFields = 20

// aboveFields are structs that still have more fields than mostFields, with their
// number. The numbers only go down.
var aboveFields = map[string]int{

	// Settings with some fields of their own: they are filled in while they are read
	// or checked, and then only read.
	"internal/config.Config":    28,
	"internal/run/sandbox.Spec": 23,
}

// TestStructFields holds structs that change to a number of fields that a reader
// can keep in mind. A struct counts as one that changes where
//
//   - a method with a pointer receiver, or a function of its package with a
//     parameter that points to it, assigns to one of its fields or to a part of one;
//   - or a field is of a type of sync or sync/atomic.
//
// All its fields count then, since the reader cannot tell which of them stay. An
// embedded type counts as one. Settings, records and messages may have as many fields
// as they need: structs that are only read once they are made, and structs without an
// unexported field, which are data that is filled step by step.
func TestStructFields(t *testing.T) {
	testkit.CI(t, "it reads the source")
	packages := map[string][]*ast.File{}
	eachSource(t, func(p string, _ []byte, file *ast.File) {
		packages[path.Dir(p)] = append(packages[path.Dir(p)], file)
	})
	fields := map[string]int{}
	for folder, files := range packages {
		for name, n := range changingStructs(files) {
			fields[folder+"."+name] = n
		}
	}
	for _, complaint := range tooMany(fields, mostFields, aboveFields, "fields and changes") {
		t.Error(complaint)
	}
}

// TestStructFieldsCatch shows what counts as a change.
func TestStructFieldsCatch(t *testing.T) {
	const declared = "package x\nimport \"sync/atomic\"\ntype s struct { a, b int; c []s; m map[string]int; *d }\ntype d struct{ n int }\n"
	tests := []struct {
		src  string
		want map[string]int
	}{
		{"func (v *s) f() { v.a = 1 }", map[string]int{"s": 5}},
		{"func (v *s) f() { v.a++ }", map[string]int{"s": 5}},
		{"func (v *s) f() { *v = s{} }", map[string]int{"s": 5}},
		{"func (v *s) f() { v.c[0].b += 2 }", map[string]int{"s": 5}},
		{"func (v *s) f() { func() { v.m[\"x\"] = 1 }() }", map[string]int{"s": 5}},
		{"func f(n int, v, w *s) { w.a, n = 1, 2 }", map[string]int{"s": 5}},
		{"type g[T any] struct { t T }\nfunc (v *g[T]) f(t T) { v.t = t }", map[string]int{"g": 1}},
		{"type k struct { n atomic.Int64; p atomic.Pointer[s] }", map[string]int{"k": 2}},
		{"type e struct { A, B int }\nfunc (v *e) f() { v.A = 1 }", nil}, // data
		{"func (v s) f() { v.a = 1 }", nil},                              // a copy
		{"func f() *s { v := &s{a: 1}; return v }", nil},                 // where it is made
		{"func (v *s) f() { a := v.a; a++; v = nil }", nil},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", declared+tt.src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := changingStructs([]*ast.File{file}); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.src, got, tt.want)
		}
	}
}

// changingStructs returns the structs of a package that change after they were
// made, each with the number of its fields.
func changingStructs(files []*ast.File) map[string]int {
	fields, changing := map[string]int{}, map[string]int{}
	var functions []*ast.FuncDecl
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				functions = append(functions, f)
			}
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				named, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if s, ok := named.Type.(*ast.StructType); ok {
					n, own, guarded := countFields(s)
					if !own {
						continue // it is data
					}
					fields[named.Name.Name] = n
					if guarded {
						changing[named.Name.Name] = n
					}
				}
			}
		}
	}
	for _, f := range functions {
		for _, name := range assignedStructs(f) {
			if n, ok := fields[name]; ok {
				changing[name] = n
			}
		}
	}
	return changing
}

// countFields counts the fields of a struct, and reports whether one of them is not
// exported, and whether one is of a type of sync or sync/atomic.
func countFields(s *ast.StructType) (n int, own, guarded bool) {
	for _, field := range s.Fields.List {
		n += max(1, len(field.Names))
		for _, name := range field.Names {
			own = own || !name.IsExported()
		}
		t := field.Type
		if generic, ok := t.(*ast.IndexExpr); ok {
			t = generic.X
		}
		if sel, ok := t.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "sync" || pkg.Name == "atomic") {
				guarded = true
			}
		}
	}
	return n, own, guarded
}

// assignedStructs returns the names of the types to whose fields a function assigns
// through its receiver or a parameter that is a pointer.
func assignedStructs(f *ast.FuncDecl) []string {
	pointers := map[string]string{} // names of types by names of variables
	lists := []*ast.FieldList{f.Type.Params}
	if f.Recv != nil {
		lists = append(lists, f.Recv)
	}
	for _, list := range lists {
		for _, field := range list.List {
			if star, ok := field.Type.(*ast.StarExpr); ok {
				for _, name := range field.Names {
					pointers[name.Name] = typeName(star.X)
				}
			}
		}
	}
	var out []string
	assigned := func(e ast.Expr) {
		for within := false; ; {
			switch x := e.(type) {
			case *ast.SelectorExpr:
				e, within = x.X, true
			case *ast.IndexExpr:
				e = x.X
			case *ast.StarExpr:
				e, within = x.X, true
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				if name := pointers[x.Name]; within && name != "" {
					out = append(out, name)
				}
				return
			default:
				return
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				assigned(e)
			}
		case *ast.IncDecStmt:
			assigned(n.X)
		}
		return true
	})
	return out
}

// codeLines counts the lines that hold code.
func codeLines(src []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		first, end := file.Line(pos), file.Line(pos)+strings.Count(text, "\n")
		n += max(0, end-max(first-1, last))
		last = max(last, end)
	}
}

// typeName returns the name of the type that a receiver or a pointer is of, or "".
func typeName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestCodeLines(t *testing.T) {
	testkit.CI(t, "it reads the source")
	const src = "// Package x.\npackage x\n\n/* a\nb */\nvar a = `one\ntwo` // c\n\nfunc f() { g(); g() }\n"
	if got := codeLines([]byte(src)); got != 4 {
		t.Errorf("codeLines = %d, want 4", got)
	}
}
