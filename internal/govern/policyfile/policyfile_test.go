package policyfile_test

import (
	"os"
	"strings"
	"testing"

	"ken/internal/govern/policy"
	"ken/internal/govern/policyfile"
)

// TestT16ToolAccessRefused: whatever is not known refuses the file, with its
// line, and nothing is enabled (T17, C15).
func TestT16ToolAccessRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"global\": {\n\"mode\": \"ful\"}}":                      "line 3: mode: unknown value \"ful\"; did you mean full?",
		"{\n\"globl\": {}}":                                          "line 2: unknown key globl",
		"{\"tools\": {\n\"shell\": {\"enable\": true}}}":             "line 2: unknown key enable",
		"{\"tools\": {\"shell\": {\"enabled\": \"yes\"}}}":           "enabled is text, want true or false",
		"{\"tools\": {\"shell\": {\"enabled\": null}}}":              "tools.shell.enabled has no value",
		"{\"tools\": {\"shell\": true}}":                             "tools.shell is true or false, want a map",
		"{\"tools\": {\"shell\": {\"timeoutMs\": 0}}}":               "timeoutMs is 0",
		"{\"tools\": {\"shell\": {}, \"shell\": {}}}":                "duplicate key",
		"{\"tools\": {\"shell\": {}, \"run_command\": {}}}":          "another name of shell",
		"{\"tools\": {\"shell\": {\"allowedPrefixes\": [\"a;b\"]}}}": "shell syntax is not allowed",
		"{} {}": "text after", "[]": "want an object", "": "invalid JSON", "{\"a\":": "invalid JSON",
	} {
		a, err := policyfile.ParseToolAccess("tool-access.json", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tool-access.json") {
			t.Errorf("ParseToolAccess(%q) = %v, want %q", text, err, want)
		}
		if a.Enabled || a.Tools != nil {
			t.Errorf("ParseToolAccess(%q) enables %+v", text, a)
		}
	}
}

// TestRefusedSections: a policy section with anything wrong is refused whole,
// with the line and the mend.
func TestRefusedSections(t *testing.T) {
	for text, want := range map[string]string{
		"profile: personnal":                      "line 1: profile: unknown value \"personnal\"; did you mean personal?",
		"profil: personal":                        "line 1: unknown key profil; did you mean profile?",
		"profile:":                                "profile has no value",
		"deployment: open":                        "unknown value \"open\"",
		"intents: loose":                          "unknown value \"loose\"",
		"\nintentMap: {PLANN: [read]}":            "line 2: unknown intent PLANN",
		"intentMap: {PLAN: [reed]}":               "unknown value \"reed\"",
		"modes: {a: {groups: [reed]}}":            "unknown group",
		"modes: {a: {}}":                          "has no groups",
		"modes: {a: {groups: [edit], files: []}}": "files is empty",
		"modes: {a: {groups: [read, [command, {fileRegex: x}]]}}":                 "only the group edit",
		"modes: {a: {groups: [[edit, {fileRegex: '('}]]}}":                        "not a regular expression",
		"modes: {a: {groups: [[read]]}}":                                          "unknown group",
		"permissions: {execute: deny}":                                            "unknown permission execute",
		"permissions: {exec: never}":                                              "write deny, ask or allow",
		"readRoots: [data]":                                                       "is not absolute",
		"protect: ['../x']":                                                       "contains ..",
		"askAbove: 101":                                                           "askAbove is 101",
		"toolAccess: {global: {mode: ful}}":                                       "did you mean full",
		"rules: [{id: a}]":                                                        "rule a has no effect",
		"rules: [{id: a, effect: permit}]":                                        "unknown effect",
		"rules: [{id: a, effect: deny, capability: [x]}]":                         "did you mean rules[0].capabilities",
		"rules: [{id: a, effect: deny, argv: ['a;b']}]":                           "shell syntax is not allowed",
		"rules: [{id: a, effect: deny, argv: ['git push'], match: ['git pull']}]": "should match but does not",
		"rules: [{id: a, effect: deny, argv: [git], notMatch: ['git pull']}]":     "should not match but does",
		"rules: [{id: a, effect: deny, hosts: ['http://x']}]":                     "without scheme",
		"rules: [{id: a, effect: deny, access: write}]":                           "the rule has none; add paths",
		"rules: [{id: a, effect: deny, match: [x]}]":                              "remove them",
		"rules: [{id: a, effect: deny, destructive: true}]":                       "valid only with effect: allow",
		"rules: [{id: a, effect: deny, intents: [X]}]":                            "unknown value \"X\"",
	} {
		s, err := policyfile.ParseYAML("ken.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseYAML(%q) = %v, want %q", text, err, want)
		}
		if len(s.Rules) > 0 || s.Modes != nil {
			t.Errorf("ParseYAML(%q) gives settings besides its error", text)
		}
	}
	for text, want := range map[string]string{
		"rules: [{id: a, effect: deny}, {id: a, effect: deny}]": "two rules are named a",
		"rules: [{id: a, effect: deny, modes: [nix]}]":          "unknown mode \"nix\"",
		"{askAbove: 90, denyAbove: 50}":                         "want 0 ≤ askAbove ≤ denyAbove",
		"cedar: [org.cedar]":                                    "the text was not loaded",
	} {
		s, err := policyfile.ParseYAML("ken.yaml", []byte(text))
		if err != nil {
			t.Errorf("ParseYAML(%q) = %v", text, err)
			continue
		}
		if r, err := policy.Compile(s); r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Compile(%q) = %v, want %q", text, err, want)
		}
	}
}

func FuzzToolAccess(f *testing.F) {
	raw, err := os.ReadFile("../policy/testdata/tool-access.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"global": {"enabled": false, "mode": "allowlist", "allowedTools": ["a*"]}}`))
	f.Add([]byte(`{"tools": {"shell": {"enabled": null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := policyfile.ParseToolAccess("f", data)
		if err != nil {
			if a.Enabled || a.Tools != nil {
				t.Fatalf("an error and access: %+v", a)
			}
			return
		}
		s := policy.Defaults(policy.Seed)
		s.Access = a
		if _, err := policy.Compile(s); err != nil {
			t.Fatalf("what was read does not compile: %v", err)
		}
	})
}
