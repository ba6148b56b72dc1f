package source

import (
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

func TestNearMiss(t *testing.T) {
	for in, want := range map[string]string{
		"t/CAPABILITIES.yaml": "CAPABILITY.yaml", "t/CAPABILITY.json": "CAPABILITY.yaml", "t/capabilty.yml": "CAPABILITY.yaml",
		"t/channel.yaml": "channels.yaml", "chanels.yml": "channels.yaml", "channels.md": "channels.yaml",
		"preset.yml": "presets.yaml", "extension.yaml": "extensions.yaml",
		"SKILLS.md": "SKILL.md", "skil.md": "SKILL.md", "skill.yaml": "SKILL.md",
		"capability.registry.json": "capabilities.registry.yaml",
		"x/command/fix.md":         "commands/fix.md", "x/card/fix.md": "cards/fix.md",

		"README.md": "", "LICENSE.md": "", "x/command/README.md": "", "notes.md": "", "still.yaml": "", "kill.md": "", "bill.md": "",
		".vscode/extensions.json": "", "channels.json": "", "package.json": "", "x/docs/fix.md": "", "openapi.yaml": "",
		"prose.md": "", "present.md": "", "skim.md": "",
	} {
		if got := nearMiss(in); got != want {
			t.Errorf("nearMiss(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNamesThatAreAlmostRightAreSpokenOf(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "cards/a.md", sourcetest.Card)
	sourcetest.Write(t, dir, "channel.yaml", "channels: [{platform: irc}]\n")
	sourcetest.Write(t, dir, "command/fix.md", "Fix it.\n")
	sourcetest.Write(t, dir, "README.md", "# Read me\n")
	sourcetest.Write(t, dir, "notes.md", "Notes.\n")
	tree, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	want := "channel.yaml is not read; did you mean channels.yaml? | command/fix.md is not read; did you mean commands/fix.md?"
	check := func(when string, b capability.Batch) {
		t.Helper()
		var got []string
		for _, p := range b.Problems {
			if p.Code == "near-miss-name" && p.Severity == capability.Warning && p.Fix != "" {
				got = append(got, p.Message)
			}
		}
		if strings.Join(got, " | ") != want {
			t.Errorf("%s: near misses %q, want %q", when, got, want)
		}
	}
	check("Load", b)
	b, changed, err := tree.refresh(t.Context(), sighting{all: true})
	if err != nil || changed {
		t.Errorf("refresh of what is the same: changed %v, %v", changed, err)
	}
	check("refresh", b)

	sourcetest.Write(t, dir, "channel.yaml", "x: 1\n")
	b, err = tree.Refresh(t.Context(), []string{filepath.Join(dir, "channel.yaml")})
	must(t, err)
	check("Refresh of the file", b)
}

func TestATreeWithNothingInItSaysSo(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README.md", "LICENSE", "package.json", "a.md", "b.yaml", "x/c.json"} {
		sourcetest.Write(t, dir, name, "x: 1\n")
	}
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if len(b.Problems) != 1 || b.Problems[0].Code != "nothing-found" || b.Problems[0].Severity != capability.Warning ||
		b.Problems[0].Message != "no capability found here; 3 files were not recognised: a.md, b.yaml, x/c.json" || b.Problems[0].Fix == "" {
		t.Errorf("problems = %+v, want one about the three files", b.Problems)
	}
	if _, b := load(t, TreeConfig{Path: t.TempDir(), Trust: capability.TrustUser}); len(b.Problems) != 1 || b.Problems[0].Message != "no capability found here" {
		t.Errorf("an empty folder: problems %+v, want nothing-found", b.Problems)
	}
	if _, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser, Optional: true}); len(b.Problems) != 0 {
		t.Errorf("an optional folder: problems %v, want none", b.Problems)
	}
	sourcetest.Write(t, dir, "cards/a.md", sourcetest.Card)
	if _, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser}); len(b.Capabilities) != 1 || len(b.Problems) != 0 && b.Problems[0].Code == "nothing-found" {
		t.Errorf("with a card: %v, %v, want the card and nothing about an empty tree", b.Capabilities, b.Problems)
	}
}
