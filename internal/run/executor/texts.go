package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// mostNames is how many different texts of one call's arguments are checked. It
// must not be above the rules' own limit.
const mostNames = 50_000

// Texts adds to the facts of a call which texts in its arguments, at any depth
// and with the keys of objects, may name files: as a whole, or as an item of a
// list with a comma, a semicolon or a new line between the items (Named), or as a
// word (Mentioned). A link in one of the folders, which are absolute, counts as
// what it leads to as well. If there are too many texts, Unseen says so.
func (f *Facts) Texts(raw json.RawMessage, dirs ...string) {
	t := texts{facts: f, dirs: map[string]string{}, seen: map[string]bool{}, followed: map[string]bool{}}
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			t.dirs[dir] = Resolved(dir)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	for f.Unseen == "" {
		tok, err := dec.Token()
		if err != nil {
			return // at the end; arguments that are no JSON were refused before
		}
		if text, ok := tok.(string); ok {
			t.text(text)
		}
	}
}

// texts collects names, each once.
type texts struct {
	facts *Facts
	dirs  map[string]string // folders as given, and without links
	seen  map[string]bool

	followed map[string]bool // names whose targets were added
}

// text adds the names that a text may be or contain.
func (t *texts) text(text string) {
	t.name(text)
	between := func(r rune) bool { return r == ',' || r == ';' || unicode.IsControl(r) }
	for item := range strings.FieldsFuncSeq(text, between) {
		t.name(item)
	}
	// In a document, a word such as item.key is rarely a file. In a line, which may
	// be a command, it counts.
	line := len(text) <= longestPath && !strings.ContainsFunc(text, unicode.IsControl)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(";|&<>()\"'`$={}[],:@", r)
	}) {
		if line || strings.HasPrefix(word, ".") || strings.ContainsAny(word, "/\\") {
			t.add(&t.facts.Mentioned, "m", word)
		}
	}
}

func (t *texts) name(text string) {
	text = strings.TrimSpace(text)
	if scheme, _, ok := strings.Cut(text, ":"); ok && strings.EqualFold(scheme, "file") {
		if u, err := url.Parse(text); err == nil {
			text = u.Path
		}
	}
	t.add(&t.facts.Named, "n", text)
}

// add adds a name, and what it leads to. A name that is too long once it is clean
// cannot be one.
func (t *texts) add(list *[]string, kind, name string) {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if len(name) > longestPath {
		return
	}
	if t.followed[kind+name] || t.followed["n"+name] {
		return
	}
	t.followed[kind+name] = true
	for _, name := range t.targets(name) {
		if t.seen[kind+name] || t.seen["n"+name] {
			continue
		}
		if len(t.seen) == mostNames {
			t.facts.Unseen = fmt.Sprintf("the arguments have more than %d texts that may name files", mostNames)
			return
		}
		t.seen[kind+name] = true
		*list = append(*list, name)
	}
}

// targets returns a name, and the names of the files in the folders that it leads
// to through links.
func (t *texts) targets(name string) []string {
	out := []string{name}
	for dir, root := range t.dirs {
		rel := name
		if filepath.IsAbs(name) {
			if rel, _ = filepath.Rel(dir, name); rel == "" {
				continue
			}
		}
		if !filepath.IsLocal(rel) {
			continue
		}
		abs := filepath.Join(root, rel)
		if _, err := os.Lstat(abs); err != nil {
			continue // most words are not files: one system call tells, not one for each part of the path
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			out = append(out, seenFrom(root, real))
		}
	}
	return out
}
