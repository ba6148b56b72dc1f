package app

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/internal/govern/approval"
	"ken/internal/govern/reload"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/doctor"
	"ken/internal/talk/event"
	"ken/llm"
	"ken/llm/llmtest"
)

// parts are the packages that app gives the settings of the start, as Start of a
// variable cfg, and functions for what is in force.
func parts() []string { return []string{"../run/executors", "../find/vectors"} }

// TestKeysThatCountAtOnceAreReadAtOnce: neither app nor a part of it reads one of
// them from the settings that Ken was opened with, where it would never change.
func TestKeysThatCountAtOnceAreReadAtOnce(t *testing.T) {
	byName := map[string]string{}
	for _, s := range config.Default().Settings() {
		byName[strings.ToLower(s.Key)] = s.Key
	}
	// The tools of databases are part of the catalog, which is made at the start;
	// watchDatabases keeps them current, and what a call may do is asked now
	// (run/executors).
	lints := []string{"databases"}
	fset, read := token.NewFileSet(), map[string]int{}
	for name, f := range sourceFiles(t, fset, append(parts(), ".")...) {
		ast.Inspect(f, func(n ast.Node) bool {
			words := selected(n)
			i := slices.Index(words, "Settings")
			if i < 1 || words[i-1] != "a" && words[i-1] != "app" {
				i = slices.Index(words, "Start")
				if i < 1 || words[i-1] != "cfg" {
					return true
				}
			}
			if i+1 >= len(words) {
				return true
			}
			read[filepath.Dir(name)]++
			if key := byName[strings.ToLower(strings.Join(words[i+1:], "."))]; key != "" && reload.AppliesLive(key) && !slices.Contains(lints, key) {
				t.Errorf("%v: %s counts at once and is read from the settings of the start; ask now", fset.Position(n.Pos()), key)
			}
			return false
		})
	}
	for _, dir := range append(parts(), ".") {
		if read[dir] == 0 {
			t.Errorf("nothing was looked at in %s", dir)
		}
	}
}

// sourceFiles parses the files of folders that are no tests, by name.
func sourceFiles(t *testing.T, fset *token.FileSet, dirs ...string) map[string]*ast.File {
	t.Helper()
	out := map[string]*ast.File{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if out[name], err = parser.ParseFile(fset, name, nil, parser.SkipObjectResolution); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestPartsAskForLiveSettings: a part of app is made once, so no function of it
// that has the Config asks for what is in force while it runs: it gives away a
// function that does.
func TestPartsAskForLiveSettings(t *testing.T) {
	may := map[string]string{"newShell Rules": "a warning, once"}
	fset, given := token.NewFileSet(), 0
	for _, f := range sourceFiles(t, fset, parts()...) {
		for _, d := range f.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.FuncLit:
					given++
					return false
				case *ast.CallExpr:
					words := selected(x.Fun)
					if len(words) != 2 || words[0] != "cfg" || words[1] != "Settings" && words[1] != "Rules" {
						return true
					}
					if name := f.Name.Name + " " + words[1]; may[name] == "" {
						t.Errorf("%v: %s is run once and calls cfg.%s; give a function that does", fset.Position(x.Pos()), f.Name.Name, words[1])
					} else {
						delete(may, name)
					}
				}
				return true
			})
		}
	}
	for name := range may {
		t.Errorf("%s is not there any more; fix the list", name)
	}
	if given == 0 {
		t.Error("nothing was looked at")
	}
}

// TestNothingThatCountsAtOnceIsKept: what is made once asks for nothing that
// counts at once while it is made, where the answer would never change: it is
// given whom to ask.
func TestNothingThatCountsAtOnceIsKept(t *testing.T) {
	once := []string{
		"prepareServers", "prepareRunning", "newExtensions", "prepareTalking", "newReporter", "newMCP", "newRunner", "newEngine", "engineConfig",
		"executorConfig", "aroundCalls", "openDesk", "openTrail", "openPins", "build", "finding", "newRecorder",
		"NewSite", "mcpHandler", "routes", "chat", "catalog", "trail", "readings", "system", "probes",
	}
	pkg := parsed(t)
	asks := map[string]bool{"effective": true, "Rules": true, "Current": true, "Latest": true, "Settings": true}
	for _, name := range []string{"Name", "Check", "Row", "Model", "ForTurn", "Reach", "Doubt", "Price", "Prices"} { // of Models
		asks[name] = true
	}
	for grown := true; grown; {
		grown = false
		for name, body := range pkg {
			if !asks[name] && slices.ContainsFunc(calls(body), func(c string) bool { return asks[c] }) {
				asks[name], grown = true, true
			}
		}
	}
	for _, name := range once {
		if pkg[name] == nil {
			t.Errorf("there is no %s; fix the list", name)
			continue
		}
		for _, c := range calls(pkg[name]) {
			if asks[c] && !slices.Contains(once, c) {
				t.Errorf("%s is run once and calls %s, which asks for what counts at once; give %[2]s itself", name, c)
			}
		}
	}
}

