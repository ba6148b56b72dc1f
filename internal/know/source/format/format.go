package format

import "ken/internal/know/source/safefs"

// A Format reads one kind of unit. To add a format, write its Read
// function and add it to the list in package source.
type Format struct {
	Name string

	// Markers are names of files that make the folder around them one unit
	// of this format. Formats earlier in the table win.
	Markers []string

	// Accepts, when not nil, looks closer at a folder with such a file.
	Accepts func(r *safefs.Root, dir string) bool

	// Claims reports whether a single file is a unit of this format. head is
	// the beginning of the file, at least 4 KiB of it where there is as much.
	Claims func(p string, head []byte) bool

	// BelongsAt, when not nil, reports whether a single file is a unit of this
	// format because of the folder it lies in. Its path begins with the names
	// of the tree's own folder and the one around it, since a tree may begin
	// at "commands" itself.
	BelongsAt func(place string) bool

	// Limit caps the bytes of the unit's main file.
	Limit int64

	// Keep holds schemas and bodies in memory, for formats in which reading
	// one again would mean parsing a large file again.
	Keep bool

	// Pure means that Read looks at nothing but the bytes and the name of
	// one file, so that its result may be cached.
	Pure bool

	// Read reads a unit and adds what it finds to it.
	Read func(u *Unit)
}

// Reads reports whether a single file is a unit of the format.
func (f *Format) Reads(r *safefs.Root, p string, head []byte) bool {
	return f.Claims != nil && f.Claims(p, head) || f.BelongsAt != nil && f.BelongsAt(r.Place(p))
}
