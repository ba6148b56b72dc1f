package app

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// What the linker writes into a release: see scripts/release. Nothing else sets
// them.
var releaseVersion, releaseCommit, releaseDate string

// A Build says what this program was built from.
type Build struct {
	Version string
	Commit  string // empty if it is not known
	Date    string // of the commit, in RFC 3339; empty if it is not known
}

// ThisBuild returns what this program was built from: what the release says, and
// otherwise what the go command recorded.
func ThisBuild() Build {
	b := Build{Version: "(devel)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(info.Main.Version, b.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			}
		}
	}
	if releaseVersion != "" {
		b = Build{releaseVersion, releaseCommit, releaseDate}
	}
	return b
}

// Version returns the version that the binary was built as.
func Version() string { return ThisBuild().Version }

// Day returns the day of the commit, as in 2006-01-02, or "".
func (b Build) Day() string {
	day, _, _ := strings.Cut(b.Date, "T")
	return day
}

// String returns the version, and in brackets the commit and its day where they
// are known.
func (b Build) String() string {
	const short = 12 // characters of a commit
	if b.Commit == "" {
		return b.Version
	}
	about := "commit " + b.Commit[:min(short, len(b.Commit))]
	if day := b.Day(); day != "" {
		about += ", " + day
	}
	return b.Version + " (" + about + ")"
}
