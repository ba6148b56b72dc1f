package ken_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken"
	"ken/capability"
	"ken/internal/testkit"
	"ken/plugin"
)

// TestPublicAPI holds the public packages to what a programmer needs of them: no
// exported declaration mentions a type of an internal package, and each has a doc
// comment.
func TestPublicAPI(t *testing.T) {
	testkit.CI(t, "it reads the source")
	for _, dir := range []string{".", "capability", "llm", "llm/llmtest", "plugin"} {
		for _, complaint := range unpublished(parseDir(t, dir)) {
			t.Errorf("%s: %s", dir, complaint)
		}
	}
}

// TestPublicAPICatch shows that each rule can fail.
func TestPublicAPICatch(t *testing.T) {
	const head = "package p\nimport (\n\"m/internal/door\"\n\"m/capability\"\n)\n"
	tests := []struct{ src, want string }{
		{"// A T is one.\ntype T = door.T", "T mentions m/internal/door"},
		{"// A T is one.\ntype T struct { F []*door.T }", "T mentions m/internal/door"},
		{"// A T is one.\ntype T struct { F *capability.T; f door.T }", ""},
		{"// F does.\nfunc F(x map[string]door.T) {}", "F mentions m/internal/door"},
		{"// F does.\nfunc F() { door.Do() }", ""},
		{"// V is one.\nvar V door.T", "V mentions m/internal/door"},
		{"func F() {}", "F has no doc comment"},
		{"type t struct{}\n// M does.\nfunc (t) M(door.T) {}", ""},
		{"// A T is one.\ntype T int\nfunc (T) M() {}", "M has no doc comment"},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", head+tt.src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(unpublished([]*ast.File{file}), "; "); got != tt.want {
			t.Errorf("%s: complaints %q, want %q", tt.src, got, tt.want)
		}
	}
}

// TestEveryVerbHasAnExample: each exported function, and each method of Ken.
func TestEveryVerbHasAnExample(t *testing.T) {
	examples := map[string]bool{}
	file, err := parser.ParseFile(token.NewFileSet(), "example_test.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range doc.Examples(file) {
		if e.Output == "" {
			t.Errorf("Example%s has no output, so it is not run", e.Name)
		}
		examples[e.Name] = true
	}
	verbs := 0
	for _, f := range parseDir(t, ".") {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				if receiver(fn) != "Ken" {
					continue
				}
				name = "Ken_" + name
			}
			if verbs++; !examples[name] {
				t.Errorf("there is no Example%s", name)
			}
		}
	}
	if verbs < 20 {
		t.Errorf("%d verbs were looked at, want at least 20", verbs)
	}
}

// TestEveryEvent: what the engine yields has a type in this package, so that a
// turn passes on all of it.
func TestEveryEvent(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, f := range parseDir(t, "internal/talk/event") {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "event" {
				events++
				if !regexp.MustCompile(`case event\.` + receiver(fn) + `:`).Match(source) {
					t.Errorf("event.go does not pass on event.%s", receiver(fn))
				}
			}
		}
	}
	if events < 11 {
		t.Errorf("%d kinds of event were looked at, want at least 11", events)
	}
}

// TestOpenRefuses: a Config that would fail later, or do something else than it
// says, is an error that names the field.
func TestOpenRefuses(t *testing.T) {
	t.Setenv("KEN_HOME", "")
	home := t.TempDir()
	tests := []struct {
		name string
		cfg  ken.Config
		want string
	}{
		{"no home", ken.Config{}, "open: Config has no Home; set Home to a folder of the program, or UserHome to share the folder of the command ken"},
		{"two homes", ken.Config{Home: home, UserHome: true}, "open: Config has both Home and UserHome; set one of them"},
		{"overrides", ken.Config{Home: home, Overrides: ken.Overrides{TopK: new(-1)}}, "open: Config.Overrides: tier1TopK is -1; it is a whole number within 0 to 1000000"},
		{"nil function", ken.Config{Home: home, Functions: []*ken.Function{nil}}, "open: Config.Functions[0] is incomplete; make it with ken.Func"},
		{"made by hand", ken.Config{Home: home, Functions: []*ken.Function{{}}}, "open: Config.Functions[0] is incomplete; make it with ken.Func"},
		{"nil source", ken.Config{Home: home, Sources: []capability.Source{nil}}, "open: Config.Sources[0] is nil; leave it out"},
		{"nil plugin", ken.Config{Home: home, Plugins: []plugin.Plugin{nil}}, "open: Config.Plugins[0] is nil; leave it out"},
		{"no file", ken.Config{Home: home, ConfigFile: filepath.Join(home, "none.yaml")}, "read configuration: " + filepath.Join(home, "none.yaml") + ": the file is not there; create it, or name another"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, err := ken.Open(t.Context(), tt.cfg)
			if err == nil {
				k.Close()
			}
			if err == nil || err.Error() != tt.want || capability.KindOf(err) != capability.Invalid {
				t.Errorf("Open: %v, want %s", err, tt.want)
			}
		})
	}
}

