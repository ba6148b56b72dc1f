package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/dirs"
)

// at makes the places of a user whose files are in home and who works in work,
// both below a temporary directory.
func at(t testing.TB) (places dirs.Places, home, work string) {
	t.Helper()
	dir := t.TempDir()
	home, work = filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	places, err := dirs.New(func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}, work)
	if err != nil {
		t.Fatal(err)
	}
	return places, home, work
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// bare is a Config without its memory of files.
func bare(c Config) Config {
	c.files, c.origins, c.other, c.spoken = nil, nil, nil, policyText{}
	c.Catalog.Sources = slices.Clone(c.Catalog.Sources)
	for i := range c.Catalog.Sources {
		c.Catalog.Sources[i].Origin = capability.Origin{}
	}
	c.Policy.Modes, c.Policy.Access.Tools = maps.Clone(c.Policy.Modes), maps.Clone(c.Policy.Access.Tools)
	for name, m := range c.Policy.Modes {
		m.Where = ""
		c.Policy.Modes[name] = m
	}
	c.Policy.Access.Name = ""
	for name, t := range c.Policy.Access.Tools {
		t.Line = 0
		c.Policy.Access.Tools[name] = t
	}
	c.Policy.Rules = slices.Clone(c.Policy.Rules)
	for i := range c.Policy.Rules {
		c.Policy.Rules[i].Where = ""
	}
	return c
}

// TestS171SeedExample: the seed's JSON example is accepted as it stands, under
// either name.
func TestS171SeedExample(t *testing.T) {
	text, err := os.ReadFile("testdata/seed/ken.json")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Capabilities.ForceInclude = []string{"token-economy"}
	want.Capabilities.Exclude = []string{"experimental-feature"}
	want.Capabilities.LogLevel = LogDetailed
	for _, name := range []string{"ken.json", "ken.yaml"} {
		places, _, _ := at(t)
		file := filepath.Join(places.Home, name)
		write(t, file, string(text))
		got, err := Load(places, "")
		if err != nil || !reflect.DeepEqual(bare(got), bare(want)) {
			t.Errorf("%s: Load = %+v, %v, want %+v", name, got, err, want)
		}
		if !slices.Equal(got.Files(), []string{file}) {
			t.Errorf("%s: Files() = %q, want %q", name, got.Files(), file)
		}
	}
}

func TestExplainUnknown(t *testing.T) {
	for key, want := range map[string]string{
		"capabilities.maxToken":    "did you mean capabilities.maxTokens?",
		"maxTokens":                "did you mean capabilities.maxTokens?",
		"catalog":                  "name one of its keys: starter, sources,",
		"catalog.pins.tool:x":      "no such pin",
		"catalog.overrides.tool:x": "no such override",
		"\x1b[2J":                  `get "\x1b[2J": there is no such key`,
	} {
		_, _, err := Default().Explain(key)
		if err == nil || !strings.Contains(err.Error(), want) || capability.KindOf(err) != capability.Invalid {
			t.Errorf("Explain(%q) = %v, want %q", key, err, want)
		}
	}
}

// TestLoadLayers: a project's file narrows, an explicit file replaces both.
func TestLoadLayers(t *testing.T) {
	places, _, work := at(t)
	user, project := filepath.Join(places.Home, "ken.yaml"), filepath.Join(places.Project, "ken.yaml")
	write(t, user, `capabilities:
  maxTokens: 1000
  forceInclude: [a, b]
  exclude: [c]
discovery:
  tier1TopK: 3
catalog:
  sources: [{name: mine, path: /mine}]
`)
	write(t, project, `capabilities:
  enabled: false
  maxTokens: 1200 # within the default, but the user has less
  forceInclude: [b]
  exclude: [c, d]
  logLevel: detailed
discovery:
  tier1TopK: 2
  tier1MinRelevance: 0.5
catalog:
  starter: off
  watch: false
  debounce: 1s
  pins: {}
  sources: [{path: tools}, {name: docs, path: ../docs, trust: remote}]
serve:
  addr: 127.0.0.1:7777
`)
	c, err := Load(places, "")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"capabilities.enabled":        {"false", project + ":2"},
		"capabilities.maxTokens":      {"1000", user + ":2"},
		"capabilities.forceInclude":   {"[b]", project + ":4"},
		"capabilities.exclude":        {"[c, d]", user + ":4, " + project + ":5"},
		"capabilities.logLevel":       {"detailed", project + ":6"},
		"discovery.tier1TopK":         {"2", project + ":8"},
		"discovery.tier1MinRelevance": {"0.5", project + ":9"},
		"discovery.tier2TopK":         {"2", "default"},
		"catalog.starter":             {"off", project + ":11"},
		"serve.addr":                  {"127.0.0.1:7777", project + ":17"},
	} {
		if value, origin, err := c.Explain(key); err != nil || value != want[0] || origin != want[1] {
			t.Errorf("Explain(%s) = %s, %s, %v, want %q", key, value, origin, err, want)
		}
	}
	var got []string
	for _, s := range c.Catalog.Sources {
		got = append(got, fmt.Sprintf("%s %s %v", s.Name, s.Path, s.Trust))
	}
	want := []string{"mine /mine user", "tools " + work + "/.ken/tools workspace", "docs " + work + "/docs remote"}
	if !slices.Equal(got, want) {
		t.Errorf("sources = %q, want %q", got, want)
	}

	write(t, filepath.Join(work, "other.yaml"), "capabilities: {maxTokens: 7, allowWorkspaceCards: true}\n")
	c, err = Load(places, "other.yaml")
	if err != nil || c.Capabilities.MaxTokens != 7 || !c.Capabilities.AllowWorkspaceCards || len(c.Catalog.Sources) > 0 || !c.Capabilities.Enabled {
		t.Errorf("Load(other.yaml) = %+v, %v, want only what it says", c, err)
	}
	if _, err = Load(places, "gone.yaml"); err == nil || !strings.Contains(err.Error(), "gone.yaml: the file is not there; create it") {
		t.Errorf("Load(gone.yaml) = %v, want that it is not there", err)
	}
}

