package review

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
)

// A Manifest is what one extension asks for, as a person reviews it. It shares
// the capabilities of the catalog, which never change, and is not changed
// itself once it was made.
type Manifest struct {
	ID    string `json:"id"`    // "tools.git"
	Place string `json:"place"` // folder of the package

	Package *capability.Capability   `json:"package"`
	Actions []*capability.Capability `json:"actions"` // in the order of their ids

	// Digest covers all of the above: what would run, what is shown to a
	// model, where it is and how far it is trusted.
	Digest string `json:"digest"`

	// Texts are what the catalog keeps out of memory, by capability: see
	// [Manifest.With]. The digest covers them whether they are here or not.
	Texts map[capability.ID]Texts `json:"texts,omitempty"`
}

// Texts are a capability's schema, and names for its other texts: equal ones
// have equal names.
type Texts struct {
	Schema json.RawMessage `json:"schema,omitempty"`
	Body   string          `json:"body,omitempty"`
	Usage  string          `json:"usage,omitempty"`
}

// A Key says which extension is meant.
type Key struct {
	ID    string `json:"id"`
	Place string `json:"place"`
}

// Key returns the extension that the manifest is about.
func (m *Manifest) Key() Key { return Key{m.ID, m.Place} }

// With returns a copy that also knows texts, so that a review shows schemas and a
// difference tells a changed schema from a changed usage text.
func (m *Manifest) With(details map[capability.ID]capability.Detail) *Manifest {
	out := *m
	out.Texts = make(map[capability.ID]Texts, len(details))
	for id, d := range details {
		out.Texts[id] = Texts{d.Schema, fingerprint(d.Body), fingerprint(d.Usage)}
	}
	return &out
}

// format is the word of the reader of packages. No file can claim it.
const format = "extension"

// Owner returns the id of the extension that a capability belongs to, as in
// "extension:tools.git". ok says that it belongs to one and needs review; an
// empty id with ok means that it does not say to which, and stays off.
func Owner(c *capability.Capability) (id capability.ID, ok bool) {
	if c.Origin.Format != format || c.Kind == capability.KindExtension || c.Trust == capability.TrustBuiltin {
		return "", false
	}
	for _, need := range c.RequiredTools {
		if strings.HasPrefix(need, string(capability.KindExtension)+":") {
			return capability.ID(need), true
		}
	}
	return "", true
}

// Of makes the manifest of a package from its own capability and those that
// belong to it, in any order. It fails where the package cannot be told from
// another of its name.
func Of(extension *capability.Capability, members []*capability.Capability) (*Manifest, error) {
	m := &Manifest{ID: extensionName(extension), Place: folder(extension), Package: extension, Actions: slices.Clone(members)}
	refuse := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "review extension", Target: m.ID, Err: err, Fix: fix}
	}
	switch {
	case extension.Kind != capability.KindExtension || extension.Origin.Format != format:
		return nil, refuse(fmt.Errorf("%s is not an extension package", extension.ID), "name a package with a manifest.json")
	case m.ID == "" || extension.ID != capability.MakeID(capability.KindExtension, m.ID):
		return nil, refuse(fmt.Errorf("invalid extension id %q", extension.ID), `write an "id" in its manifest.json`)
	case extension.Origin.Location != capability.Remote && extension.Trust < capability.TrustUser && !filepath.IsAbs(m.Place):
		return nil, refuse(fmt.Errorf("place %q is not an absolute path", m.Place), "use the absolute path of the catalog")
	}
	for _, c := range members {
		owner, ok := Owner(c)
		if !ok || owner != extension.ID || !slices.Contains(folders(c), m.Place) || c.Trust != extension.Trust {
			return nil, refuse(fmt.Errorf("%s of %s does not belong to this extension", c.ID, c.Origin), "")
		}
	}
	slices.SortStableFunc(m.Actions, func(a, b *capability.Capability) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Origin.Path, b.Origin.Path))
	})
	m.Digest = digestOf(m)
	return m, nil
}

func extensionName(c *capability.Capability) string {
	_, name, _ := strings.Cut(string(c.ID), ":")
	return name
}

// folder returns the place of a package: where its manifest is.
func folder(extension *capability.Capability) string { return folders(extension)[0] }

