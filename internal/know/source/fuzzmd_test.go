package source

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/markdown"
	"ken/internal/testkit/sourcetest"
)

// fuzzFiles reads files from memory and checks what must hold for any input.
func fuzzFiles(t *testing.T, files map[string]string) capability.Batch {
	t.Helper()
	fsys := fstest.MapFS{}
	size := 0
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		size += len(text)
	}
	if size > 16<<10 {
		t.Skip("long inputs only slow the search")
	}
	// A parser that never ends would only look like a slow fuzzer.
	watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("reading %q hangs", files)) })
	defer watchdog.Stop()
	tree := NewTree(TreeConfig{Name: "fuzz", Files: fsys, Trust: capability.TrustWorkspace})
	defer tree.Close()
	b, err := tree.Load(t.Context())
	if err != nil {
		t.Fatalf("Load(%q): %v", files, err)
	}
	for _, p := range b.Problems {
		if p.Code == "" || p.Message == "" || p.Origin.Path == "" || p.Origin.Line < 0 {
			t.Fatalf("%q: problem %+v lacks code, message or place", files, p)
		}
		if p.Code == "parser-panic" {
			t.Fatalf("%q: %s", files, p)
		}
	}
	for _, c := range b.Capabilities {
		if c.ID == "" || c.Kind == "" || c.Category == "" || !strings.HasPrefix(c.Hash, "sha256:") || c.Origin.Path == "" {
			t.Fatalf("%q: capability %+v is not complete", files, c)
		}
		if c.Trust != capability.TrustWorkspace {
			t.Fatalf("%q: %s has trust %v", files, c.ID, c.Trust)
		}
		d, err := tree.Detail(t.Context(), c)
		if err != nil {
			t.Fatalf("%q: Detail(%s): %v", files, c.ID, err)
		}
		if strings.ContainsFunc(string(c.ID)+c.Name, unicode.IsControl) {
			t.Fatalf("%q: %q holds a control character", files, c.ID)
		}
		if strings.Contains(d.Body+c.Description, "\x00") && len(c.Findings) == 0 {
			t.Fatalf("%q: a NUL came through unseen: %+v", files, c)
		}
	}
	return b
}

// fuzzHeads seed every target that reads YAML.
func fuzzHeads() []string {
	return []string{
		"", "name: x\ndescription: d\n", "name: x\ndescription: a: b\n", "id: x\ntriggers: {keywords: [a]}\npriority: 10\n",
		"a: &a [x,x]\nb: [*a]\n", "metadata:\n\trequires:\n\t\tbins: [gh]\n", "name: [x]\ndescription: {a: b}\n", "tags: a, b\nallowed-tools: Bash(git add:*) Read\n",
		"name:x\ndescription: >\n text\n", "triggers:\n  keywords: x\ntoken_budget: 99999999999999999999\n", "? [a]\n: b\n", "name: \"\\u0000\"\nkind: tool\n",
	}
}

func FuzzSkill(f *testing.F) {
	for _, head := range fuzzHeads() {
		f.Add("---\n"+head+"---\nBody\n", "#!/bin/sh\n")
	}
	f.Add(githubSkill, "\x00\xff")
	sourcetest.SeedAttacks(f, func(text, quoted string) { f.Add("---\nname: x\ndescription: "+quoted+"\n---\n"+text, text) })
	f.Fuzz(func(t *testing.T, text, script string) {
		b := fuzzFiles(t, map[string]string{"x/SKILL.md": text, "x/scripts/a.sh": script})
		// A skill is lost only when there is nothing to read.
		if len(b.Capabilities) == 0 && !strings.Contains(text, "\x00") && strings.Trim(text, "\ufeff \t\r\n\v\f\u0085\u00a0") != "" && len(b.Problems) == 0 {
			t.Fatalf("skill %q is lost without a word", text)
		}
	})
}

