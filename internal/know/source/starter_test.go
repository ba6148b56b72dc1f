package source

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/parsecache"
	"ken/internal/testkit"
)

var update = flag.Bool("update", false, "write starter.parsed anew")

func starterBatch(t *testing.T) (*Tree, capability.Batch) {
	t.Helper()
	tree := Starter("starter")
	b, err := tree.Load(context.Background())
	must(t, err)
	return tree, b
}

func TestStarterIsTheSeedsSixtySix(t *testing.T) {
	tree, b := starterBatch(t)
	count := map[capability.Kind]int{}
	ids := map[capability.ID]bool{}
	for _, c := range b.Capabilities {
		count[c.Kind]++
		ids[c.ID] = true
		if c.Trust != capability.TrustBuiltin || len(c.Findings) > 0 {
			t.Errorf("%s: trust %s, findings %v; want builtin and none", c.ID, c.Trust, c.Findings)
		}
		if _, err := tree.Detail(context.Background(), c); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	if len(b.Capabilities) != 66 || len(ids) != 66 || count[capability.KindSkill] != 18 || count[capability.KindChannel] != 20 {
		t.Errorf("%d capabilities, %d ids, %v; want 66 with 18 skills and 20 channels", len(b.Capabilities), len(ids), count)
	}
	for _, id := range []capability.ID{"tool:web-search", "tool:news-search", "skill:github", "skill:summarizer", "tool:cli-executor", "extension:giphy", "channel:discord"} {
		if !ids[id] {
			t.Errorf("%s, which the seed names, is not there", id)
		}
	}
	for _, p := range b.Problems {
		t.Errorf("problem: %v", p)
	}
	if len(b.Presets) == 0 || len(b.Documents) != 1 || b.Documents[0].Role != capability.Map {
		t.Errorf("%d presets and documents %v; want some presets and the map", len(b.Presets), b.Documents)
	}
}

// TestStarterIsClean scans the starter as if it came from outside; as a part of
// the program it is not scanned when it starts.
func TestStarterIsClean(t *testing.T) {
	files, err := fs.Sub(starterFiles, "starter")
	must(t, err)
	b, err := NewTree(TreeConfig{Name: "starter", Files: files, Trust: capability.TrustUser}).Load(context.Background())
	if err != nil || len(b.Capabilities) != 66 {
		t.Fatalf("Load = %d capabilities, %v; want 66", len(b.Capabilities), err)
	}
	for _, c := range b.Capabilities {
		if len(c.Findings) > 0 {
			t.Errorf("%s: findings %v, want none", c.ID, c.Findings)
		}
	}
}

// TestStarterToolsRun runs every tool of the starter that needs no key and
// whose programs are here, with the example it gives itself.
func TestStarterToolsRun(t *testing.T) {
	testkit.Programs(t, "git")
	tree, b := starterBatch(t)
	repository := t.TempDir()
	for _, argv := range [][]string{
		{"git", "init", "-q"},
		{"git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	defer page.Close()
	ran := 0
	for _, c := range b.Capabilities {
		example := c.Meta["example"]
		if c.ID == "tool:http-fetch" {
			example = `{"url":"` + page.URL + `"}`
		}
		if c.Kind != capability.KindTool || len(c.RequiredSecrets) > 0 || example == "" || !haveAll(c.RequiredBins) {
			continue
		}
		detail, err := tree.Detail(t.Context(), c)
		must(t, err)
		argv := fillRecipe(t, c.Run.Argv, detail.Schema, example)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = repository
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %q: %v\n%s", c.ID, argv, err, out)
		}
		ran++
	}
	if ran < 10 {
		t.Errorf("%d tools of the starter ran without a key, want at least 10", ran)
	}
}

func haveAll(bins []string) bool {
	for _, b := range bins {
		if _, err := exec.LookPath(b); err != nil {
			return false
		}
	}
	return true
}

// fillRecipe makes a command of a recipe: defaults first, then the example.
func fillRecipe(t *testing.T, argv []string, schema json.RawMessage, example string) []string {
	t.Helper()
	var s struct {
		Properties map[string]struct{ Default any }
	}
	must(t, json.Unmarshal(schema, &s))
	values := map[string]any{}
	for name, p := range s.Properties {
		values[name] = p.Default
	}
	must(t, json.Unmarshal([]byte(example), &values))
	var out []string
	for _, a := range argv {
		name, isPlace := strings.CutPrefix(a, "{")
		name, closed := strings.CutSuffix(name, "}")
		if !isPlace || !closed {
			out = append(out, a)
			continue
		}
		if list, ok := strings.CutSuffix(name, "..."); ok {
			items, _ := values[list].([]any)
			for _, item := range items {
				out = append(out, fmt.Sprint(item))
			}
			continue
		}
		out = append(out, fmt.Sprint(values[name]))
	}
	return out
}

// TestStarterParsed shows that what is embedded is what the files are parsed
// to. With -update it writes that.
func TestStarterParsed(t *testing.T) {
	testkit.CI(t, "parses all of the starter")
	want := parsedStarter(t)
	if *update {
		must(t, os.WriteFile("starter.parsed", want, 0o644))
		t.Skip("starter.parsed written: run the tests again to check it")
	}
	if starterParsed != string(want) {
		t.Errorf("starter.parsed is not what the files of the starter are parsed to; run go generate ./internal/know/source")
	}
	const name = "starter (2)" // as where somebody calls a source of theirs starter
	got, files := Starter(name), NewTree(TreeConfig{Name: name, Files: starterRoot(), Trust: capability.TrustBuiltin})
	gotBatch, wantBatch := loadWhole(t, got), loadWhole(t, files)
	if len(got.units) != 1 || len(files.units) < 40 {
		t.Fatalf("%d and %d units; want one that was taken as it is, and those that were parsed", len(got.units), len(files.units))
	}
	if !reflect.DeepEqual(gotBatch, wantBatch) {
		t.Errorf("what is embedded loads as\n%+v\nwant what the files load as\n%+v", gotBatch, wantBatch)
	}
}

// parsedStarter parses the files of the starter and packs the result.
func parsedStarter(t *testing.T) []byte {
	tree := NewTree(TreeConfig{Name: "starter", Files: starterRoot(), Trust: capability.TrustBuiltin})
	whole := loadWhole(t, tree)
	id, err := filesID(tree.root.FS)
	must(t, err)
	return parsecache.Pack(&format.Unit{
		Root: tree.root, Path: ".", Format: parsecache.WholeTree, Source: "starter", Trust: capability.TrustBuiltin,
		Capabilities: whole.Capabilities, Details: whole.details, Presets: whole.Presets, Documents: whole.Documents, Problems: whole.Problems,
	}, true, id)
}

// whole is all that a tree brings.
type whole struct {
	capability.Batch
	details []capability.Detail
}

func loadWhole(t *testing.T, tree *Tree) whole {
	t.Helper()
	b, err := tree.Load(t.Context())
	must(t, err)
	out := whole{Batch: b}
	for _, c := range b.Capabilities {
		d, err := tree.Detail(t.Context(), c)
		must(t, err)
		out.details = append(out.details, d)
	}
	return out
}

// TestParsedIsOfTheseFiles: what other files were parsed to is not taken, nor
// what is damaged; the files are parsed.
func TestParsedIsOfTheseFiles(t *testing.T) {
	testkit.CI(t, "parses all of the starter, twice")
	files := fstest.MapFS{}
	err := fs.WalkDir(starterRoot(), ".", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, readErr := fs.ReadFile(starterRoot(), p)
			files[p], err = &fstest.MapFile{Data: data}, readErr
		}
		return err
	})
	must(t, err)
	units := func(parsed string) int {
		tree := NewTree(TreeConfig{Name: "starter", Files: files, Trust: capability.TrustBuiltin, parsed: parsed})
		loadWhole(t, tree)
		return len(tree.units)
	}
	if n := units(starterParsed); n != 1 {
		t.Fatalf("the same files make %d units, want 1", n)
	}
	if n := units(starterParsed[:len(starterParsed)-1]); n < 40 {
		t.Errorf("half of it makes %d units, want those of the files", n)
	}
	files["tools/web-search/CAPABILITY.yaml"].Data = append(files["tools/web-search/CAPABILITY.yaml"].Data, '\n')
	if n := units(starterParsed); n < 40 {
		t.Errorf("what other files were parsed to makes %d units, want those of the files", n)
	}
}