// TestLoadAtHome: the user's own file is not a project's, however it is
// reached.
func TestLoadAtHome(t *testing.T) {
	_, home, work := at(t)
	env := map[string]string{"HOME": home}
	write(t, filepath.Join(home, ".ken/ken.yaml"), "capabilities: {allowWorkspaceCards: true}\n")
	link := filepath.Join(work, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, cwd := range []string{home, link} {
		places, err := dirs.New(func(s string) string { return env[s] }, cwd)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Load(places, ""); err != nil || !c.Capabilities.AllowWorkspaceCards {
			t.Errorf("Load in %s = %+v, %v, want the user's file as the user's", cwd, c, err)
		}
	}
}

// TestLoadUnreadable: what cannot be read is an error and never "no file", and
// nothing waits.
func TestLoadUnreadable(t *testing.T) {
	tests := []struct {
		name string
		make func(file string) error
		want string
	}{
		{"directory", func(f string) error { return os.Mkdir(f, 0o755) }, "not a regular file"},
		{"pipe", func(f string) error { return makePipe(f) }, "not a regular file"},
		{"dangling link", func(f string) error { return os.Symlink("nowhere", f) }, "the file is not there"},
		{"loop", func(f string) error { return os.Symlink(filepath.Base(f), f) }, "too many levels"},
		{"huge", func(f string) error {
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(f, 10<<30)
		}, "larger than 1048576 bytes"},
		{"NUL", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a\x00b\n"), 0o644) }, "ken.yaml:2: the text holds a NUL byte"},
		{"not UTF-8", func(f string) error { return os.WriteFile(f, []byte("serve: \xff\n"), 0o644) }, "ken.yaml:1: the text is not valid UTF-8"},
		{"indentation", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a:1\n watch: true\n"), 0o644) }, "ken.yaml:3: "},
		{"two keys", func(f string) error { return os.WriteFile(f, []byte("serve:\n  addr: a:1\nserve:\n"), 0o644) }, "ken.yaml:3: "},
		{"bomb", func(f string) error { return os.WriteFile(f, []byte("a: &a [x]\nb: [*a, *a]\n"), 0o644) }, "anchors"},
		{"deep", func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("[", 5000)), 0o644) }, "nested deeper"},
		{"wide", func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("k: 1\n", 60_000)), 0o644) }, "more than 40000 keys"},
	}
	for _, tt := range tests {
		for _, layer := range []string{"user", "project", "explicit"} {
			t.Run(tt.name+"/"+layer, func(t *testing.T) {
				places, _, work := at(t)
				dir, explicit := map[string]string{"user": places.Home, "project": places.Project, "explicit": work}[layer], ""
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := tt.make(filepath.Join(dir, "ken.yaml")); errors.Is(err, errors.ErrUnsupported) {
					t.Skip("this system cannot make one: ", err)
				} else if err != nil {
					t.Fatal(err)
				}
				if layer == "explicit" {
					explicit = filepath.Join(dir, "ken.yaml")
				}
				_, err := Load(places, explicit)
				var refused *Error
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Load = %v, want %q", err, tt.want)
				}
			})
		}
	}
	t.Run("home is a file", func(t *testing.T) {
		places, _, _ := at(t)
		write(t, places.Home, "")
		if _, err := Load(places, ""); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("Load = %v, want that it is not a directory", err)
		}
	})
}

func TestLoadLenientBytes(t *testing.T) {
	places, _, _ := at(t)
	for _, text := range []string{
		"\ufeffserve:\r\n  addr: localhost:1\r\n", "---\nserve: {addr: 'localhost:1'}\n...\n", "{\"serve\":\t{\"addr\": \"localhost:1\"}}",
		"serve:\n    \"addr\": \"localhost:1\" # here\ncatalog:\ndiscovery: ~\n",
	} {
		write(t, filepath.Join(places.Home, "ken.yaml"), text)
		if c, err := Load(places, ""); err != nil || c.Serve.Addr != "localhost:1" {
			t.Errorf("Load of %q = %q, %v, want localhost:1", text, c.Serve.Addr, err)
		}
	}
}

func TestFile(t *testing.T) {
	p, _, _ := at(t)
	if got, err := File(p); err != nil || got != filepath.Join(p.Home, "ken.yaml") {
		t.Errorf("File = %s, %v, want ken.yaml although it is not there", got, err)
	}
	write(t, filepath.Join(p.Home, "ken.json"), "{}")
	if got, err := File(p); err != nil || got != filepath.Join(p.Home, "ken.json") {
		t.Errorf("File = %s, %v, want ken.json", got, err)
	}
	write(t, filepath.Join(p.Home, "ken.yaml"), "")
	if got, err := File(p); err == nil {
		t.Errorf("File = %s with both, want an error", got)
	}
}
