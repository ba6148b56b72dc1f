package config

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/dirs"
	"ken/internal/know/source"
	"ken/internal/yamledit"
)

// keyLine is a line of the sample that has a key commented out.
var keyLine = regexp.MustCompile(`(?m)^(  )?# ([a-z][A-Za-z0-9]*: .*)$`)

// TestSample: the sample says the defaults, with every key commented out and
// with every key given.
func TestSample(t *testing.T) {
	sample := string(Sample())
	given := keyLine.ReplaceAllString(sample, "$1$2")
	if n, want := len(keyLine.FindAllString(sample, -1)), len(settings()); n != want {
		t.Fatalf("the sample has %d key lines, want %d", n, want)
	}
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	for _, text := range []string{sample, given} {
		write(t, file, text)
		c, err := Load(places, "")
		if err != nil || !reflect.DeepEqual(bare(c), bare(Default())) {
			t.Errorf("Load of\n%s= %+v, %v, want the defaults", text, c, err)
		}
		for _, s := range c.Settings() {
			if said := s.Origin != "default" && s.Origin != "profile personal"; said != (text == given) {
				t.Errorf("%s has origin %s", s.Key, s.Origin)
			}
		}
	}
	// As a project's file it neither widens nor changes anything.
	write(t, file, "")
	write(t, filepath.Join(places.Project, "ken.yaml"), given)
	if c, err := Load(places, ""); err != nil || !reflect.DeepEqual(bare(c), bare(Default())) {
		t.Errorf("Load of a project's sample = %+v, %v, want the defaults", c, err)
	}
}

func TestSampleIsEditable(t *testing.T) {
	sample := string(Sample())
	for _, s := range settings() {
		file := filepath.Join(t.TempDir(), "ken.yaml")
		write(t, file, sample)
		d := Default()
		value := yamledit.Flow(s.show(&d))
		if err := Set(file, s.name, value); err != nil {
			t.Errorf("Set(%s, %s) = %v", s.name, value, err)
			continue
		}
		// Exactly one line more, below the one that has it commented out.
		_, key, inSection := strings.Cut(s.name, ".")
		indent := "  "
		if !inSection {
			key, indent = s.name, ""
		}
		section := strings.Index(sample, "\n"+strings.TrimSuffix(s.name, "."+key)+":\n")
		line := indent + "# " + key + ": " + value + "\n"
		before, after := sample[:max(section, 0)], sample[max(section, 0):]
		if got, want := read(t, file), before+strings.Replace(after, line, line+indent+key+": "+value+"\n", 1); got != want || want == sample {
			t.Errorf("Set(%s, %s) in the sample gave\n%s", s.name, value, got)
		}
	}
}

func TestInit(t *testing.T) {
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
	written, kept, err := Init(dir)
	if err != nil || !slices.Equal(relative(written), want[:5]) || !slices.Equal(relative(kept), want[5:]) {
		t.Fatalf("Init = %q, %q, %v, want %q but for the skill", written, kept, err, want)
	}
	if got := read(t, kept[0]); got != "mine\n" {
		t.Errorf("Init overwrote a file with %q", got)
	}
	if got := read(t, filepath.Join(dir, "ken.yaml")); got != string(Sample()) {
		t.Errorf("ken.yaml = %q, want the sample", got)
	}
	c, err := Load(dirs.Places{Home: dir, Project: t.TempDir()}, "")
	if want := StarterOn; err != nil || c.Catalog.Starter != want {
		t.Errorf("Load after Init has the starter %s, %v, want %s", c.Catalog.Starter, err, want)
	}
	written, kept, err = Init(dir)
	if err != nil || len(written) != 0 || !slices.Equal(relative(kept), want) {
		t.Errorf("Init again = %q, %q, %v, want everything kept", written, kept, err)
	}
}

func TestInitBesideJSON(t *testing.T) {
	places, _, _ := at(t)
	write(t, filepath.Join(places.Home, "ken.json"), "{}")
	_, kept, err := Init(places.Home)
	if err != nil || !slices.Equal(kept, []string{filepath.Join(places.Home, "ken.json")}) {
		t.Errorf("Init = %q, %v, want ken.json kept", kept, err)
	}
	if _, err := Load(places, ""); err != nil {
		t.Errorf("Load after Init = %v", err)
	}
}

func TestInitStaysInside(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), ".ken"), t.TempDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "cards")); err != nil {
		t.Fatal(err)
	}
	_, _, err := Init(dir)
	if err == nil || !strings.Contains(err.Error(), "adding-capabilities.md") {
		t.Errorf("Init through a link = %v, want an error that names the file", err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("Init wrote %v outside", entries)
	}
}

// TestSampleCatalog: what Init writes is read without a word of complaint.
func TestSampleCatalog(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Init(dir); err != nil {
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

func TestInitFiles(t *testing.T) {
	agents, err := fs.ReadFile(InitFiles(), "AGENTS.md")
	if n := len([]rune(string(agents))); err != nil || n == 0 || n > 500 {
		t.Errorf("AGENTS.md has %d characters, %v, want at most 500", n, err)
	}
}
