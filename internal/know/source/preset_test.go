package source

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source/lists"
	"ken/internal/testkit/sourcetest"
)

func TestPresets(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // "line name=member,member", apart by blanks
		problems   string
	}{
		{"list", "presets:\n- name: research\n  members: [tool:web-search, skill:summarizer]\n", "2 research=tool:web-search,skill:summarizer", ""},
		{"map under the key", "presets:\n  research: [a, b]\n  ship:\n    members: [c]\n", "2 research=a,b 3 ship=c", ""},
		{"bare map", "research: [a, b]\nship: c, d\n", "1 research=a,b 2 ship=c,d", ""},
		{"bare list", "- {name: a, members: [x]}\n", "1 a=x", ""},
		{"json", `{"presets":[{"name":"a","members":["x","y"]}]}`, "1 a=x,y", ""},
		{"no name", "presets:\n- members: [x]\n- {name: b, members: [y]}\n", "3 b=y", "2 no-name"},
		{"no members", "presets:\n- name: a\n- {name: b, members: []}\n- {name: c, members: [z]}\n", "4 c=z", "2 no-members, 3 no-members"},
		{"a member that is a map", "presets:\n- name: a\n  members:\n  - x\n  - {y: 1}\n", "2 a=x", "5 bad-value"},
		{"twice", "presets:\n- {name: a, members: [x, x, \" \"]}\n", "2 a=x", "2 repeated-member"},
		{"unknown key", "presets:\n- name: a\n  members: [x]\n  weight: 3\n", "2 a=x", "4 unknown-key"},
		{"entry is a number", "presets:\n- 3\n", "", "2 bad-value, 2 no-name"},
		{"broken", "presets: [\n", "", "1 bad-list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, "presets.yaml", tt.text)
			_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			var got []string
			for _, p := range b.Presets {
				got = append(got, fmt.Sprintf("%d %s=%s", p.Origin.Line, p.Name, strings.Join(p.Members, ",")))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("presets = %q, want %q", s, tt.want)
			}
			if s := lineCodes(b); s != tt.problems {
				t.Errorf("problems = %q, want %q: %v", s, tt.problems, b.Problems)
			}
		})
	}
}

func FuzzPresets(f *testing.F) {
	for _, s := range []string{"presets:\n- {name: a, members: [x]}\n", "a: [x, y]\n", "presets: {a: b, c: {members: d}}", "- 1", `{"presets":null}`} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add([]byte("presets: [{name: " + quoted + ", members: [" + quoted + "]}]\n"))
	})
	fuzzList(f, lists.PresetFormat())
}
