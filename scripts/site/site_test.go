package main

import (
	"archive/zip"
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDocumentation builds the site of this repository: every link leads
// somewhere, and nothing in it needs what the page's security policy forbids.
func TestDocumentation(t *testing.T) {
	for _, brief := range []bool{false, true} {
		files, err := build(os.DirFS("../.."), brief)
		if err != nil {
			t.Fatal(err)
		}
		if files["index.html"] == nil || files["mcp.html"] == nil || (files["coverage.html"] == nil) != brief || (files["pictures/chat.png"] == nil) != brief {
			t.Errorf("brief %v: the site has %d files, and not those that it should", brief, len(files))
		}
		if menu := files["index.html"]; bytes.Contains(menu, []byte("<h2>More</h2>")) {
			t.Errorf("brief %v: a page is in no section of site.go", brief)
		}
		for _, name := range []string{"faq.html", "troubleshooting.html", "roadmap.html", "configuration.html"} {
			if !bytes.Contains(files["index.html"], []byte(`<a href="`+name+`"`)) {
				t.Errorf("brief %v: the menu has no %s", brief, name)
			}
		}
		inline := regexp.MustCompile(`<[^>]+ (style|on[a-z]+)="|<script>|<style>|src="http`)
		for name, data := range files {
			if found := inline.Find(data); strings.HasSuffix(name, ".html") && found != nil {
				t.Errorf("%s has %s", name, found)
			}
		}
	}
}

func site(t *testing.T, more map[string]string) (map[string][]byte, error) {
	t.Helper()
	root := fstest.MapFS{
		"README.md": {}, "CHANGELOG.md": {}, "SECURITY.md": {}, "CONTRIBUTING.md": {},
		"docs/mcp.md": {Data: []byte("# MCP: a gateway\n\n## What it sees\n\nText of *mine*.\n\n## What it sees\n")},
		"main.go":     {}, "docs/pictures/a.png": {Data: []byte("x")},
	}
	for name, text := range more {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return build(root, false)
}

func TestLinks(t *testing.T) {
	tests := []struct{ link, want string }{
		{"[a](docs/mcp.md)", `<a href="mcp.html">a</a>`},
		{"[docs/mcp.md](docs/mcp.md)", `<a href="mcp.html">MCP</a>`},
		{"[a](docs/mcp.md#what-it-sees-1)", `<a href="mcp.html#what-it-sees-1">a</a>`},
		{"[a](main.go)", `<p>a</p>`},
		{"[a](https://example.org/x)", `<a href="https://example.org/x">a</a>`},
		{"![a](docs/pictures/a.png)", `<img src="pictures/a.png" alt="a"`},
	}
	for _, tt := range tests {
		files, err := site(t, map[string]string{"README.md": tt.link})
		if err != nil || !bytes.Contains(files["index.html"], []byte(tt.want)) {
			t.Errorf("%s becomes %s, %v; want %s", tt.link, files["index.html"], err, tt.want)
		}
	}
	for link, want := range map[string]string{
		"[a](docs/none.md)": "no such file", "[a](docs/mcp.md#none)": "docs/mcp.md has no heading #none", "[a](#none)": "README.md has no heading #none",
	} {
		if _, err := site(t, map[string]string{"README.md": link}); err == nil || !strings.Contains(err.Error(), "README.md: link") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", link, err, want)
		}
	}
}

// TestNewPage: a page that no section names is in the menu all the same.
func TestNewPage(t *testing.T) {
	files, err := site(t, map[string]string{"docs/new.md": "# Something new\n\nIt says `ken new`.\n"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `<a href="new.html">Something new</a>`; !bytes.Contains(files["mcp.html"], []byte(want)) {
		t.Errorf("the menu lacks %s:\n%s", want, files["mcp.html"])
	}
	if want := `"heading":"Something new","address":"new.html#something-new","text":"It says ken new."`; !bytes.Contains(files["search.js"], []byte(want)) {
		t.Errorf("the search lacks %s:\n%s", want, files["search.js"])
	}
}

func TestArchiveIsReproducible(t *testing.T) {
	var first []byte
	for range 3 {
		files, err := site(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := archive(files)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			t.Fatal("the same files make different archives")
		}
	}
	r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(r, "index.html", "mcp.html", "search.js"); err != nil {
		t.Error(err)
	}
}

// TestSearchText: the search finds and shows the same as in the whole text.
func TestSearchText(t *testing.T) {
	start := strings.Repeat("word ", 40)
	for text, want := range map[string]string{
		"a  short\ntext a":                   "a short text a",
		start:                                strings.Repeat("word ", 32) + "word",
		start + "Other word other WORD last": strings.Repeat("word ", 32) + "word Other last",
	} {
		if got := searchText(text); got != want {
			t.Errorf("searchText(%q) = %q, want %q", text, got, want)
		}
	}
}
