package source

import "ken/capability"

// Extension catalogs: packages that could be installed, listed in
// extensions.yaml. An entry is unavailable until the catalog says otherwise.

func extensionListFormat() format {
	return format{name: "extensionlist", claims: isExtensionList, limit: listBytes, read: readExtensionList}
}

// isExtensionList looks for the key, since editors keep an extensions.json of
// another shape.
func isExtensionList(p string, head []byte) bool {
	return isListFile(p, "extensions") && mentionsKey(head, "extensions")
}

const notInstalled = "not installed: the extension catalog lists it as unavailable; install the extension, then set available: true there"

func readExtensionList(u *unit) {
	for _, e := range u.listEntries("extensions", false) {
		r, ok := u.entryFields(e, "extension")
		if !ok {
			continue
		}
		name := e.name(r, "name", "id")
		if name == "" {
			u.fault("no-name", u.path, e.line, "the extension has no name", "add name:")
			continue
		}
		c := &capability.Capability{
			ID:   capability.MakeID(capability.KindExtension, name),
			Kind: capability.KindExtension, Name: name, Category: r.String("category"),
		}
		readListed(r, c)
		c.Permissions = u.readPermissions(u.path, r)
		if available, _ := r.Bool("available"); !available {
			c.Unavailable = notInstalled
		}
		u.addListed(c, r, e)
	}
}
