package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
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
func (f *Facts) Texts(raw json.RawMessage, dirs ...string) { f.texts(nil, raw, dirs) }

func (f *Facts) texts(folders *Folders, raw json.RawMessage, dirs []string) {
	t := texts{facts: f, seen: map[mention]bool{}, followed: map[mention]bool{}}
	for _, dir := range dirs {
		if filepath.IsAbs(dir) && !slices.ContainsFunc(t.dirs, func(b base) bool { return b.dir == dir }) {
			t.dirs = append(t.dirs, base{dir: dir, list: folders.list(dir)})
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
	dirs  []base
	seen  map[mention]bool

	followed map[mention]bool // names whose targets were added
}

// A mention is a name with the list of the facts that it is in.
type mention struct {
	whole bool // in Named; otherwise in Mentioned
	name  string
}

// A base is a folder that names may be relative to.
type base struct {
	dir  string // as given
	root string // without links; "" until a name needs it
	list *folderList
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
			t.add(&t.facts.Mentioned, false, word)
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
	t.add(&t.facts.Named, true, text)
}

// add adds a name, and what it leads to. A name that is too long once it is clean
// cannot be one.
func (t *texts) add(list *[]string, whole bool, name string) {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if len(name) > longestPath {
		return
	}
	if t.followed[mention{whole, name}] || t.followed[mention{true, name}] {
		return
	}
	t.followed[mention{whole, name}] = true
	t.keep(list, whole, name)
	for i := range t.dirs {
		if target := t.dirs[i].target(name); target != "" {
			t.keep(list, whole, target)
		}
	}
}

// keep adds a name to a list, unless it is there already.
func (t *texts) keep(list *[]string, whole bool, name string) {
	if t.seen[mention{whole, name}] || t.seen[mention{true, name}] {
		return
	}
	if len(t.seen) == mostNames {
		t.facts.Unseen = fmt.Sprintf("the arguments have more than %d texts that may name files", mostNames)
		return
	}
	t.seen[mention{whole, name}] = true
	*list = append(*list, name)
}

// target returns the name of the file that a name leads to through links in the
// folder, or "" where it leads to none. Most words are not files: for those it
// makes no system call if the names in the folder are known, and otherwise one.
func (b *base) target(name string) string {
	rel := name
	if filepath.IsAbs(name) {
		if rel, _ = filepath.Rel(b.dir, name); rel == "" {
			return ""
		}
	}
	if !filepath.IsLocal(rel) || b.list.misses(rel) || missing(b.dir+string(filepath.Separator)+rel) {
		return ""
	}
	if b.root == "" {
		b.root = Resolved(b.dir)
	}
	abs := filepath.Join(b.root, rel)
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		return seenFrom(b.root, real)
	}
	return ""
}
