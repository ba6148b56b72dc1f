// Package mcpskill knows skills as MCP carries them (SEP-2640): an entry names the
// files of a skill with their digests, and content that differs is refused.
package mcpskill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"ken/internal/coldsort"
	"ken/internal/know/source/format"
	"ken/internal/untrusted"
	"ken/internal/yamldoc"
	"sync"
)

// Extension is the name of the extension of the protocol.
const Extension = "io.modelcontextprotocol/skills"

// Main is the file that every skill has.
const Main = "SKILL.md"

// The limits of one skill. The first two are those of the specification.
const (
	MaxFiles       = 512
	MaxBytes       = 16 << 20
	maxFrontmatter = 32 << 10
	maxURI         = 2 << 10
)

// An Entry describes one skill, as skills/list has it.
type Entry struct {
	URI         string          `json:"uri"` // of SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []File          `json:"resources"` // every file, SKILL.md too

	// Wrong says why the entry could not be read. [Entry.Bad] has the rest.
	Wrong string `json:"-"`
}

// A File is one file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // of its bytes, "sha256:" and 64 digits
	Size   int64  `json:"size"`
}

// UnmarshalJSON reads an entry. It does not fail for one that breaks the rules, so
// that the others of a page are read; Wrong says what is wrong.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var wire struct {
		URI         string          `json:"uri"`
		Frontmatter json.RawMessage `json:"frontmatter"`
		Resources   json.RawMessage `json:"resources"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		*e = Entry{Wrong: "the entry cannot be read"}
		return nil
	}
	*e = Entry{URI: wire.URI, Frontmatter: wire.Frontmatter}
	switch {
	case string(wire.Resources) == `"dynamic"`:
		e.Wrong = "its content is generated (\"dynamic\"), so it has no digests that could be pinned"
	case len(wire.Resources) == 0 || wire.Resources[0] != '[':
		e.Wrong = "resources is neither a list of files nor \"dynamic\""
	default:
		var files []struct {
			URI    string `json:"uri"`
			Digest string `json:"digest"`
			Size   *int64 `json:"size"`
		}
		if json.Unmarshal(wire.Resources, &files) != nil {
			e.Wrong = "its list of files cannot be read"
			return nil
		}
		for _, f := range files {
			if f.Size == nil {
				e.Wrong = "a file has no size: " + untrusted.Line(f.URI, 80)
				return nil
			}
			e.Resources = append(e.Resources, File{URI: f.URI, Digest: f.Digest, Size: *f.Size})
		}
	}
	return nil
}

var (
	nameForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	})
	digestForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	})
)

// GoodName reports whether a name is one that the format of skills allows.
func GoodName(name string) bool { return len(name) <= 64 && nameForm().MatchString(name) }

// Dir returns the address of the skill's folder.
func (e *Entry) Dir() string { return strings.TrimSuffix(e.URI, "/"+Main) }

// Name returns the name of the skill, which is the last part of its folder.
func (e *Entry) Name() string {
	dir := e.Dir()
	return dir[strings.LastIndexByte(dir, '/')+1:]
}

// Description returns what the frontmatter says that the skill is for.
func (e *Entry) Description() string {
	var f struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(e.Frontmatter, &f) // Bad has looked at it
	return f.Description
}

// Bad says why an entry is not used, or is empty.
func (e *Entry) Bad() string {
	switch {
	case e.Wrong != "":
		return e.Wrong
	case len(e.URI) > maxURI || !strings.Contains(e.URI, "://") || !strings.HasSuffix(e.URI, "/"+Main):
		return "its address does not end in /" + Main
	case !GoodName(e.Name()):
		return "its name must have only lowercase letters, digits and single hyphens"
	case len(e.Frontmatter) > maxFrontmatter:
		return fmt.Sprintf("its frontmatter has %d bytes, the limit is %d", len(e.Frontmatter), maxFrontmatter)
	case len(e.Resources) > MaxFiles:
		return fmt.Sprintf("it has %d files, the limit is %d", len(e.Resources), MaxFiles)
	}
	var f struct{ Name, Description string }
	if json.Unmarshal(e.Frontmatter, &f) != nil || f.Description == "" {
		return "its frontmatter has no name and description"
	}
	if f.Name != e.Name() {
		return fmt.Sprintf("its frontmatter has the name %q, its address has another", untrusted.Line(f.Name, 80))
	}
	return e.badFiles()
}

func (e *Entry) badFiles() string {
	seen := make(map[string]bool, len(e.Resources))
	var total int64
	for _, f := range e.Resources {
		name := untrusted.Line(f.URI, 120)
		switch {
		case seen[f.URI]:
			return "it lists a file twice: " + name
		case !strings.HasPrefix(f.URI, e.Dir()+"/") || len(f.URI) > maxURI || slices.ContainsFunc(strings.Split(f.URI[len(e.Dir())+1:], "/"), odd):
			return "it lists a file outside of its folder: " + name
		case !digestForm().MatchString(f.Digest):
			return "a file has no SHA-256 digest: " + name
		case f.Size < 0 || f.Size > MaxBytes:
			return "a file is too large: " + name
		}
		seen[f.URI] = true
		total += f.Size
	}
	if !seen[e.URI] {
		return "its list of files lacks " + Main
	}
	if total > MaxBytes {
		return fmt.Sprintf("its files have %d bytes, the limit is %d", total, int64(MaxBytes))
	}
	return ""
}

// odd reports whether a part of a path leads elsewhere.
func odd(part string) bool { return part == "" || part == "." || part == ".." }

// Find returns the file of an address.
func (e *Entry) Find(uri string) (File, bool) {
	i := slices.IndexFunc(e.Resources, func(f File) bool { return f.URI == uri })
	if i < 0 {
		return File{}, false
	}
	return e.Resources[i], true
}

// Paths returns the paths of the files within the folder, except SKILL.md.
func (e *Entry) Paths() []string {
	var out []string
	for _, f := range e.Resources {
		if f.URI != e.URI {
			out = append(out, strings.TrimPrefix(f.URI, e.Dir()+"/"))
		}
	}
	return out
}

// Sum is one digest of everything that the entry says.
func (e *Entry) Sum() string {
	h := sha256.New()
	files := slices.Clone(e.Resources)
	coldsort.By(files, func(a, b File) int { return strings.Compare(a.URI, b.URI) })
	var front any
	dec := json.NewDecoder(strings.NewReader(string(e.Frontmatter)))
	dec.UseNumber()
	_ = dec.Decode(&front)           // Bad has looked at it
	sorted, _ := json.Marshal(front) // the order of members means nothing
	fmt.Fprintf(h, "%s\n%s\n", e.URI, sorted)
	for _, f := range files {
		fmt.Fprintf(h, "%q %s %d\n", f.URI, f.Digest, f.Size)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Digest returns the digest of bytes, as entries have it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Verify checks what came for a file of the skill: its size, its digest and, for
// SKILL.md, that its frontmatter is that of the entry.
func (e *Entry) Verify(uri string, data []byte) error {
	f, ok := e.Find(uri)
	if !ok {
		return fmt.Errorf("%s is not a file that the skill lists", untrusted.Line(uri, 200))
	}
	if int64(len(data)) != f.Size {
		return fmt.Errorf("%s has %d bytes, its entry says %d", untrusted.Line(uri, 200), len(data), f.Size)
	}
	if got := Digest(data); got != f.Digest {
		return fmt.Errorf("%s has the digest %s, its entry says %s", untrusted.Line(uri, 200), got, f.Digest)
	}
	if uri != e.URI {
		return nil
	}
	front, err := Frontmatter(data)
	if err != nil {
		return fmt.Errorf("%s: %w", untrusted.Line(uri, 200), err)
	}
	if key := differs(front, e.Frontmatter); key != "" {
		return fmt.Errorf("the frontmatter of %s differs from its entry in %q", untrusted.Line(uri, 200), untrusted.Line(key, 80))
	}
	return nil
}

// differs returns the first member in which two objects differ, or nothing.
func differs(a, b json.RawMessage) string {
	var left, right map[string]any
	if json.Unmarshal(a, &left) != nil || json.Unmarshal(b, &right) != nil {
		return "form"
	}
	var keys []string
	for key := range left {
		keys = append(keys, key)
	}
	for key := range right {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !reflect.DeepEqual(left[key], right[key]) {
			return key
		}
	}
	return ""
}

// Frontmatter returns the frontmatter of a SKILL.md as a JSON object.
func Frontmatter(page []byte) (json.RawMessage, error) {
	p, err := format.SplitPage([]byte(strings.TrimPrefix(string(page), "\ufeff")), yamldoc.Limits{})
	if err != nil {
		return nil, fmt.Errorf("frontmatter: %w", err)
	}
	if !p.Found || p.Meta == nil {
		return nil, errors.New("there is no frontmatter")
	}
	return yamldoc.Value{Any: p.Meta}.JSON(), nil
}