// parsed returns the bodies of the methods of App and Site, by name.
func parsed(t *testing.T) map[string]*ast.BlockStmt {
	t.Helper()
	out := map[string]*ast.BlockStmt{}
	for _, f := range sourceFiles(t, token.NewFileSet(), ".") {
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if star, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
					if of, ok := star.X.(*ast.Ident); ok && (of.Name == "App" || of.Name == "Site") {
						out[f.Name.Name] = f.Body
					}
				}
			}
		}
	}
	return out
}

// calls returns the methods of App, Site, the Loader and Models that a body calls
// itself, and not in a function that it gives away.
func calls(body *ast.BlockStmt) []string {
	var out []string
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			words := selected(x.Fun)
			if n := len(words); n > 1 && slices.Contains([]string{"a", "s", "app", "loader", "Models"}, words[n-2]) {
				out = append(out, words[n-1])
			}
		}
		return true
	})
	return out
}

// selected returns the words of x.y.z.
func selected(n ast.Node) []string {
	switch x := n.(type) {
	case *ast.SelectorExpr:
		if before := selected(x.X); before != nil {
			return append(before, x.Sel.Name)
		}
	case *ast.Ident:
		return []string{x.Name}
	}
	return nil
}

// TestSettingsCountWithoutARestart: what a file says of finding, of calls, of
// people and of turns counts for the next one.
func TestSettingsCountWithoutARestart(t *testing.T) {
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "discovery: {tier1MinRelevance: 0, tier1TailRelevance: 0}\ncapabilities: {logLevel: none}\n")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	set := func(key, value string) {
		t.Helper()
		if err := config.Set(file, key, value); err != nil {
			t.Fatal(err)
		}
		a.loader.Latest()
	}
	found := func() door.Found {
		t.Helper()
		f, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: "search the web for news about files", Scope: capability.Scope{Session: "s"}})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	logged := func() int {
		text, _ := os.ReadFile(filepath.Join(a.Places.Logs, "capabilities.log"))
		return len(text)
	}
	read := func() error {
		_, err := a.Door.Invoke(t.Context(), person(a), capability.Call{
			Target: "tool:read_file", Arguments: json.RawMessage(`{"path":"` + strings.Repeat("a", 200) + `"}`), Origin: capability.ByPerson, Session: "s",
		})
		return err
	}
	asked := func() time.Duration {
		t.Helper()
		desk, err := a.Desk()
		if err != nil {
			t.Fatal(err)
		}
		q, err := desk.Ask(t.Context(), approval.Question{Call: capability.Call{
			Target: "tool:x", CapabilityHash: "h", Principal: a.Principal, Session: "s", Arguments: json.RawMessage(`{"n":"` + time.Now().String() + `"}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return q.Expires.Sub(q.Asked)
	}

	if n := len(found().Briefs); n < 2 {
		t.Fatalf("%d briefs to begin with, want several", n)
	}
	if logged() != 0 {
		t.Fatal("something was logged with the level none")
	}
	read() // that makes the runner, with the limits as they are
	before := asked()

	set("discovery.tier1TopK", "1")
	if n := len(found().Briefs); n != 1 {
		t.Errorf("with discovery.tier1TopK 1 there are %d briefs", n)
	}
	set("capabilities.logLevel", "detailed")
	found()
	if logged() == 0 {
		t.Error("with capabilities.logLevel detailed nothing was logged")
	}
	set("capabilities.rollout", "monitor")
	if f := found(); f.Rollout.Inject {
		t.Errorf("with capabilities.rollout monitor something is injected: %+v", f.Rollout)
	}
	set("approval.wait", "2m")
	if now := asked(); now != 2*time.Minute || now == before {
		t.Errorf("with approval.wait 2m a question waits %v, and %v before", now, before)
	}
	set("limits.argumentBytes", "100")
	if err := read(); err == nil || !strings.Contains(err.Error(), "limits.argumentBytes (100)") {
		t.Errorf("with limits.argumentBytes 100 a call with more = %v, want it refused by that", err)
	}
	set("chat.steps", "7")
	if n := termsOf(a.effective()).Limits.Steps; n != 7 {
		t.Errorf("with chat.steps 7 a turn has %d", n)
	}
	set("audit.keep", "72h")
	if d := a.effective().Audit.Keep; d != 72*time.Hour {
		t.Errorf("with audit.keep 72h the trail is kept for %v", d)
	}
	set("limits.timeout", "17s")
	if d := callLimits(a.effective(), 0).Timeout; d == 17*time.Second {
		t.Error("limits.timeout counts at once, and it is said to count from the next start")
	}
	for _, s := range a.settingsPage().List() {
		if want := s.Key == "limits.timeout"; (s.InForce != "") != want {
			t.Errorf("%s is %s, in force %q", s.Key, s.Value, s.InForce)
		}
	}
}

// lab makes a provider's server whose requests are answered by their models.
func lab(t *testing.T, script llmtest.Script) (server *llmtest.Server, settings string) {
	t.Helper()
	server = llmtest.Serve(t, llmtest.Chat, script)
	return server, "providers: {lab: {wire: openai-chat, url: '" + server.URL() + "', key: LAB_KEY}}\n"
}

// TestModelChangesBetweenTurns: a turn keeps the model that it began with, the
// next has the one that ken.yaml names by then, with the key that the secrets
// hold by then, and the account of each says who answered.
func TestModelChangesBetweenTurns(t *testing.T) {
	var a *App
	replies := llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{intended("READ_FILE"), called("l", "list_files", `{}`)}},
		llmtest.Reply{Text: "One."}, llmtest.Reply{Text: "Two."})
	server, settings := lab(t, func(seen llmtest.Seen) llmtest.Reply {
		if seen.Number == 1 { // in the middle of the first turn
			if _, err := a.settingsPage().Set(t.Context(), auth.Owner(a.Principal), "model", "lab/second"); err != nil {
				t.Error(err)
			}
			if err := a.Secrets.Set("LAB_KEY", secret.Of("new")); err != nil {
				t.Error(err)
			}
		}
		return replies(seen)
	})
	dir, getenv := home(t, nil)
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "model: lab/first\n"+settings)
	a = open(t, Config{Getenv: getenv, environment: func() []string { return nil }, Dir: t.TempDir()})
	if err := a.Secrets.Set("LAB_KEY", secret.Of("old")); err != nil {
		t.Fatal(err)
	}
	var turned []string
	told := func(e outcome.Event) {
		if e.Kind == outcome.Ended {
			turned = append(turned, e.Model)
		}
	}
	a.counter.Store(&told)

	say(t, a, "change the model")
	events := say(t, a, "hello")
	if done := events[len(events)-1].(event.Done); done.Text != "Two." {
		t.Fatalf("the turn ended with %+v", done)
	}
	var got []string
	for _, r := range server.Requests() {
		got = append(got, r.Request.Model+" "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}
	if want := []string{"first old", "first new", "second new"}; !slices.Equal(got, want) {
		t.Errorf("requests were made to %q, want %q", got, want)
	}
	if want := []string{"lab/first", "lab/second"}; !slices.Equal(turned, want) {
		t.Errorf("turns are on the account of %q, want %q", turned, want)
	}
	if name := a.Models.Name(); name != "lab/second" {
		t.Errorf("ModelName() = %q", name)
	}
}

// TestNamedModelStays: a model that the caller named answers whatever ken.yaml
// comes to say, until he names none.
func TestNamedModelStays(t *testing.T) {
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "model: openai/a\n")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	a.UseModel("openai/mine")
	write(t, file, "model: openai/other\nchat: {steps: 9}\n")
	a.loader.Latest()
	if name, steps := a.Models.Name(), a.effective().Chat.Steps; name != "openai/mine" || steps != 9 {
		t.Errorf("the model is %s and there are %d steps, want openai/mine and 9", name, steps)
	}
	a.UseModel("")
	if name := a.Models.Name(); name != "openai/other" {
		t.Errorf("with none named the model is %s, want that of ken.yaml", name)
	}
}

// TestWrongFileReplacesNothing: a file that is half-written or wrong leaves the
// settings before it in force and lets no call through; the log and the doctor
// say why. Mended, it counts.
func TestWrongFileReplacesNothing(t *testing.T) {
	for name, wrong := range map[string]string{
		"half-written": "model: openai/b\nchat:\n  steps: [",
		"emptied":      "",
		"unknown key":  "model: openai/b\nchat: {stepz: 3}\n",
		"bad rule":     "model: openai/b\npolicy: {rules: [{name: x, allow: {nonsense: 1}}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir, getenv := home(t, nil)
			file := filepath.Join(dir, ".ken", "ken.yaml")
			write(t, file, "model: openai/a\nchat: {steps: 4}\n")
			var log bytes.Buffer
			a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
			write(t, file, wrong)
			now := a.loader.Latest().Settings
			if now.Model != "openai/a" || now.Chat.Steps != 4 {
				t.Errorf("in force are %s and %d steps, want those before", now.Model, now.Chat.Steps)
			}
			if a.Rules() != nil {
				t.Error("there are rules")
			}
			checks := doctor.Examine(a.Facts(t.Context()))
			if c := checks[0]; c.Grade != doctor.Bad || !strings.Contains(c.Message, "ken.yaml") || !strings.Contains(c.Message, "stay as they were") {
				t.Errorf("the doctor says %+v, want what is wrong with the file", c)
			}
			if !strings.Contains(log.String(), "ken.yaml") {
				t.Errorf("the log says %q, want what is wrong with the file", log.String())
			}
			for _, s := range a.settingsPage().List() {
				if s.Key == "chat.steps" && s.Value != "4" {
					t.Errorf("chat.steps is shown as %s", s.Value)
				}
			}
			write(t, file, "model: openai/c\n")
			if now := a.loader.Latest().Settings; now.Model != "openai/c" || now.Chat.Steps != config.Default().Chat.Steps {
				t.Errorf("fixed, in force are %s and %d steps, want openai/c and those of no file", now.Model, now.Chat.Steps)
			}
			if a.Rules() == nil {
				t.Error("fixed, there are no rules")
			}
		})
	}
}

// TestFilesThatAreNamedAreWatched: the file of an experiment's other side and a
// file of rules are read again when they alone change, also after they were
// wrong.
func TestFilesThatAreNamedAreWatched(t *testing.T) {
	dir, getenv := home(t, map[string]string{".ken/b.yaml": "discovery: {tier1TopK: 2}\n", ".ken/more.cedar": "permit (principal, action, resource);\n"})
	kens := filepath.Join(dir, ".ken")
	write(t, filepath.Join(kens, "ken.yaml"), "experiment: {name: e, config: "+filepath.Join(kens, "b.yaml")+"}\npolicy: {cedar: ["+filepath.Join(kens, "more.cedar")+"]}\n")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	write(t, filepath.Join(kens, "b.yaml"), "discovery: {tier1TopK: 13}\n")
	a.loader.Latest()
	var sizes []int
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		sizes = append(sizes, a.tuner.For(capability.Scope{Session: id}).TopK)
	}
	if !slices.Contains(sizes, 13) || slices.Contains(sizes, 2) {
		t.Errorf("sessions show at most %v briefs, want 13 on the other side", sizes)
	}
	write(t, filepath.Join(kens, "more.cedar"), "permit (nonsense\n")
	if a.loader.Latest().Rules != nil {
		t.Fatal("rules that cannot be read leave some")
	}
	write(t, filepath.Join(kens, "more.cedar"), "permit (principal, action, resource); // fixed\n")
	if r := a.loader.Latest(); r.Rules == nil {
		t.Errorf("fixed, the rules are refused: %v", r.Err)
	}
	write(t, filepath.Join(kens, "ken.yaml"), "policy: {cedar: ["+filepath.Join(kens, "new.cedar")+"]}\n")
	if a.loader.Latest().Rules != nil {
		t.Fatal("rules of a file that is not there leave some")
	}
	write(t, filepath.Join(kens, "new.cedar"), "permit (principal, action, resource);\n")
	if r := a.loader.Latest(); r.Rules == nil {
		t.Errorf("with the new file there, the rules are refused: %v", r.Err)
	}
}

// TestSettingsChangeUnderLoad: whoever asks while files are written gets one
// state or another, whole.
func TestSettingsChangeUnderLoad(t *testing.T) {
	dir, getenv := home(t, nil)
	file := filepath.Join(dir, ".ken", "ken.yaml")
	write(t, file, "chat: {steps: 5, mistakes: 5}\n")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if now := a.loader.Latest().Settings; now.Chat.Steps != now.Chat.Mistakes {
					t.Errorf("steps %d and mistakes %d are of two files", now.Chat.Steps, now.Chat.Mistakes)
					return
				}
			}
		})
	}
	for i := range 30 {
		for _, text := range []string{"chat: {steps: 6, mistakes: 6}\n", "chat: {steps: [", "chat: {steps: 77, mistakes: 77}\n"} {
			temp := file + ".new"
			write(t, temp, text)
			if err := os.Rename(temp, file); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	close(stop)
	readers.Wait()
	if n := a.loader.Latest().Settings.Chat.Steps; n != 77 {
		t.Errorf("in the end there are %d steps, want 77", n)
	}
}

// BenchmarkNow is what it costs to ask for the settings in force.
func BenchmarkNow(b *testing.B) {
	dir := b.TempDir()
	a, err := Open(b.Context(), Config{Getenv: func(name string) string { return map[string]string{"HOME": dir}[name] }, Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			a.effective()
		}
	})
	b.Run("with a look", func(b *testing.B) {
		for b.Loop() {
			a.loader.Latest()
		}
	})
}
