// Package skillshelf holds the skills that MCP clients are offered (SEP-2640), each
// at an address of its own.
package skillshelf

import (
	"encoding/json"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
)

const main = "/SKILL.md"

// Folder is the type of a resource that is a folder.
const Folder = "inode/directory"

// A Skill is a skill as clients see it.
type Skill struct {
	URI         string          `json:"uri"` // of its SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Files       []File          `json:"resources"` // all of them

	// Read is the capability that reads it for models. A client that may not see
	// it does not see the skill.
	Read capability.ID `json:"-"`
}

// A File is one file of a skill. Digest is of its bytes.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// A Served skill is one at its address for clients.
type Served struct {
	Skill
	Dir    string        // its folder
	Server string        // whose it is; empty: Ken's own
	Text   capability.ID // of Ken's own
	theirs map[string]string
}

// A Shelf is all skills of one audience.
type Shelf struct{ all []*Served }

// All returns the skills.
func (s *Shelf) All() []*Served { return s.all }

// AddOwn adds a skill of Ken's. The addresses of its files are paths.
func (s *Shelf) AddOwn(id capability.ID, name string, one Skill) {
	dir := "skill://" + name
	for i := range one.Files {
		one.Files[i].URI = dir + "/" + one.Files[i].URI
	}
	one.URI = dir + main
	s.add(&Served{Skill: one, Dir: dir, Text: id})
}

// AddServer adds a skill of a server. If its folder is in that of a skill of another
// origin, or the other way round, or where only Ken or the pages of tools may be, the
// skill has an address of its own.
func (s *Shelf) AddServer(server string, one Skill) {
	from := strings.TrimSuffix(one.URI, main)
	sk := &Served{Skill: one, Dir: from, Server: server}
	taken := slices.ContainsFunc(s.all, func(other *Served) bool {
		return other.Server != server && (within(other.Dir, from) || within(from, other.Dir))
	})
	if taken || reserved(from) {
		sk.Dir = "skill://ken/" + url.PathEscape(server) + "/" + url.PathEscape(path.Dir(from)) + "/" + path.Base(from)
		sk.URI, sk.Files, sk.theirs = sk.Dir+main, nil, make(map[string]string, len(one.Files))
		for _, f := range one.Files {
			own := f.URI
			f.URI = sk.Dir + strings.TrimPrefix(own, from)
			sk.theirs[f.URI] = own
			sk.Files = append(sk.Files, f)
		}
	}
	s.add(sk)
}

// reserved reports whether a server may not choose a folder: files of skills are found
// before other resources, so it could take the place of Ken's texts, of another server's
// page, or of a skill that was given an address.
func reserved(dir string) bool {
	return within(dir, "skill://ken") || strings.HasPrefix(dir, "ken:") || strings.HasPrefix(dir, "ui:")
}

func (s *Shelf) add(sk *Served) {
	if !slices.ContainsFunc(s.all, func(other *Served) bool { return other.Dir == sk.Dir }) {
		s.all = append(s.all, sk)
	}
}

// within reports whether an address is a folder or in it.
func within(uri, dir string) bool { return uri == dir || strings.HasPrefix(uri, dir+"/") }

// Others reports whether an address is in the folder of a skill that is not of the
// server.
func (s *Shelf) Others(server, uri string) bool {
	return slices.ContainsFunc(s.all, func(sk *Served) bool { return sk.Server != server && within(uri, sk.Dir) })
}

// Find returns the skill that lists a file.
func (s *Shelf) Find(uri string) (*Served, bool) {
	for _, sk := range s.all {
		if within(uri, sk.Dir) && slices.ContainsFunc(sk.Files, func(f File) bool { return f.URI == uri }) {
			return sk, true
		}
	}
	return nil, false
}

// Path returns the path of a file within the skill's folder.
func (sk *Served) Path(uri string) string { return strings.TrimPrefix(uri, sk.Dir+"/") }

// Theirs returns the address that the server has for a file.
func (sk *Served) Theirs(uri string) string {
	if own, ok := sk.theirs[uri]; ok {
		return own
	}
	return uri
}

// A Child is what is directly in a folder.
type Child struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
	Type string `json:"mimeType,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Children lists a folder of a skill, in the order of the names. It is empty for
// what is no folder.
func (s *Shelf) Children(dir string) []Child {
	var out []Child
	have := map[string]bool{}
	for _, sk := range s.all {
		for _, f := range sk.Files {
			rest, inside := strings.CutPrefix(f.URI, dir+"/")
			name, _, deeper := strings.Cut(rest, "/")
			if !inside || !within(dir, sk.Dir) || have[name] {
				continue
			}
			have[name] = true
			c := Child{URI: dir + "/" + name, Name: name, Type: Folder}
			if !deeper {
				c.Type, c.Size = TypeOf(name), f.Size
			}
			out = append(out, c)
		}
	}
	coldsort.By(out, func(a, b Child) int { return strings.Compare(a.URI, b.URI) })
	return out
}

// TypeOf returns the MIME type of a file by its name.
func TypeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".md":
		return "text/markdown"
	case "", ".txt", ".py", ".sh":
		return "text/plain"
	default:
		kind, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
		return kind
	}
}
