package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// A page is a Markdown file and what becomes of it.
type page struct {
	source   string // "docs/mcp.md"
	target   string // "docs/mcp.html"
	title    string
	headings []heading

	text []byte
	doc  ast.Node
}

type heading struct {
	Level int
	ID    string
	Text  string
}

func markdown() goldmark.Markdown {
	// Styles in attributes are what a strict content security policy forbids.
	table := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	return goldmark.New(goldmark.WithExtensions(table, extension.Linkify), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

func parse(source string, data []byte) *page {
	ctx := parser.NewContext(parser.WithIDs(headingIDs{}))
	p := &page{source: source, target: target(source), title: source, text: data}
	p.doc = markdown().Parser().Parse(text.NewReader(data), parser.WithContext(ctx))
	walk(p.doc, func(n ast.Node) {
		h, ok := n.(*ast.Heading)
		if !ok {
			return
		}
		found := heading{Level: h.Level, Text: p.plain(h)}
		if id, ok := h.AttributeString("id"); ok {
			found.ID = string(id.([]byte))
		}
		if p.headings = append(p.headings, found); len(p.headings) == 1 {
			p.title = found.Text
		}
	})
	return p
}

func (p *page) html() ([]byte, error) {
	var out bytes.Buffer
	err := markdown().Renderer().Render(&out, p.text, p.doc)
	return out.Bytes(), err
}

// plain returns the text of a node without its markup.
func (p *page) plain(n ast.Node) string {
	var b strings.Builder
	walk(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(p.text))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(p.text))
		}
	})
	return b.String()
}

// A part is a heading and the text below it.
type part struct {
	heading heading
	text    string
}

const mostText = 600 // bytes of a part that the search knows

// parts returns the page heading by heading, for the search. Code counts too:
// people look for commands.
func (p *page) parts() []part {
	var parts []part
	add := func(s string) {
		if len(parts) == 0 || len(parts[len(parts)-1].text) > mostText {
			return
		}
		last := &parts[len(parts)-1]
		last.text = strings.TrimSpace(last.text + " " + strings.Join(strings.Fields(s), " "))
	}
	at := 0
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading {
			parts = append(parts, part{heading: p.headings[at]})
			at++
			continue
		}
		walk(n, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.FencedCodeBlock:
				add(string(n.Lines().Value(p.text)))
			case *ast.TextBlock, *ast.Paragraph:
				add(p.plain(n))
			default:
				if n.Kind().String() == "TableCell" {
					add(p.plain(n))
				}
			}
		})
	}
	return parts
}

// resolveLinks makes the links of all pages point to pages of the site. It
// returns the pictures that are linked. A link to a folder or to source code,
// which the site does not have, becomes text. A link to nothing is an error.
// Without illustrated, there are no pictures.
func resolveLinks(root fs.FS, pages map[string]*page, illustrated bool) (pictures []string, err error) {
	var wrong []error
	for _, name := range sorted(pages) {
		p := pages[name]
		var dead []ast.Node
		walk(p.doc, func(n ast.Node) {
			var address *[]byte
			switch n := n.(type) {
			case *ast.Link:
				address = &n.Destination
			case *ast.Image:
				address = &n.Destination
			default:
				return
			}
			to, err := p.resolve(root, pages, string(*address))
			switch {
			case err != nil:
				wrong = append(wrong, fmt.Errorf("%s: link %s: %w", p.source, *address, err))
			case to.picture != "" && !illustrated:
				n.RemoveChildren(n)
				dead = append(dead, n)
				return
			case to.address == "":
				dead = append(dead, n)
			default:
				*address = []byte(to.address)
			}
			if to.picture != "" {
				pictures = append(pictures, to.picture)
			}
			if to.page != nil && strings.HasSuffix(p.plain(n), ".md") { // a reader of the site knows no files
				n.RemoveChildren(n)
				n.AppendChild(n, ast.NewString([]byte(shortTitle(to.page.title))))
			}
		})
		for _, n := range dead {
			unwrap(n)
		}
	}
	slices.Sort(pictures)
	return slices.Compact(pictures), errors.Join(wrong...)
}

// A link is what an address becomes on the site.
type link struct {
	address string // "": the site has nothing for it
	picture string // the file to copy, if it is one
	page    *page  // the page, if it is another one of the site
}

func (p *page) resolve(root fs.FS, pages map[string]*page, address string) (link, error) {
	u, err := url.Parse(address)
	if err != nil {
		return link{}, err
	}
	if u.Scheme != "" || u.Host != "" {
		return link{address: address}, nil
	}
	name := p.source
	if u.Path != "" {
		name = path.Join(path.Dir(p.source), u.Path)
	}
	to := pages[name]
	if to == nil {
		to = pages[path.Join(name, "README.md")]
	}
	if to == nil {
		if _, err := fs.Stat(root, name); err != nil {
			return link{}, errors.New("no such file")
		}
		switch path.Ext(name) {
		case ".png", ".svg", ".jpg", ".gif":
			return link{address: relative(p.target, target(name)), picture: name}, nil
		}
		return link{}, nil
	}
	if u.Fragment != "" && !slices.ContainsFunc(to.headings, func(h heading) bool { return h.ID == u.Fragment }) {
		return link{}, fmt.Errorf("%s has no heading #%s", to.source, u.Fragment)
	}
	there := url.URL{Path: relative(p.target, to.target), Fragment: u.Fragment}
	if to == p {
		there.Path = ""
		to = nil
	}
	return link{address: there.String(), page: to}, nil
}

// unwrap puts the children of a node in its place.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		parent.InsertBefore(parent, n, c)
		c = next
	}
	parent.RemoveChild(parent, n)
}

// walk calls f for a node and everything in it, in order.
func walk(n ast.Node, f func(ast.Node)) {
	f(n)
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		walk(c, f)
	}
}

// headingIDs names headings as code hosts do: lower case, blanks become hyphens,
// punctuation goes.
type headingIDs map[string]int

func (ids headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(string(value)))
	n := ids[id]
	if ids[id]++; n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

func (headingIDs) Put([]byte) {}
