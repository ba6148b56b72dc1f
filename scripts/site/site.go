package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:embed page.html style.css search.js
var assets embed.FS

// A section is a part of the menu. Pages that no section names follow under
// "More", so that a new page is never lost.
type section struct {
	title string
	pages []string // Markdown files, relative to the repository
}

var sections = []section{
	{"Start", []string{"README.md", "docs/install.md", "docs/faq.md", "docs/troubleshooting.md"}},
	{"Tutorials", []string{
		"docs/tutorials/client.md", "docs/tutorials/approval.md", "docs/tutorials/openapi.md", "docs/tutorials/team.md", "docs/tutorials/go.md",
	}},
	{"Use it", []string{
		"docs/clients.md", "docs/mcp.md", "docs/chat.md", "docs/page.md", "docs/page-design.md", "docs/apis.md", "docs/databases.md", "docs/browser.md",
		"docs/jobs.md", "docs/scale.md", "docs/library.md", "docs/sources.md", "docs/backup.md", "docs/upgrading.md",
	}},
	{"Reference", []string{"docs/commands.md", "docs/configuration.md", "docs/http.md", "docs/metrics.md", "docs/mcp-table.md", "CHANGELOG.md"}},
	{"How it works", []string{"docs/finding.md", "docs/running.md", "docs/text-safety.md", "docs/architecture.md", "docs/measured.md", "docs/benchmarks.md", "SECURITY.md"}},
	{"Contribute", []string{"docs/roadmap.md", "CONTRIBUTING.md", "docs/releasing.md", "docs/coverage.md", "docs/decisions/README.md"}},
}

// hidden are folders whose pages are reached by links only; the menu would be
// too long with them.
var hidden = []string{"docs/decisions/", "docs/tutorials/"}

// elsewhere are pages that -brief leaves out: they are for people who work on Ken, or
// about other versions than the one that has them. All are where the source is.
var elsewhere = []string{
	"CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/coverage.md", "docs/measured.md", "docs/page-design.md", "docs/releasing.md",
}

// build returns the files of the site by their paths.
func build(root fs.FS, brief bool) (map[string][]byte, error) {
	sources, err := markdownFiles(root)
	if err != nil {
		return nil, err
	}
	if brief {
		sources = slices.DeleteFunc(sources, func(name string) bool {
			return slices.Contains(elsewhere, name) || strings.HasPrefix(name, "docs/decisions/")
		})
	}
	pages := make(map[string]*page, len(sources))
	for _, name := range sources {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		pages[name] = parse(name, text)
	}
	pictures, err := resolveLinks(root, pages, !brief)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, name := range pictures {
		if files[target(name)], err = fs.ReadFile(root, name); err != nil {
			return nil, err
		}
	}
	if err := addPages(files, pages); err != nil {
		return nil, err
	}
	return files, addAssets(files, pages)
}

// markdownFiles returns the sources of the site, sorted.
func markdownFiles(root fs.FS) ([]string, error) {
	found := []string{"README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(root, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			found = append(found, name)
		}
		return err
	})
	slices.Sort(found)
	return found, err
}

// target returns the file that a file of the repository becomes. The folder docs
// is the root of the site.
func target(source string) string {
	dir, base := path.Split(strings.TrimPrefix(source, "docs/"))
	if path.Ext(base) != ".md" {
		return dir + base
	}
	if base == "README.md" {
		return dir + "index.html"
	}
	return dir + strings.ToLower(strings.TrimSuffix(base, ".md")) + ".html"
}

// menu returns the sections with the pages that are in them.
func menu(pages map[string]*page) []section {
	used := make(map[string]bool)
	var out []section
	for _, s := range sections {
		kept := section{title: s.title}
		for _, name := range s.pages {
			if pages[name] != nil {
				kept.pages = append(kept.pages, name)
				used[name] = true
			}
		}
		out = append(out, kept)
	}
	more := section{title: "More"}
	for _, name := range sorted(pages) {
		isHidden := slices.ContainsFunc(hidden, func(folder string) bool { return strings.HasPrefix(name, folder) })
		if !used[name] && !isHidden {
			more.pages = append(more.pages, name)
		}
	}
	if len(more.pages) > 0 {
		out = append(out, more)
	}
	return out
}

func sorted(pages map[string]*page) []string {
	names := make([]string, 0, len(pages))
	for name := range pages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The values that page.html is filled with.
type (
	view struct {
		Title, Root string
		Menu        []viewSection
		Contents    []heading
		Body        template.HTML
	}
	viewSection struct {
		Title string
		Links []viewLink
	}
	viewLink struct {
		Title, Address string
		Current        bool
	}
)

// addPages adds the HTML of all pages.
func addPages(files map[string][]byte, pages map[string]*page) error {
	layout, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return err
	}
	sections := menu(pages)
	for _, p := range pages {
		up := relative(p.target, "")
		body, err := p.html()
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		v := view{Title: p.title, Root: up, Body: template.HTML(body)}
		for _, s := range sections {
			vs := viewSection{Title: s.title}
			for _, name := range s.pages {
				vs.Links = append(vs.Links, viewLink{Title: shortTitle(pages[name].title), Address: up + pages[name].target, Current: name == p.source})
			}
			v.Menu = append(v.Menu, vs)
		}
		for _, h := range p.headings {
			if h.Level == 2 {
				v.Contents = append(v.Contents, h)
			}
		}
		var out bytes.Buffer
		if err := layout.Execute(&out, v); err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		files[p.target] = out.Bytes()
	}
	return nil
}

// addAssets adds the style and the search, whose script begins with its index.
func addAssets(files map[string][]byte, pages map[string]*page) error {
	index, err := json.Marshal(searchIndex(pages))
	if err != nil {
		return err
	}
	script, err := assets.ReadFile("search.js")
	if err != nil {
		return err
	}
	files["search.js"] = slices.Concat([]byte("const entries = "), index, []byte(";\n"), script)
	files["style.css"], err = assets.ReadFile("style.css")
	return err
}

// shortTitle returns a title without what follows its first colon, for the menu.
func shortTitle(title string) string {
	short, _, _ := strings.Cut(title, ":")
	return short
}

// An entry is a heading that the search finds, with the text below it.
type entry struct {
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

func searchIndex(pages map[string]*page) []entry {
	entries := []entry{}
	for _, name := range sorted(pages) {
		p := pages[name]
		for _, part := range p.parts() {
			entries = append(entries, entry{Page: shortTitle(p.title), Heading: part.heading.Text, Address: p.target + "#" + part.heading.ID, Text: searchText(part.text)})
		}
	}
	return entries
}

// shownText is how much of a text search.js shows, in characters.
const shownText = 160

// searchText returns a text as the search needs it: what is shown, and then every word
// that is not in it yet, once.
func searchText(text string) string {
	words := strings.Fields(text)
	kept := make([]string, 0, len(words))
	seen := map[string]bool{}
	length := 0
	for _, word := range words {
		folded := strings.ToLower(word)
		if length > shownText+1 && seen[folded] {
			continue
		}
		seen[folded] = true
		kept = append(kept, word)
		length += utf8.RuneCountInString(word) + 1
	}
	return strings.Join(kept, " ")
}

// relative returns the path from one file of the site to another.
func relative(from, to string) string { return strings.Repeat("../", strings.Count(from, "/")) + to }
