package source

import "ken/internal/know/source/safefs"

// A format reads one kind of unit. Adding a format is adding a file with its
// read function and a line to formats.
type format struct {
	name string

	// markers are names of files that make the folder around them one unit
	// of this format. Formats earlier in the table win.
	markers []string

	// accepts, when not nil, looks closer at a folder with such a file.
	accepts func(r *safefs.Root, dir string) bool

	// claims reports whether a single file is a unit of this format. head is
	// the beginning of the file, at least 4 KiB of it where there is as much.
	claims func(p string, head []byte) bool

	// lives, when not nil, reports whether a single file is a unit of this
	// format because of the folder it lies in. Its path begins with the names
	// of the tree's own folder and the one around it, since a tree may begin
	// at "commands" itself.
	lives func(place string) bool

	// limit caps the bytes of the unit's main file.
	limit int64

	// keep holds schemas and bodies in memory, for formats in which reading
	// one again would mean parsing a large file again.
	keep bool

	// pure means that read looks at nothing but the bytes and the name of
	// one file, so that what it gave may be cached.
	pure bool

	read func(u *unit)
}

// formats lists every format, most particular first.
func formats() []format {
	return []format{
		manifestFormat(),
		extensionFormat(),
		skillFormat(),
		documentFormat(),
		registryFormat(),
		commandFormat(),
		cardFormat(),
		channelFormat(),
		extensionListFormat(),
		presetFormat(),
		jsonlFormat(),
		openapiFormat(),
		mcpListFormat(),
	}
}

// reads reports whether a single file is a unit of the format.
func (f *format) reads(r *safefs.Root, p string, head []byte) bool {
	return f.claims != nil && f.claims(p, head) || f.lives != nil && f.lives(r.Place(p))
}