// folders returns the folders that a part of a package may be of: its file is in
// the package or in its folder commands.
func folders(c *capability.Capability) []string {
	if c.Origin.Location == capability.Remote {
		return []string{path.Dir(c.Origin.Path)}
	}
	dir := filepath.Dir(c.Origin.Path)
	if filepath.Base(dir) == "commands" && c.Kind != capability.KindExtension {
		return []string{filepath.Dir(dir), dir}
	}
	return []string{dir}
}

// A Book has the manifests of all extensions in a catalog at one moment. It
// does not change. A nil Book knows none, so that all they bring is off.
type Book struct {
	manifests []*Manifest
	parts     map[*capability.Capability]*Manifest
	problems  []error
}

// NewBook makes the book of a catalog. Give it all capabilities, also those
// that stand behind others of the same id: whether something else stands in
// front of an action must not change what the package asks for.
func NewBook(capabilities []*capability.Capability) *Book {
	type group struct {
		Key
		trust capability.Trust
	}
	packages := map[group]*capability.Capability{}
	members := map[group][]*capability.Capability{}
	for _, c := range capabilities {
		if c.Kind == capability.KindExtension && c.Origin.Format == format && c.Trust != capability.TrustBuiltin {
			g := group{Key{extensionName(c), folder(c)}, c.Trust}
			if packages[g] == nil {
				packages[g] = c
			}
		}
	}
	b := &Book{parts: map[*capability.Capability]*Manifest{}}
	for _, c := range capabilities {
		owner, ok := Owner(c)
		if !ok {
			continue
		}
		at := -1
		places := folders(c)
		group := func(i int) group {
			return group{Key{strings.TrimPrefix(string(owner), string(capability.KindExtension)+":"), places[i]}, c.Trust}
		}
		for i := range places {
			if packages[group(i)] != nil {
				at = i
				break
			}
		}
		if at < 0 {
			b.problems = append(b.problems, orphan(c, owner))
			continue
		}
		members[group(at)] = append(members[group(at)], c)
	}
	for g, extension := range packages {
		m, err := Of(extension, members[g])
		if err != nil {
			b.problems = append(b.problems, err)
			continue
		}
		b.manifests = append(b.manifests, m)
		for _, c := range m.Actions {
			b.parts[c] = m
		}
	}
	slices.SortFunc(b.manifests, func(x, y *Manifest) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Place, y.Place), cmp.Compare(y.Package.Trust, x.Package.Trust))
	})
	slices.SortFunc(b.problems, func(x, y error) int { return cmp.Compare(x.Error(), y.Error()) })
	return b
}

func orphan(c *capability.Capability, owner capability.ID) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "review", Target: string(c.ID),
		Err: fmt.Errorf("package %s has no manifest in the catalog", owner), Fix: "fix the package; ken doctor shows the problem",
	}
}

// Manifests returns all manifests, by id and place.
func (b *Book) Manifests() []*Manifest {
	if b == nil {
		return nil
	}
	return slices.Clone(b.manifests)
}

// Problems say which capabilities stay off because their package cannot be
// told.
func (b *Book) Problems() []error {
	if b == nil {
		return nil
	}
	return slices.Clone(b.problems)
}

// Of returns the manifest that a capability belongs to. The capability must be
// one of those that the book was made of, not a copy.
func (b *Book) Of(c *capability.Capability) (*Manifest, bool) {
	if b == nil {
		return nil, false
	}
	m := b.parts[c]
	return m, m != nil
}

// Find returns the extension that a person names: "tools.git", with or without
// "extension:" before it, and where several places have one of that name, with
// the place.
func (b *Book) Find(name, place string) (*Manifest, error) {
	name = strings.TrimPrefix(name, string(capability.KindExtension)+":")
	var found []*Manifest
	known := map[string]bool{}
	for _, m := range b.Manifests() {
		known[m.ID] = true
		if m.ID == name && (place == "" || m.Place == place) {
			found = append(found, m)
		}
	}
	fail := func(kind capability.ErrorKind, err error, fix string) (*Manifest, error) {
		return nil, &capability.Error{Kind: kind, Op: "find extension", Target: name, Err: err, Fix: fix}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if len(known) == 0 {
			return fail(capability.NotFound, errors.New("no extensions found"), "put a package into the extensions folder")
		}
		return fail(capability.NotFound, errors.New("extension not found"), "there are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	var places []string
	for _, m := range found {
		places = append(places, m.Place)
	}
	return fail(capability.Invalid, errors.New("several packages have this id"), "say which: "+strings.Join(places, ", "))
}