// TestHome: all that Ken writes is below Config.Home, which counts before
// KEN_HOME; without it KEN_HOME counts, and with UserHome the user's folder.
func TestHome(t *testing.T) {
	other, user := t.TempDir(), t.TempDir()
	t.Setenv("KEN_HOME", other)
	t.Setenv("HOME", user)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
	home := filepath.Join(t.TempDir(), "bot")
	use := func(cfg ken.Config, want string) {
		t.Helper()
		cfg.Functions = []*ken.Function{greet()}
		k, err := ken.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if k.Home() != want {
			t.Errorf("Home is %s, want %s", k.Home(), want)
		}
		if _, err := k.Invoke(t.Context(), capability.Call{Target: "tool:greet", Arguments: []byte(`{"name":"x"}`), Origin: capability.ByPerson}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(want, "audit")); err != nil {
			t.Error(err)
		}
	}
	use(ken.Config{Home: home}, home)
	for _, dir := range []string{other, user} {
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("Ken wrote to %s: %v, %v", dir, list, err)
		}
	}
	use(ken.Config{}, other)
	t.Setenv("KEN_HOME", "")
	use(ken.Config{UserHome: true}, filepath.Join(user, ".ken"))
}

func parseDir(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("Go files of %s: %v", dir, err)
	}
	var out []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// unpublished returns what is wrong with the exported declarations of a package.
func unpublished(files []*ast.File) []string {
	var out []string
	for _, f := range files {
		internal := map[string]string{} // import paths by the name in the file
		for _, i := range f.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if name := path[strings.LastIndex(path, "/")+1:]; strings.Contains(path, "/internal/") {
				if i.Name != nil {
					name = i.Name.Name
				}
				internal[name] = path
			}
		}
		report := func(name string, comment *ast.CommentGroup, types ...ast.Node) {
			if comment == nil && !slices.Contains([]string{"String", "Error", "Unwrap"}, name) {
				out = append(out, name+" has no doc comment")
			}
			for _, n := range types {
				if path := mentioned(n, internal); path != "" {
					out = append(out, name+" mentions "+path)
				}
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					report(d.Name.Name, d.Doc, d.Type)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							report(s.Name.Name, either(s.Doc, d.Doc), s.Type)
						}
					case *ast.ValueSpec:
						if s.Names[0].IsExported() && d.Tok == token.VAR && s.Type != nil { // constants say what they are by name and value
							report(s.Names[0].Name, either(s.Doc, s.Comment, d.Doc), s.Type)
						}
					}
				}
			}
		}
	}
	return out
}

func either(comments ...*ast.CommentGroup) *ast.CommentGroup {
	for _, c := range comments {
		if c != nil {
			return c
		}
	}
	return nil
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	id, _ := t.(*ast.Ident)
	return id.Name
}

// mentioned returns the path of an internal package that a type mentions, apart
// from unexported fields and methods.
func mentioned(n ast.Node, internal map[string]string) (path string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if len(f.Names) == 0 || f.Names[0].IsExported() {
					if p := mentioned(f.Type, internal); p != "" {
						path = p
					}
				}
			}
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && internal[x.Name] != "" {
				path = internal[x.Name]
			}
		}
		return true
	})
	return path
}

// TestLibraryDocs: the code in docs/library.md is part of programs that are
// compiled and run with the tests.
func TestLibraryDocs(t *testing.T) {
	var compiled strings.Builder
	for _, name := range []string{"example_test.go", "examples/library/main.go", "examples/plugins/main.go"} {
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		compiled.WriteString(dedent(string(b)))
	}
	page, err := os.ReadFile(filepath.FromSlash("docs/library.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 5 {
		t.Errorf("docs/library.md has %d pieces of code, want at least 5", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(compiled.String(), dedent(string(b[1]))) {
			t.Errorf("docs/library.md has code that is in no example:\n%s", b[1])
		}
	}
}

// dedent returns text without the indentation of its lines.
func dedent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimLeft(line, "\t"))
	}
	return out.String()
}

