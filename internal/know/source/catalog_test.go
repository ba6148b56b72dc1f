package source

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/know/source/catalogfile"
	"ken/internal/know/source/parsecache"
	"ken/internal/testkit"
	"ken/internal/untrusted"
)

// benchFile returns the path of a file of the benchmark collection.
func benchFile(tb testing.TB, name ...string) string {
	tb.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		tb.Skip("KEN_BENCH is not set: it names the folder with the benchmark catalogs")
	}
	return filepath.Join(append([]string{dir}, name...)...)
}

// A plainRow is a row as encoding/json reads it.
type plainRow struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	Tags        []string        `json:"tags"`
	Schema      json.RawMessage `json:"input_schema"`
	DependsOn   []string        `json:"depends_on"`
	Annotations struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  *bool `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	} `json:"annotations"`
	Parameters []struct {
		Name, Description string
	} `json:"parameters"`
}

func plainRows(t *testing.T, p string) []plainRow {
	t.Helper()
	f, err := os.Open(p)
	must(t, err)
	defer f.Close()
	var rows []plainRow
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, catalogfile.MaxRowBytes)
	for lines.Scan() {
		var row plainRow
		must(t, json.Unmarshal(lines.Bytes(), &row))
		rows = append(rows, row)
	}
	return rows
}

func hintOf(b *bool) capability.Hint {
	if b == nil {
		return capability.Unsaid
	}
	return capability.HintOf(*b)
}

// TestLargeBenchCatalogsLoseNothing holds every row of the real catalogs against
// what encoding/json reads, from the file and from the cache.
func TestLargeBenchCatalogsLoseNothing(t *testing.T) {
	testkit.CI(t, "whole catalogs")
	for _, tt := range []struct {
		name string
		rows int
	}{
		{"catalog/npm-mcp", 6067}, {"catalog/toucan", 14938}, {"dev/acebench-en", 1982}, {"dev/bfcl-multiturn", 162}, {"dev/restbench", 94},
		{"train/apibank", 74}, {"train/metatool", 199}, {"train/sealtools", 4076}, {"train/toollinkos", 573},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := benchFile(t, filepath.FromSlash(tt.name), "corpus.jsonl")
			want := plainRows(t, p)
			if len(want) != tt.rows {
				t.Fatalf("%d rows in the file, want %d", len(want), tt.rows)
			}
			cache := &parsecache.Cache{Dir: filepath.Join(t.TempDir(), "cache")}
			for range 2 {
				tree, b := load(t, TreeConfig{Path: p, Trust: capability.TrustUser, Cache: cache})
				if len(b.Capabilities) != tt.rows || len(b.Problems) != 0 {
					t.Fatalf("loaded %d capabilities, want %d; problems %v", len(b.Capabilities), tt.rows, b.Problems)
				}
				for i, c := range b.Capabilities {
					checkRow(t, c, want[i])
					checkSchema(t, tree, c, want[i].Schema)
				}
			}
		})
	}
}

func checkRow(t *testing.T, c *capability.Capability, want plainRow) {
	t.Helper()
	if want.Category == "" {
		want.Category = "general"
	}
	got := plainRow{ID: string(c.ID), Name: c.Name, Description: c.Description, Category: c.Category}
	if c.Kind != capability.KindTool || got.ID != want.ID || got.Name != want.Name || got.Description != want.Description || got.Category != want.Category {
		t.Fatalf("%s: %s %+v, want id %s, name %s, category %s, description %s", c.Origin, c.Kind, got, want.ID, want.Name, want.Category, want.Description)
	}
	if !slices.Equal(c.Tags, want.Tags) || !slices.Equal(c.RequiredTools, want.DependsOn) {
		t.Fatalf("%s: tags %v, required tools %v, want %v, %v", c.Origin, c.Tags, c.RequiredTools, want.Tags, want.DependsOn)
	}
	a := want.Annotations
	if e := (capability.Effects{ReadOnly: hintOf(a.ReadOnly), Destructive: hintOf(a.Destructive), Idempotent: hintOf(a.Idempotent), OpenWorld: hintOf(a.OpenWorld)}); c.Effects != e {
		t.Fatalf("%s: effects %+v, want %+v", c.Origin, c.Effects, e)
	}
	for _, p := range want.Parameters {
		i := slices.IndexFunc(c.Parameters, func(have capability.Parameter) bool { return have.Name == p.Name })
		if i < 0 || p.Description != "" && c.Parameters[i].Description == "" {
			t.Fatalf("%s: parameters %v lack %v", c.Origin, c.Parameters, p)
		}
	}
}

func checkSchema(t *testing.T, tree *Tree, c *capability.Capability, want json.RawMessage) {
	t.Helper()
	d, err := tree.Detail(context.Background(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Origin, err)
	}
	if want != nil && string(d.Schema) != string(want) {
		t.Fatalf("%s: schema %s, want %s", c.Origin, d.Schema, want)
	}
}

// TestLargeJSONLPassesEveryFindingOn: what the scan finds in a text it also finds
// when the text comes in as a row's description or inside its schema.
func TestLargeJSONLPassesEveryFindingOn(t *testing.T) {
	testkit.CI(t, "a whole corpus")
	dir := os.Getenv("KEN_ATTACKS")
	if dir == "" {
		t.Skip("KEN_ATTACKS is not set: it names the folder with the attack texts")
	}
	f, err := os.Open(filepath.Join(dir, "unicode_smuggling.jsonl"))
	must(t, err)
	defer f.Close()
	found := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ Text string }
		must(t, json.Unmarshal(lines.Bytes(), &row))
		want := len(untrusted.Scan(row.Text)) > 0
		if want {
			found++
		}
		quoted, _ := json.Marshal(row.Text) // a text cannot fail
		for _, object := range []string{
			`{"name":"x","description":` + string(quoted) + `}`,
			`{"name":"x","input_schema":{"properties":{"p":{"description":` + string(quoted) + `}}}}`,
			`{"name":"x","parameters":[{"name":"p","description":` + string(quoted) + `}]}`,
		} {
			_, b, _ := loadText(t, "c.jsonl", object)
			if len(b.Capabilities) != 1 || (len(b.Capabilities[0].Findings) > 0) != want {
				t.Errorf("%.40q as %.30s: capabilities %v, want findings %v", row.Text, object, b.Capabilities, want)
			}
		}
	}
	if found == 0 {
		t.Error("the scan finds nothing in any of them")
	}
}
