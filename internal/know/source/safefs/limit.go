package safefs

// Limits on the size of files, by what they hold.
const (
	TextLimit    = 50 << 10  // cards, skills' metadata, manifests
	BodyLimit    = 512 << 10 // bodies that are shown in parts
	CatalogLimit = 256 << 20 // catalogs with one record per line
	TableLimit   = 32 << 20  // files parsed as a whole
)