func FuzzCard(f *testing.F) {
	for _, head := range fuzzHeads() {
		f.Add("---\n" + head + "---\n" + cardText)
	}
	sourcetest.SeedAttacks(f, func(text, quoted string) {
		f.Add("---\nid: x\ndescription: " + quoted + "\ntriggers: {keywords: [" + quoted + "]}\n---\n" + text)
	})
	f.Fuzz(func(t *testing.T, text string) {
		b := fuzzFiles(t, map[string]string{"cards/x.md": text})
		if len(b.Capabilities) == 0 && len(b.Problems) == 0 {
			t.Fatalf("card %q is lost without a word", text)
		}
		for _, c := range b.Capabilities {
			if c.Priority < 0 || c.Priority > 100 || c.TokenBudget < 0 || c.TokenBudget > markdown.MaxCardTokens || c.MaxChars <= 0 || c.Triggers == nil {
				t.Fatalf("card %q gives %+v", text, c)
			}
		}
	})
}

func FuzzManifest(f *testing.F) {
	for _, head := range fuzzHeads() {
		f.Add("kind: tool\n"+head, `{"type":"object"}`, "---\nname: x\n---\nBody\n")
	}
	f.Add("kind: tool\nname: x\ndescription: d\nskillContent: ../x\nrun: {runner: exec.ls, argv: [ls, \"{a...}\"], url: \"https://x/{a}\"}\n", `{"properties":{"a":{"type":"array"}}}`, "x")
	sourcetest.SeedAttacks(f, func(text, quoted string) {
		f.Add("kind: tool\nname: "+quoted+"\ndescription: "+quoted+"\nrun: {runner: exec.ls, argv: [ls, "+quoted+"]}\n", `{"title":`+quoted+`}`, text)
	})
	f.Fuzz(func(t *testing.T, manifest, schema, skill string) {
		b := fuzzFiles(t, map[string]string{"x/CAPABILITY.yaml": manifest, "x/schema.json": schema, "x/SKILL.md": skill})
		if len(b.Capabilities) == 0 && len(b.Problems) == 0 {
			t.Fatalf("manifest %q is lost without a word", manifest)
		}
		for _, c := range b.Capabilities {
			if c.Run != nil && !regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`).MatchString(c.Run.Runner) {
				t.Fatalf("manifest %q gives runner %q", manifest, c.Run.Runner)
			}
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, head := range fuzzHeads() {
		f.Add("---\n" + head + "argument-hint: [a] [b]\n---\nDo $ARGUMENTS and !`ls`\n")
	}
	sourcetest.SeedAttacks(f, func(text, quoted string) { f.Add("---\ndescription: " + quoted + "\n---\n" + text + " $ARGUMENTS\n") })
	f.Fuzz(func(t *testing.T, text string) {
		b := fuzzFiles(t, map[string]string{"commands/x.md": text})
		if len(b.Capabilities) == 0 && len(b.Problems) == 0 {
			t.Fatalf("command %q is lost without a word", text)
		}
		for _, c := range b.Capabilities {
			if c.ID != "command:x" || c.Description == "" || len(c.Parameters) > 1 {
				t.Fatalf("command %q gives %+v", text, c)
			}
		}
	})
}

func FuzzRegistry(f *testing.F) {
	f.Add("- id: x\n  filePath: texts/x.md\n  triggers: {keywords: [a]}\n", "---\npriority: 3\n---\n"+cardText)
	f.Add("[{id: x, filePath: 'texts/x.md', triggers: {keywords: [a]},},]", "text")
	f.Add("capabilities: [{file_path: ../x.md}, 1, {}]", "---\ntriggers: [\n---\n")
	for _, head := range fuzzHeads() {
		f.Add("filePath: texts/x.md\n"+head, "---\n"+head+"---\n")
	}
	sourcetest.SeedAttacks(f, func(text, quoted string) {
		f.Add("- {id: "+quoted+", filePath: "+quoted+", triggers: {keywords: ["+quoted+"]}}\n", text)
	})
	f.Fuzz(func(t *testing.T, registry, card string) {
		b := fuzzFiles(t, map[string]string{"capabilities.registry.yaml": registry, "texts/x.md": card})
		brought := 0
		for _, c := range b.Capabilities {
			if c.Kind == capability.KindCard {
				brought++
			}
		}
		if brought > 1 {
			t.Fatalf("registry %q and card %q give the card %d times", registry, card, brought)
		}
	})
}
