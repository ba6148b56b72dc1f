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
	"sync"
	"unicode"

	"ken/internal/jsonvalid"
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
	t := usedTexts.Get().(*texts)
	defer func() {
		*t = texts{} // nothing of a call stays
		usedTexts.Put(t)
	}()
	t.facts = f
	for _, dir := range dirs {
		if filepath.IsAbs(dir) && !slices.ContainsFunc(t.dirs, func(b base) bool { return b.dir == dir }) {
			t.dirs = append(t.dirs, base{dir: dir, list: folders.list(dir)})
		}
	}
	for f.Unseen == "" {
		text, rest, ok := nextText(raw)
		if !ok {
			return
		}
		t.text(text)
		raw = rest
	}
}

// nextText returns the first text in JSON, the name of a member included, and what
// follows it. It returns false if there is none. Arguments that are not JSON were
// refused before.
func nextText(raw []byte) (text string, rest []byte, ok bool) {
	begin := bytes.IndexByte(raw, '"')
	if begin < 0 {
		return "", nil, false
	}
	raw = raw[begin:]
	for end := 1; end < len(raw); end++ {
		switch raw[end] {
		case '\\':
			end++
		case '"':
			quoted, rest := raw[:end+1], raw[end+1:]
			if text, ok := jsonvalid.Text(quoted); ok {
				return text, rest, true
			}
			err := json.Unmarshal(quoted, &text)
			return text, rest, err == nil
		}
	}
	return "", nil, false
}

// texts collects names, each once.
type texts struct {
	facts *Facts
	dirs  []base
	seen  mentions

	followed mentions // names whose targets were added
}

// usedTexts are texts to use again: each is as large as most calls with all they carry.
var usedTexts = sync.Pool{New: func() any { return new(texts) }}

// A mention is a name with the list of the facts that it is in.
type mention struct {
	whole bool // in Named; otherwise in Mentioned
	name  string
}

// mentions is a set. Most calls have few, for which a map takes longer than a look at
// each.
type mentions struct {
	few  []mention
	many map[mention]bool // holds all of them if there are more than fewMentions
	room [fewMentions / 2]mention
}

const fewMentions = 32

// has reports whether a name is in a list, or in Named, where it counts for both.
func (m *mentions) has(one mention) bool {
	whole := mention{true, one.name}
	if m.many != nil {
		return m.many[one] || m.many[whole]
	}
	return slices.ContainsFunc(m.few, func(was mention) bool { return was == one || was == whole })
}

// add adds a mention that is not there.
func (m *mentions) add(one mention) {
	if m.many == nil {
		if m.few == nil {
			m.few = m.room[:0]
		}
		if m.few = append(m.few, one); len(m.few) <= fewMentions {
			return
		}
		m.many = make(map[mention]bool, 4*fewMentions)
		for _, was := range m.few {
			m.many[was] = true
		}
	}
	m.many[one] = true
}

func (m *mentions) size() int { return max(len(m.few), len(m.many)) }

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
	if t.followed.has(mention{whole, name}) {
		return
	}
	t.followed.add(mention{whole, name})
	t.keep(list, whole, name)
	for i := range t.dirs {
		if target := t.dirs[i].target(name); target != "" {
			t.keep(list, whole, target)
		}
	}
}

// keep adds a name to a list, unless it is there already.
func (t *texts) keep(list *[]string, whole bool, name string) {
	if t.seen.has(mention{whole, name}) {
		return
	}
	if t.seen.size() == mostNames {
		t.facts.Unseen = fmt.Sprintf("the arguments have more than %d texts that may name files", mostNames)
		return
	}
	t.seen.add(mention{whole, name})
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
