package format

import (
	"bytes"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Files that list things, one entry each: channels, extensions, presets, and
// the commands of a package. The list stands under a key that names it, or is
// the whole document; a map of entries is a list whose entries are named by
// their keys.

// ListLimit caps such a file: about two thousand entries, and a second and a
// half of parsing for the worst that fits.
const ListLimit = 512 << 10

// ListLimits bounds a list that is read as a whole.
func ListLimits() yamldoc.Limits { return yamldoc.Limits{Bytes: ListLimit, Keys: 20_000} }

// A Entry is one item of a list.
type Entry struct {
	Key   string // its name, where the list is a map
	Line  int
	Value yamldoc.Value
}

// Name returns what an entry is called: what the first of the keys says that says
// something, or what it is called in a map. Keys after that one are not read.
func (e Entry) Name(r *yamldoc.Reader, keys ...string) string {
	for _, key := range keys {
		if name := strings.TrimSpace(r.String(key)); name != "" {
			return name
		}
	}
	return strings.TrimSpace(e.Key)
}

// EntriesOf returns the entries of a list or of a map of entries.
func EntriesOf(v yamldoc.Value) ([]Entry, bool) {
	switch list := v.Any.(type) {
	case nil:
		return nil, true
	case []yamldoc.Value:
		out := make([]Entry, 0, len(list))
		for _, item := range list {
			out = append(out, Entry{Line: item.Line, Value: item})
		}
		return out, true
	case *yamldoc.Map:
		out := make([]Entry, 0, len(list.Fields))
		for _, f := range list.Fields {
			out = append(out, Entry{Key: f.Key, Line: f.Line, Value: f.Value})
		}
		return out, true
	}
	return nil, false
}

// Reader returns a Reader of the entry's own, with its own issues.
func (e Entry) Reader() (*yamldoc.Reader, bool) {
	m, ok := e.Value.Any.(*yamldoc.Map)
	if !ok {
		return nil, false
	}
	return yamldoc.NewReader(m), true
}

// IsListFile reports whether a path is name.yaml, name.yml or name.json.
func IsListFile(p, name string) bool {
	switch safefs.BaseName(p) {
	case name + ".yaml", name + ".yml", name + ".json":
		return true
	}
	return false
}

// MentionsKey reports whether the beginning of a file shows a key, or is a
// list. It keeps apart files of the same name that other programs write.
func MentionsKey(head []byte, key string) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(text, []byte("[")) || bytes.HasPrefix(text, []byte("- ")) {
		return true
	}
	return bytes.Contains(head, []byte(`"`+key+`"`)) || bytes.HasPrefix(text, []byte(key+":")) ||
		bytes.Contains(head, []byte("\n"+key+":"))
}

// ListEntries finds the entries of a file whose list stands under key, or is the
// whole file. bare says that a map without the key is the list itself.
func (u *Unit) ListEntries(key string, bare bool) []Entry {
	doc, err := yamldoc.ParseValue(u.Data, ListLimits())
	if err != nil {
		u.FaultErr("bad-list", u.Path, 1, err)
		return nil
	}
	list := doc
	if m, ok := doc.Any.(*yamldoc.Map); ok {
		r := yamldoc.NewReader(m)
		f, _ := r.Field(key)
		switch {
		case f.Key != "":
			list = f.Value
			u.mentionBeside(key, r)
		case !bare:
			u.Fault("bad-list", u.Path, m.Line, fmt.Sprintf("the file has no list named %s", key),
				fmt.Sprintf("put the entries under %s:", key))
			return nil
		}
	}
	entries, ok := EntriesOf(list)
	if !ok {
		u.Fault("bad-list", u.Path, list.Line, fmt.Sprintf("%s is not a list", key), "write one entry per line, each beginning with a dash")
		return nil
	}
	return entries
}

// mentionBeside warns about keys beside the list, which are not read. Keys that
// only describe the file itself, such as its version, need no warning.
func (u *Unit) mentionBeside(key string, r *yamldoc.Reader) {
	for _, edition := range []string{"version", "$schema", "description", "updated"} {
		r.Field(edition)
	}
	for _, f := range r.Rest() {
		u.Warn("unknown-key", u.Path, f.Line, fmt.Sprintf("nothing reads %s beside %s", f.Key, key), "remove it, or correct its name")
	}
}

// EntryFields returns the Reader of an entry that must be a map, or records that it
// is lost.
func (u *Unit) EntryFields(e Entry, what string) (*yamldoc.Reader, bool) {
	r, ok := e.Reader()
	if !ok {
		u.Fault("bad-entry", u.Path, e.Line, fmt.Sprintf("this %s is not written as keys and values", what), "write its name and description as \"key: value\" lines")
	}
	return r, ok
}

// ReadListed reads what every listed capability may say, whatever its kind.
func ReadListed(r *yamldoc.Reader, c *capability.Capability) {
	if c.DisplayName = r.String("displayName"); c.DisplayName == "" {
		c.DisplayName = r.String("title")
	}
	c.Description = r.String("description")
	c.Tags = r.Words("tags")
	c.Aliases = r.Words("aliases")
	c.RequiredSecrets = r.Words("requiredSecrets")
	c.RequiredBins = r.Words("requiredBins")
	c.RequiredTools = append(r.Words("requiredTools"), r.Words("dependsOn")...)
	c.RequiredPlatforms = r.Words("requiredPlatforms")
	c.Version = r.String("version")
}

// AddListed adds a listed capability with what else its entry said.
func (u *Unit) AddListed(c *capability.Capability, r *yamldoc.Reader, e Entry) {
	if c.Description == "" {
		u.Warn("no-description", u.Path, e.Line, fmt.Sprintf("%s has no description, so hardly anything finds it", c.Name), "say in one sentence when to use it")
	}
	for _, key := range []string{"homepage", "author", "license", "repository"} {
		u.KeepField(c, r, key) // about the thing, and of no use here
	}
	u.KeepRest(c, u.Path, 1, r, true)
	u.WarnIssues("bad-value", u.Path, 1, r)
	u.Add(c, capability.Detail{}, u.Path, e.Line)
}
