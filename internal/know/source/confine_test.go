package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/sourcetest"
)

const outsideSecret = "the-secret-of-the-neighbour"

// traversal is what the specification has Ken say of a path that leaves its folder.
const traversal = "Path traversal detected"

// traversals are paths that lead, or pretend to lead, out of x/inner: T06.
func traversals(outside string) map[string]string {
	return map[string]string{
		"parent":                 "../secret.md",
		"parents to the root":    "../../../../../../etc/hostname.md",
		"parent inside":          "sub/../../secret.md",
		"dots behind a dot":      "./../secret.md",
		"absolute":               filepath.ToSlash(outside),
		"sibling of same prefix": "../inner-secret/secret.md",
		"NUL":                    "ok.md\x00../secret.md",
		"backslash":              `..\secret.md`,
		"drive":                  `C:\secret.md`,
		"network share":          `\\host\share\secret.md`,
		"home":                   "~/../secret.md",
		"encoded":                "%2e%2e/secret.md",
		"encoded slash":          "..%2fsecret.md",
		"full-width dots":        "．．/secret.md",
		"case folded":            "../SECRET.md",
		"long name":              strings.Repeat("n", 300) + ".md",
		"long path":              strings.Repeat("d/", 3000) + "x.md",
		"address":                "file:///etc/hostname.md",
		"folder":                 "sub.md",
		"dot":                    "./.md/..",
	}
}

// leaks fails when anything of a batch holds what lies outside.
func (p *place) leaks() {
	p.t.Helper()
	for _, c := range p.Capabilities {
		d, _ := p.tree.Detail(p.t.Context(), c)
		if text := fmt.Sprintf("%+v %s %s %s", c, d.Body, d.Schema, d.Usage); strings.Contains(text, outsideSecret) {
			p.t.Errorf("%s shows what lies outside", c.ID)
		}
	}
	for _, problem := range p.Problems {
		if strings.Contains(problem.String(), outsideSecret) {
			p.t.Errorf("a problem shows what lies outside: %s", problem)
		}
	}
}

// confined makes x/inner with a secret next to it, and one outside the tree.
func confined(t *testing.T, files map[string]string) (p *place, outside string) {
	t.Helper()
	outside = sourcetest.Write(t, t.TempDir(), "secret.md", outsideSecret)
	p = newPlace(t, map[string]string{
		"x/secret.txt":              "unread",
		"x/inner/sub.md/keep.txt":   "a folder called like a file",
		"x/inner-secret/secret.txt": "unread",
	})
	// The secrets are no units themselves, so that only a leak can show them.
	for _, name := range []string{"x/secret.md", "x/inner-secret/secret.md"} {
		sourcetest.Write(t, p.dir, name, outsideSecret)
	}
	for name, text := range files {
		sourcetest.Write(t, p.dir, name, text)
	}
	return p, outside
}

func TestT06TraversalOfSkillContent(t *testing.T) {
	_, outside := confined(t, nil)
	for name, given := range traversals(outside) {
		t.Run(name, func(t *testing.T) {
			p, _ := confined(t, map[string]string{"x/inner/CAPABILITY.yaml": fmt.Sprintf("kind: tool\nname: x\ndescription: d\nskillContent: %q\n", given)})
			p.load()
			p.leaks()
			if len(p.Problems) == 0 {
				t.Errorf("skillContent %q is taken without a word", given)
			}
			if strings.Contains(given, "..") && strings.HasPrefix(strings.TrimPrefix(given, "./"), "../") {
				p.wants("x/inner/CAPABILITY.yaml:4 error leaves-root: " + traversal)
			}
		})
	}
}

func TestT06TraversalOfFilePath(t *testing.T) {
	_, outside := confined(t, nil)
	for name, given := range traversals(outside) {
		t.Run(name, func(t *testing.T) {
			p, _ := confined(t, nil)
			// The tree is x/inner: everything beside it is outside.
			p.dir = filepath.Join(p.dir, "x", "inner")
			sourcetest.Write(t, p.dir, "registry.yaml", fmt.Sprintf("- id: x\n  filePath: %q\n  triggers: {keywords: [a]}\n", given))
			p.load()
			p.leaks()
			if len(p.Capabilities) != 0 || len(p.Problems) == 0 {
				t.Errorf("filePath %q: %d capabilities, problems:\n%swant a refusal", given, len(p.Capabilities), p.list())
			}
			if strings.HasPrefix(given, "../") {
				p.wants("registry.yaml:2 error leaves-root: " + given + ": " + traversal)
			}
		})
	}
}

