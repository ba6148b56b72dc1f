package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
)

// TestFormats reads the folders in testdata/formats. An archive has the files
// of a folder and then, as "want" or "want: name", all that Ken makes of them;
// after that comes the next folder. Most have one: that each case is a folder
// below it shows that what is wrong costs only itself. The comment of an
// archive says what it shows. A line "show: run schema" there leaves only these
// fields of capabilities. A file whose name ends in ".quoted" holds a Go
// string, for bytes that an archive cannot have.
//
// KEN_UPDATE_GOLDEN=1 writes what is wanted anew.
func TestFormats(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "formats", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("archives %q, %v", archives, err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { checkArchive(t, path) })
	}
}

func checkArchive(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	must(t, err)
	_, show, _ := strings.Cut(string(a.Comment), "show: ")
	show, _, _ = strings.Cut(show, "\n")
	files := map[string]string{}
	for i, f := range a.Files {
		if !strings.HasPrefix(f.Name, "want") {
			name, text := unquoted(t, f.Name, string(f.Data))
			files[name] = text
			continue
		}
		t.Run(strings.TrimPrefix(f.Name, "want: "), func(t *testing.T) {
			a.Files[i].Data = []byte(inMemory(t, files).shown(strings.Fields(show)))
			golden(t, string(f.Data), string(a.Files[i].Data))
		})
		files = map[string]string{}
	}
	if os.Getenv("KEN_UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, txtar.Format(a), 0o644))
	}
}

// golden compares what came with what is wanted, unless that is written anew.
func golden(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" && os.Getenv("KEN_UPDATE_GOLDEN") == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// inMemory loads files that lie nowhere.
func inMemory(t *testing.T, files map[string]string) *place {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	p := &place{t: t, dir: "the-archive"}
	p.tree, p.Batch = load(t, TreeConfig{Name: "the-archive", Files: fsys, Trust: capability.TrustUser})
	return p
}

// unquoted returns a file of an archive as it is in the folder.
func unquoted(t *testing.T, name, text string) (string, string) {
	name, quoted := strings.CutSuffix(name, ".quoted")
	if !quoted {
		return name, text
	}
	text, err := strconv.Unquote(strings.TrimSpace(text))
	must(t, err)
	return name, text
}

// shown is all that a place was read as: each capability with its fields and
// details, then presets, documents and problems. Left out is what is usual:
// kind and name where they are the id's, the category general, trust and hash.
func (p *place) shown(fields []string) string {
	var b strings.Builder
	at := func(o capability.Origin) string {
		path, err := filepath.Rel(p.dir, o.Path)
		must(p.t, err)
		return strings.TrimSpace(fmt.Sprintf("%s:%d %s", filepath.ToSlash(path), o.Line, o.Pointer))
	}
	for _, c := range p.Capabilities {
		fmt.Fprintf(&b, "%s of %s\n", c.ID, at(c.Origin))
		d, err := p.tree.Detail(p.t.Context(), c)
		must(p.t, err)
		usual := []string{"id", "origin", "trust", "hash"}
		if c.ID == capability.MakeID(c.Kind, c.Name) {
			usual = append(usual, "kind", "name")
		}
		if c.Category == "general" {
			usual = append(usual, "category")
		}
		all := append(fieldsOf(p.t, c), field{"schema", string(d.Schema)}, field{"body", quoted(d.Body)}, field{"usage", strconv.Quote(d.Usage)})
		for _, f := range all {
			if f.value != "" && f.value != `""` && !slices.Contains(usual, f.name) && (len(fields) == 0 || slices.Contains(fields, f.name)) {
				fmt.Fprintf(&b, "  %s: %s\n", f.name, f.value)
			}
		}
	}
	for _, preset := range p.Presets {
		fmt.Fprintf(&b, "preset %s of %s: %s\n", preset.Name, at(preset.Origin), strings.Join(preset.Members, ", "))
	}
	for _, d := range p.Documents {
		fmt.Fprintf(&b, "document of %s: %v %s\n", at(d.Origin), d.Role, quoted(d.Text))
	}
	return strings.NewReplacer(p.dir+string(filepath.Separator), "", p.dir, ".").Replace(b.String() + p.list())
}

// A field is one of an object of JSON.
type field struct{ name, value string }

// fieldsOf returns the fields of a capability in their order, as JSON.
func fieldsOf(t *testing.T, c *capability.Capability) []field {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	must(t, e.Encode(c))
	d := json.NewDecoder(&text)
	_, err := d.Token()
	must(t, err)
	var out []field
	for d.More() {
		name, err := d.Token()
		must(t, err)
		var value json.RawMessage
		must(t, d.Decode(&value))
		text := string(value)
		if name == "description" {
			text = quoted(c.Description)
		}
		out = append(out, field{fmt.Sprint(name), text})
	}
	return out
}

// quoted is a text as Go writes it, and of a long one its beginning and length.
func quoted(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return fmt.Sprintf("%q… (%d characters)", string(runes[:60]), len(runes))
	}
	return strconv.Quote(s)
}
