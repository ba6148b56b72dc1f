package source

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

// listBytes caps such a file: about two thousand entries, and a second and a
// half of parsing for the worst that fits.
const listBytes = 512 << 10

func listLimits() yamldoc.Limits { return yamldoc.Limits{Bytes: listBytes, Keys: 20_000} }

// A listEntry is one item of a list.
type listEntry struct {
	key   string // its name, where the list is a map
	line  int
	value yamldoc.Value
}

// name returns what an entry is called: what the first of the keys says that says
// something, or what it is called in a map. Keys after that one are not read.
func (e listEntry) name(r *yamldoc.Reader, keys ...string) string {
	for _, key := range keys {
		if name := strings.TrimSpace(r.String(key)); name != "" {
			return name
		}
	}
	return strings.TrimSpace(e.key)
}

// entriesOf returns the entries of a list or of a map of entries.
func entriesOf(v yamldoc.Value) ([]listEntry, bool) {
	switch list := v.Any.(type) {
	case nil:
		return nil, true
	case []yamldoc.Value:
		out := make([]listEntry, 0, len(list))
		for _, item := range list {
			out = append(out, listEntry{line: item.Line, value: item})
		}
		return out, true
	case *yamldoc.Map:
		out := make([]listEntry, 0, len(list.Fields))
		for _, f := range list.Fields {
			out = append(out, listEntry{key: f.Key, line: f.Line, value: f.Value})
		}
		return out, true
	}
	return nil, false
}

// reader returns a Reader of the entry's own, with its own issues.
func (e listEntry) reader() (*yamldoc.Reader, bool) {
	m, ok := e.value.Any.(*yamldoc.Map)
	if !ok {
		return nil, false
	}
	return yamldoc.NewReader(m), true
}

// isListFile reports whether a path is name.yaml, name.yml or name.json.
func isListFile(p, name string) bool {
	switch safefs.BaseName(p) {
	case name + ".yaml", name + ".yml", name + ".json":
		return true
	}
	return false
}

// mentionsKey reports whether the beginning of a file shows a key, or is a
// list. It keeps apart files of the same name that other programs write.
func mentionsKey(head []byte, key string) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if bytes.HasPrefix(text, []byte("[")) || bytes.HasPrefix(text, []byte("- ")) {
		return true
	}
	return bytes.Contains(head, []byte(`"`+key+`"`)) || bytes.HasPrefix(text, []byte(key+":")) ||
		bytes.Contains(head, []byte("\n"+key+":"))
}

// listEntries finds the entries of a file whose list stands under key, or is the
// whole file. bare says that a map without the key is the list itself.
func (u *unit) listEntries(key string, bare bool) []listEntry {
	doc, err := yamldoc.ParseValue(u.data, listLimits())
	if err != nil {
		u.faultErr("bad-list", u.path, 1, err)
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
			u.fault("bad-list", u.path, m.Line, fmt.Sprintf("the file has no list named %s", key),
				fmt.Sprintf("put the entries under %s:", key))
			return nil
		}
	}
	entries, ok := entriesOf(list)
	if !ok {
		u.fault("bad-list", u.path, list.Line, fmt.Sprintf("%s is not a list", key), "write one entry per line, each beginning with a dash")
		return nil
	}
	return entries
}

// mentionBeside speaks of keys beside the list: nobody reads them. What says
// only which edition of the file this is needs no word.
func (u *unit) mentionBeside(key string, r *yamldoc.Reader) {
	for _, edition := range []string{"version", "$schema", "description", "updated"} {
		r.Field(edition)
	}
	for _, f := range r.Rest() {
		u.warn("unknown-key", u.path, f.Line, fmt.Sprintf("nothing reads %s beside %s", f.Key, key), "remove it, or correct its name")
	}
}

// entryFields returns the Reader of an entry that must be a map, or records that it
// is lost.
func (u *unit) entryFields(e listEntry, what string) (*yamldoc.Reader, bool) {
	r, ok := e.reader()
	if !ok {
		u.fault("bad-entry", u.path, e.line, fmt.Sprintf("this %s is not written as keys and values", what), "write its name and description as \"key: value\" lines")
	}
	return r, ok
}

// readListed reads what every listed capability may say, whatever its kind.
func readListed(r *yamldoc.Reader, c *capability.Capability) {
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

// addListed adds a listed capability with what else its entry said.
func (u *unit) addListed(c *capability.Capability, r *yamldoc.Reader, e listEntry) {
	if c.Description == "" {
		u.warn("no-description", u.path, e.line, fmt.Sprintf("%s has no description, so hardly anything finds it", c.Name), "say in one sentence when to use it")
	}
	for _, key := range []string{"homepage", "author", "license", "repository"} {
		u.keepField(c, r, key) // about the thing, and of no use here
	}
	u.keepRest(c, u.path, 1, r, true)
	u.warnIssues("bad-value", u.path, 1, r)
	u.add(c, capability.Detail{}, u.path, e.line)
}