func TestT06TraversalBySymlink(t *testing.T) {
	link := func(p *place, target, name string) {
		p.t.Helper()
		at := filepath.Join(p.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			p.t.Skip("cannot here: " + err.Error())
		}
	}
	manifest := "kind: tool\nname: x\ndescription: d\nskillContent: ./doc.md\n"
	tests := []struct {
		name string
		make func(p *place, outside string)
	}{
		{"text to the outside", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "x/inner/CAPABILITY.yaml", manifest)
			link(p, outside, "x/inner/doc.md")
		}},
		{"text to a neighbour in the tree", func(p *place, _ string) {
			sourcetest.Write(p.t, p.dir, "x/inner/CAPABILITY.yaml", manifest)
			link(p, "../secret.md", "x/inner/doc.md")
		}},
		{"folder to the outside", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "x/inner/CAPABILITY.yaml", strings.Replace(manifest, "./doc.md", "d/secret.md", 1))
			link(p, filepath.Dir(outside), "x/inner/d")
		}},
		{"link through a link", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "x/inner/CAPABILITY.yaml", manifest)
			link(p, "second.md", "x/inner/doc.md")
			link(p, outside, "x/inner/second.md")
		}},
		{"schema to the outside", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "x/inner/CAPABILITY.yaml", "kind: tool\nname: x\ndescription: d\n")
			link(p, outside, "x/inner/schema.json")
		}},
		{"manifest to the outside", func(p *place, outside string) { link(p, outside, "x/inner/CAPABILITY.yaml") }},
		{"skill to the outside", func(p *place, outside string) { link(p, outside, "x/inner/SKILL.md") }},
		{"skill to a neighbour", func(p *place, _ string) { link(p, "../secret.md", "x/inner/SKILL.md") }},
		{"script of a skill to the outside", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "x/inner/SKILL.md", "---\nname: inner\ndescription: d\n---\nx\n")
			link(p, outside, "x/inner/scripts/a.sh")
		}},
		{"card to the outside", func(p *place, outside string) { link(p, outside, "cards/a.md") }},
		{"command to the outside", func(p *place, outside string) { link(p, outside, "commands/a.md") }},
		{"map to the outside", func(p *place, outside string) { link(p, outside, "AGENTS.md") }},
		{"registry to a link to the outside", func(p *place, outside string) {
			sourcetest.Write(p.t, p.dir, "registry.yaml", "- id: x\n  filePath: texts/a.md\n  triggers: {keywords: [a]}\n")
			link(p, outside, "texts/a.md")
		}},
		{"registry itself", func(p *place, outside string) { link(p, outside, "capabilities.registry.yaml") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, outside := confined(t, nil)
			tt.make(p, outside)
			p.load()
			p.leaks()
			if len(p.Problems) == 0 {
				t.Error("it is passed over without a word")
			}
			for _, d := range p.Documents {
				if strings.Contains(d.Text, outsideSecret) {
					t.Error("the map shows what lies outside")
				}
			}
		})
	}
}

// A link that comes and goes while files are read leads nowhere either.
func TestT06TraversalBySwappedSymlink(t *testing.T) {
	testkit.CI(t, "hundreds of loads")
	p, outside := confined(t, map[string]string{
		"x/inner/CAPABILITY.yaml": "kind: tool\nname: x\ndescription: d\nskillContent: ./doc.md\n",
		"x/inner/doc.md":          "harmless",
		"registry.yaml":           "- id: y\n  filePath: texts/y.md\n  triggers: {keywords: [a]}\n",
		"texts/y.md":              "harmless",
	})
	files := []string{filepath.Join(p.dir, "x", "inner", "doc.md"), filepath.Join(p.dir, "texts", "y.md")}
	if err := os.Symlink(outside, files[0]+".link"); err != nil {
		t.Skip("cannot here: " + err.Error())
	}
	p.load()
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	for _, file := range files {
		swapping.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				next := fmt.Sprintf("%s.%d", file, i%2)
				os.Remove(next)
				if i%2 == 0 {
					os.Symlink(outside, next)
				} else {
					os.WriteFile(next, []byte("harmless"), 0o644)
				}
				os.Rename(next, file)
			}
		})
	}
	for range 300 {
		var err error
		if p.Batch, err = p.tree.Load(t.Context()); err != nil {
			t.Error(err)
			break
		}
		p.leaks()
	}
	close(stop)
	swapping.Wait()
}

// Files in a place that is not the user's own may not be hard links.
func TestT06TraversalByHardLink(t *testing.T) {
	p, _ := confined(t, map[string]string{"x/inner/SKILL.md": "---\nname: inner\ndescription: d\n---\nx\n"})
	p.trust = capability.TrustWorkspace
	secret := sourcetest.Write(t, filepath.Dir(p.dir), filepath.Base(p.dir)+"-secret.sh", outsideSecret)
	t.Cleanup(func() { os.Remove(secret) })
	for _, name := range []string{"x/inner/run.sh", "cards/a.md"} {
		at := filepath.Join(p.dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if err := os.Link(secret, at); err != nil {
			t.Skip("cannot here: " + err.Error())
		}
	}
	p.load()
	p.leaks()
	p.wants("cards/a.md error hard-link")
	p.wants("x/inner/run.sh warning unscanned-file: not scanned: the file has a second name")
}