// TestErrorsAddressAProgrammer: no error tells a program to run a command.
func TestErrorsAddressAProgrammer(t *testing.T) {
	k, closeAll := open(ken.Config{Functions: []*ken.Function{greet(), post()}})
	defer closeAll()
	ctx := t.Context()
	call := func(id capability.ID, arguments, intent string) error {
		_, err := k.Invoke(ctx, capability.Call{Target: id, Arguments: []byte(arguments), Session: "s", Intent: intent})
		return err
	}
	unapproved := call("tool:post", `{"text":"x"}`, "EXECUTE")
	ticket, _ := ken.Ticket(unapproved)
	_, described := k.Describe(ctx, "nothing-like-it")
	_, related := k.Related("nothing-like-it")
	_, questioned := k.Question(ctx, "nothing")
	_, rewound := k.Rewind(ctx, "nothing", 1)
	_, selected := k.Select(ctx, ken.Query{Message: "x", Overrides: ken.Overrides{Boost: new(2.0)}})
	turn := func(w ken.Words) (out error) {
		for _, err := range k.Turn(ctx, w) {
			out = err
		}
		return out
	}
	tests := []struct {
		name string
		err  error
		want string // part of it
	}{
		{"unapproved", unapproved, "Ken.Answer with \"" + ticket + `"`},
		{"no intent", call("tool:greet", `{"name":"x"}`, ""), "set Call.Intent"},
		{"unknown capability", call("nothing-like-it", `{}`, ""), "Ken.All lists every id"},
		{"describe", described, "Ken.All lists every id"},
		{"related", related, "Ken.All lists every id"},
		{"used", k.Used(capability.Scope{Session: "s"}, "nothing-like-it", true), "Ken.All lists every id"},
		{"used without a session", k.Used(capability.Scope{}, "tool:greet", true), "scope.Session is empty"},
		{"question", questioned, "ken.Ticket"},
		{"answer", k.Answer(ctx, "nothing", ken.Answer{}), "ken.Ticket"},
		{"answer for", k.Answer(ctx, ticket, ken.Answer{Grant: true, For: "ever"}), "Ken.Question"},
		{"deny", k.Answer(ctx, ticket, ken.Answer{}), ""},
		{"twice", k.Answer(ctx, ticket, ken.Answer{}), "make the call again"},
		{"rewind", rewound, "Done.Session"},
		{"reply", k.Reply(ctx, "nothing", ken.Asked{}, ken.Answer{}, ""), "Done.Session"},
		{"overrides", selected, "Query.Overrides: graphBoostFactor is 2"},
		{"empty turn", turn(ken.Words{}), "set Text or Images, or Continue"},
		{"turn overrides", turn(ken.Words{Text: "x", Overrides: ken.Overrides{TopK: new(-1)}}), "Words.Overrides: tier1TopK is -1"},
		{"turn session", turn(ken.Words{Text: "x", Session: "nothing"}), "Done.Session"},
	}
	for _, tt := range tests {
		switch {
		case tt.want == "" && tt.err == nil:
		case tt.err == nil || !strings.Contains(tt.err.Error(), tt.want):
			t.Errorf("%s: %v, want %q in it", tt.name, tt.err, tt.want)
		case regexp.MustCompile(`\bken (approve|catalog|chat|run|config|doctor) `).MatchString(tt.err.Error()):
			t.Errorf("%s names a command: %v", tt.name, tt.err)
		}
	}
}

// TestOverridesOfTheLibrary: the seed's example of overrides, at construction and
// for one query, and the counts that it has for a catalog.
func TestOverridesOfTheLibrary(t *testing.T) {
	home := t.TempDir()
	k, err := ken.Open(t.Context(), ken.Config{ // the starter catalog
		Home: home, Overrides: ken.Overrides{TopK: new(8), FullK: new(3), Boost: new(0.2), TailRelevance: new(0.0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	sel := func(message string, o ken.Overrides, kinds ...capability.Kind) ken.Selection {
		t.Helper()
		filtered := len(kinds) > 0
		s, err := k.Select(t.Context(), ken.Query{Message: message, Kinds: kinds, OnlyAvailable: filtered, Overrides: o})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Found {
			if filtered && (!f.Available || !slices.Contains(kinds, f.Capability.Kind)) {
				t.Errorf("%s was found, available %v, among %v", f.Capability.ID, f.Available, kinds)
			}
		}
		if s.Tokens != s.Stats.TotalTokens || s.Stats.Took <= 0 || s.Stats.Indexed == 0 || s.Stats.Candidates < len(s.Found) {
			t.Errorf("stats are %+v for %d found and %d tokens", s.Stats, len(s.Found), s.Tokens)
		}
		return s
	}
	if many := sel("search the web", ken.Overrides{}); len(many.Found) <= 5 {
		t.Errorf("%d found, want more than the 5 of ken.yaml", len(many.Found))
	}
	if one := sel("search the web", ken.Overrides{TopK: new(1), StickyK: new(0)}); len(one.Found) != 1 {
		t.Errorf("%d found, want the one of the query", len(one.Found))
	}
	if tools := sel("list the files in this folder", ken.Overrides{FullTokens: new(3000)}, capability.KindTool); len(tools.Found) == 0 || tools.Stats.FullTokens > 3000 {
		t.Errorf("%d tools found, %d tokens in full", len(tools.Found), tools.Stats.FullTokens)
	}
	stats, all := k.Stats(), 0
	for range k.All() {
		all++
	}
	if stats.Active != all || stats.GraphNodes != stats.Active || stats.GraphEdges == 0 || stats.Version == 0 {
		t.Errorf("stats are %+v, and %d capabilities are listed", stats, all)
	}
}
