package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/card"
	"ken/internal/know/source"
)

// home makes a home directory with files and gives the environment of it.
func home(t testing.TB, files map[string]string) (dir string, getenv func(string) string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir, func(name string) string {
		return map[string]string{"HOME": dir, "TOKEN": "x"}[name]
	}
}

// alone opens an App whose home is a new folder, with these settings.
func alone(t testing.TB, settings string, cfg Config) *App {
	t.Helper()
	home := t.TempDir()
	cfg.Dir, cfg.Getenv = home, func(name string) string { return map[string]string{"KEN_HOME": home}[name] }
	if settings != "" {
		cfg.ConfigFile = filepath.Join(home, "settings.yaml")
		write(t, cfg.ConfigFile, settings)
	}
	return open(t, cfg)
}

// corpora is the folder of the measured catalogs and queries.
func corpora(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: the measured catalogs are not here")
	}
	return dir
}

// open opens an App, by default with an empty home and in an empty folder.
func open(t testing.TB, cfg Config) *App {
	t.Helper()
	if cfg.Getenv == nil {
		_, cfg.Getenv = home(t, nil)
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

const manifest = "kind: tool\nname: mine\ndescription: My own tool\nrequiredSecrets: [TOKEN]\npermissions: [exec]\nrun: {runner: exec.true, argv: [\"true\"]}\n"

// TestCloseTakesWhatComesLate: what is made while Ken closes is closed too, and
// nobody waits for the other.
func TestCloseTakesWhatComesLate(t *testing.T) {
	_, getenv := home(t, nil)
	a, err := Open(t.Context(), Config{Getenv: getenv, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	a.closers.Add(func() error {
		order = append(order, "early")
		a.closers.Add(func() error { order = append(order, "late"); return errors.New("late is late") })
		return nil
	})
	if err := a.Close(); err == nil || err.Error() != "late is late" || !slices.Equal(order, []string{"early", "late"}) {
		t.Errorf("Close() = %v in the order %v, want the late one last, and what it said", err, order)
	}
	if err := a.Close(); err != nil {
		t.Errorf("a second Close() = %v", err)
	}
}

// TestToolsComeAndGoWhileTheProgramRuns: what a program brings is there beside the
// starter, and so is what it adds later, until it removes that.
func TestToolsComeAndGoWhileTheProgramRuns(t *testing.T) {
	m := source.NewMemory("program", capability.TrustUser)
	m.Put(capability.Capability{Name: "f", Description: "A function of the program"}, capability.Detail{})
	a := open(t, Config{Sources: []capability.Source{m}})
	if !a.Live.Put(capability.Capability{Name: "made", Description: "Made here"}, capability.Detail{}) {
		t.Fatal("Put did not take the tool")
	}
	for _, id := range []string{"tool:f", "tool:made", "tool:web-search"} {
		if _, err := a.View().Lookup(id); err != nil {
			t.Error(err)
		}
	}
	if !a.Live.Remove("tool:made") {
		t.Error("Remove says that the tool was not there")
	}
	if _, err := a.View().Lookup("tool:made"); err == nil {
		t.Error("the tool is still there")
	}
}

func TestOpenReadsEveryKindOfNamedSource(t *testing.T) {
	extra := t.TempDir()
	write(t, filepath.Join(extra, "tools.jsonl"), `{"name":"row","description":"A row"}`)
	_, getenv := home(t, map[string]string{".ken/ken.yaml": `
catalog:
  sources:
    - { name: files, path: ` + extra + ` }
    - { name: gone, database: ` + filepath.Join(extra, "none.sqlite") + ` }
    - { name: nowhere, url: "http://127.0.0.1:1/tools.json" }
`})
	a := open(t, Config{Getenv: getenv})
	if _, err := a.View().Lookup("tool:row"); err != nil {
		t.Error(err)
	}
	// What cannot be read costs only itself and is said.
	said := map[string]bool{}
	for _, p := range a.View().List().Problems {
		said[p.Origin.Source] = true
	}
	if !said["gone"] || !said["nowhere"] {
		t.Errorf("problems of %v, want gone and nowhere among them", said)
	}
}

func TestPlacesThatAreNamedTwiceAreReadOnce(t *testing.T) {
	dir, getenv := home(t, map[string]string{
		".ken/capabilities/mine/CAPABILITY.yaml": manifest,
		".ken/ken.yaml":                          "catalog:\n  sources:\n    - { name: starter, path: capabilities }\n    - { name: other, path: more, optional: true }\n  starter: \"on\"\n",
	})
	a := open(t, Config{Getenv: getenv})
	if _, err := a.View().Lookup("tool:mine"); err != nil {
		t.Error(err)
	}
	if n := a.View().Stats().Shadowed; n != 0 {
		t.Errorf("%d shadowed, want none: %v", n, a.Reading)
	}
	folder := filepath.Join(dir, ".ken", "capabilities")
	b := open(t, Config{Getenv: getenv, Dir: dir, Catalogs: []string{folder, filepath.Join(dir, ".ken", ".", "capabilities")}})
	if n := b.View().Stats(); n.Capabilities != 1 || n.Shadowed != 0 {
		t.Errorf("one folder named twice gives %+v", n)
	}
}

func TestProjectsSourcesStayInTheProject(t *testing.T) {
	outside := t.TempDir()
	project := t.TempDir()
	write(t, filepath.Join(project, ".ken", "ken.yaml"), "catalog:\n  sources:\n    - { name: later, path: ../later, optional: true }\n")
	write(t, filepath.Join(outside, "secret", "CAPABILITY.yaml"), "kind: tool\nname: secret\ndescription: Not of this project\n")
	write(t, filepath.Join(project, "sub", "ok", "CAPABILITY.yaml"), "kind: tool\nname: ok\ndescription: Of this project\n")
	a := open(t, Config{Dir: project})
	// The link comes after the configuration was checked.
	if err := os.Symlink(outside, filepath.Join(project, "later")); err != nil {
		t.Fatal(err)
	}
	if err := a.Catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, err := a.View().Lookup("tool:secret"); err == nil {
		t.Errorf("a project's source led out of the project: %s", e.Origin)
	}
}

func TestWhySaysWhatTheConfigurationSays(t *testing.T) {
	_, getenv := home(t, map[string]string{
		".ken/capabilities/mine/CAPABILITY.yaml": manifest,
		".ken/ken.yaml":                          "capabilities:\n  exclude: [\"tool:mine\"]\n",
	})
	a := open(t, Config{Getenv: getenv})
	e, err := a.View().Lookup("mine")
	if err != nil {
		t.Fatal(err)
	}
	if why := strings.Join(a.Why(e), "\n"); !strings.Contains(why, "capabilities.exclude names it") || !strings.Contains(why, "ken.yaml:2") {
		t.Errorf("Why = %s, want the setting and its line", why)
	}
}

func TestCardScorerOfTheProgram(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "cards", "own.md"), "---\ncapability_id: own\nname: Own\ndescription: A card of this test\ntriggers:\n  keywords: [unheard]\n---\n\nIts text.\n")
	a := alone(t, "", Config{Catalogs: []string{home}, CardScorer: func(c *capability.Capability, x card.Context) float64 {
		if c.ID == "own" && x.Messages[len(x.Messages)-1].Text == "the word" {
			return 0.9
		}
		return 0
	}})
	for message, want := range map[string]int{"the word": 1, "unheard": 0} {
		found, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: message})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Cards) != want {
			t.Errorf("cards for %q = %v, want %d", message, found.Cards, want)
		}
	}
}

// A flaky embedder fails once and works from then on.
type flaky struct{ asked atomic.Int32 }

func (*flaky) Model() string   { return "flaky" }
func (*flaky) Dimensions() int { return 8 }
func (f *flaky) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if f.asked.Add(1) == 1 {
		return nil, errors.New("not now")
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0, 0, 0, 0, 0, 0, 0}
	}
	return out, nil
}

func TestEmbedderThatFailsIsAskedAgain(t *testing.T) {
	home := t.TempDir() // before the bubble: its removal waits for files
	synctest.Test(t, func(t *testing.T) {
		f := &flaky{}
		a, err := Open(t.Context(), Config{Dir: home, Embedder: f, Getenv: func(name string) string { return map[string]string{"KEN_HOME": home}[name] }})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := f.asked.Load(); n != 1 {
			t.Errorf("asked %d times at once, want 1", n)
		}
		time.Sleep(time.Minute) // longer than it rests
		synctest.Wait()
		found, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: "search the web"})
		if err != nil || len(found.Degraded) != 0 {
			t.Errorf("Find = degraded %q, %v, want all vectors there", found.Degraded, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}
