package source

import (
	"fmt"
	"path/filepath"
	"testing"

	"ken/capability"
)

func TestCommandReadsEveryField(t *testing.T) {
	p := loaded(t, map[string]string{"commands/fix-issue.md": `---
description: Fix an issue
argument-hint: [issue-number] [priority]
allowed-tools: Bash(git add:*), Read
model: fast
---

Fix issue $ARGUMENTS.
`})
	c := p.one("command:fix-issue")
	if c.Kind != capability.KindCommand || c.Name != "fix-issue" || c.Description != "Fix an issue" {
		t.Errorf("command = %+v", c)
	}
	for key, want := range map[string]string{"argument-hint": "[issue-number] [priority]", "allowed-tools": "Bash(git add:*), Read", "model": "fast"} {
		if got := c.Meta[key]; got != want {
			t.Errorf("Meta[%s] = %q, want %q", key, got, want)
		}
	}
	p.wants("commands/fix-issue.md:3 warning mended-frontmatter: argument-hint is not valid YAML")
	d := p.detail("command:fix-issue")
	if d.Body != "Fix issue $ARGUMENTS." {
		t.Errorf("body = %q, want the template", d.Body)
	}
	want := capability.Parameter{Name: "arguments", Type: "string", Description: "[issue-number] [priority]"}
	if len(c.Parameters) != 1 || c.Parameters[0] != want {
		t.Errorf("parameters = %+v, want %+v", c.Parameters, want)
	}
}

func TestCommandNames(t *testing.T) {
	for path, want := range map[string]capability.ID{
		"commands/review.md":             "command:review",
		".claude/commands/review.md":     "command:review",
		"commands/frontend/component.md": "command:frontend:component",
		"commands/a/b/c.md":              "command:a:b:c",
		"x/commands/git/commands/d.md":   "command:git:commands:d",
		"Commands/Upper_Case.md":         "command:Upper_Case",
		"commands/with.dots.md":          "command:with.dots",
	} {
		p := loaded(t, map[string]string{path: "Do it.\n"})
		p.clean()
		p.one(want)
	}
	p := loaded(t, map[string]string{"commands/two words.md": "Do it.\n"})
	p.one("command:two words")
	p.wants("commands/two words.md warning command-name")
}

func TestCommandIsOneParameterOrNone(t *testing.T) {
	for body, want := range map[string]int{
		"Do $ARGUMENTS now.": 1, "Take $1 and $2.": 1, "$9": 1, "End $1": 1,
		"No arguments.": 0, "It costs $100.": 0, "$ARGUMENTSX": 0, "$0": 0, "${1}": 0,
	} {
		p := loaded(t, map[string]string{"commands/x.md": body})
		if got := len(p.one("command:x").Parameters); got != want {
			t.Errorf("%q has %d parameters, want %d", body, got, want)
		}
	}
}

func TestCommandDescriptions(t *testing.T) {
	for text, want := range map[string]string{
		"---\ndescription: Said\n---\nBody\n":     "Said",
		"---\ndescription: a: b\n---\nBody\n":     "a: b",
		"# Heading first\n\nThen text.\n":         "Heading first",
		"---\nmodel: x\n---\n\nFirst line.\nMore": "First line.",
		"***\n---x\n": "x",
	} {
		p := loaded(t, map[string]string{"commands/x.md": text})
		if got := p.one("command:x").Description; got != want {
			t.Errorf("%q: description = %q, want %q", text, got, want)
		}
	}
}

func TestCommandProblems(t *testing.T) {
	tests := []struct {
		name, text, want string
		lost             bool
	}{
		{"empty", "", "commands/x.md error empty-file: the command has no text", true},
		{"only frontmatter", "---\ndescription: d\n---\n", "commands/x.md error empty-file", true},
		{"NUL", "a\nb\x00\n", "commands/x.md:2 error not-text", true},
		{"unknown key", "---\ndescription: d\ncolour: red\n---\nx\n", "commands/x.md:3 warning unknown-key: command has no key colour", false},
		{"shell", "---\ndescription: d\n---\n\nStatus:\n\n- now: !`git status`\n", "commands/x.md:7 warning command-shell", false},
		{"not UTF-8", "caf\xe9\n", "commands/x.md:1 warning not-utf8", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"commands/x.md": tt.text, "commands/good.md": "Good.\n"})
			p.find("command:good")
			if got := len(p.Capabilities) == 1; got != tt.lost {
				t.Errorf("lost = %v, want %v", got, tt.lost)
			}
			p.wants(tt.want)
			if len(p.Problems) != 1 {
				t.Errorf("problems:\n%swant one", p.list())
			}
		})
	}
}

func TestWhichFilesAreCommands(t *testing.T) {
	p := loaded(t, map[string]string{
		"commands/README.md":        "# About\n",
		"commands/a.txt":            "no",
		"commands/skill/SKILL.md":   "---\nname: skill\ndescription: d\n---\nx\n",
		"notes/commands.md":         "no",
		"loose/named.md":            "---\nargument-hint: <x>\n---\nx $1\n",
		"commands/with-triggers.md": "---\ntriggers: {keywords: [a]}\n---\nStill a command.\n",
	})
	var got []string
	for _, c := range p.Capabilities {
		got = append(got, string(c.ID))
	}
	if want := "[skill:skill command:with-triggers command:named]"; fmt.Sprint(got) != want {
		t.Errorf("capabilities = %v, want %s", got, want)
	}
	one := newPlace(t, map[string]string{"any.md": "---\nargument-hint: x\n---\nx\n"})
	_, b := load(t, TreeConfig{Path: filepath.Join(one.dir, "any.md"), Trust: capability.TrustUser})
	if len(b.Capabilities) != 1 || b.Capabilities[0].ID != "command:any" {
		t.Errorf("a single command gives %v, %v", b.Capabilities, b.Problems)
	}
}
