package sample

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/know/source"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", ".ken")
	write(t, filepath.Join(dir, "skills/decision-record/SKILL.md"), "mine\n")
	want := []string{
		"AGENTS.md", "capabilities/recent-branches/CAPABILITY.yaml", "cards/adding-capabilities.md", "ken.schema.json", "ken.yaml", "skills/decision-record/SKILL.md",
	}
	relative := func(list []string) []string {
		var out []string
		for _, f := range list {
			rel, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, filepath.ToSlash(rel))
		}
		slices.Sort(out)
		return out
	}
	written, kept, err := Write(dir)
	if err != nil || !slices.Equal(relative(written), want[:5]) || !slices.Equal(relative(kept), want[5:]) {
		t.Fatalf("Write = %q, %q, %v, want %q but for the skill", written, kept, err, want)
	}
	if got := read(t, kept[0]); got != "mine\n" {
		t.Errorf("Write overwrote a file with %q", got)
	}
	if got := read(t, filepath.Join(dir, "ken.yaml")); got != string(config.Sample()) {
		t.Errorf("ken.yaml = %q, want the sample", got)
	}
	c, err := config.Load(dirs.Places{Home: dir, Project: t.TempDir()}, "")
	if want := config.StarterOn; err != nil || c.Catalog.Starter != want {
		t.Errorf("Load after Write has the starter %s, %v, want %s", c.Catalog.Starter, err, want)
	}
	written, kept, err = Write(dir)
	if err != nil || len(written) != 0 || !slices.Equal(relative(kept), want) {
		t.Errorf("Write again = %q, %q, %v, want everything kept", written, kept, err)
	}
}

func TestWriteBesideJSON(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "ken.json"), "{}")
	_, kept, err := Write(home)
	if err != nil || !slices.Equal(kept, []string{filepath.Join(home, "ken.json")}) {
		t.Errorf("Write = %q, %v, want ken.json kept", kept, err)
	}
	if _, err := config.Load(dirs.Places{Home: home, Project: t.TempDir()}, ""); err != nil {
		t.Errorf("Load after Write = %v", err)
	}
}

func TestWriteStaysInside(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), ".ken"), t.TempDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "cards")); err != nil {
		t.Fatal(err)
	}
	_, _, err := Write(dir)
	if err == nil || !strings.Contains(err.Error(), "adding-capabilities.md") {
		t.Errorf("Write through a link = %v, want an error that names the file", err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("Write wrote %v outside", entries)
	}
}

// TestSampleCatalog: what Write writes is read without a word of complaint.
func TestSampleCatalog(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Write(dir); err != nil {
		t.Fatal(err)
	}
	batch, err := source.NewTree(source.TreeConfig{Path: dir, Trust: capability.TrustUser}).Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range batch.Problems {
		t.Errorf("problem: %v", p)
	}
	got := map[capability.ID]capability.Kind{}
	for _, c := range batch.Capabilities {
		got[c.ID] = c.Kind
		if len(c.Findings) > 0 {
			t.Errorf("%s: findings %v", c.ID, c.Findings)
		}
	}
	want := map[capability.ID]capability.Kind{
		"adding-capabilities": capability.KindCard, "skill:decision-record": capability.KindSkill, "tool:recent-branches": capability.KindTool,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the sample catalog holds %v, want %v", got, want)
	}
	if len(batch.Documents) != 1 || batch.Documents[0].Role != capability.Map {
		t.Errorf("documents = %+v, want the map", batch.Documents)
	}
}

func TestCatalogMap(t *testing.T) {
	agents, err := fs.ReadFile(Catalog(), "AGENTS.md")
	if n := len([]rune(string(agents))); err != nil || n == 0 || n > 500 {
		t.Errorf("AGENTS.md has %d characters, %v, want at most 500", n, err)
	}
}
