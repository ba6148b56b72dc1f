package lists

import (
	"ken/capability"
	"ken/internal/know/source/format"
)

// Extension catalogs: packages that could be installed, listed in
// extensions.yaml. An entry is unavailable until the catalog says otherwise.

// ExtensionListFormat returns the format of extensions.yaml.
func ExtensionListFormat() format.Format {
	return format.Format{Name: "extensionlist", Claims: isExtensionList, Limit: format.ListLimit, Read: readExtensionList}
}

// isExtensionList looks for the key, since editors keep an extensions.json of
// another shape.
func isExtensionList(p string, head []byte) bool {
	return format.IsListFile(p, "extensions") && format.MentionsKey(head, "extensions")
}

// NotInstalled says why a listed extension is unavailable.
const NotInstalled = "not installed: the extension catalog lists it as unavailable; install the extension, then set available: true there"

func readExtensionList(u *format.Unit) {
	for _, e := range u.ListEntries("extensions", false) {
		r, ok := u.EntryFields(e, "extension")
		if !ok {
			continue
		}
		name := e.Name(r, "name", "id")
		if name == "" {
			u.Fault("no-name", u.Path, e.Line, "the extension has no name", "add name:")
			continue
		}
		c := &capability.Capability{
			ID:   capability.MakeID(capability.KindExtension, name),
			Kind: capability.KindExtension, Name: name, Category: r.String("category"),
		}
		format.ReadListed(r, c)
		c.Permissions = u.ReadPermissions(u.Path, r)
		if available, _ := r.Bool("available"); !available {
			c.Unavailable = NotInstalled
		}
		u.AddListed(c, r, e)
	}
}
