package wholefile

import (
	"io/fs"
	"os"
	"time"
)

// A Stamp is how a file looked at one moment: which file it was, its size and
// the time of its last change. A program can set the time of modification back, so
// on Linux the time when anything about the file changed counts as well.
type Stamp struct {
	Path string
	Info fs.FileInfo // nil: there was no file

	// Recent is true if the file was changed so shortly before that another
	// change may leave the same Info.
	Recent bool
}

// tick is the longest time in which a file system may give two changes the same
// time.
const tick = 20 * time.Millisecond

// StampOf looks at a file.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{Path: path}
	}
	recent := time.Since(info.ModTime()).Abs() < tick || time.Since(changed(info)).Abs() < tick
	return Stamp{path, info, recent}
}

// Same reports whether the file is certain to be unchanged since s, given how it
// looks now.
func (s Stamp) Same(now Stamp) bool { return !s.Recent && s.Looks(now) }

// Unchanged looks at the file again and reports whether it is certain to be as it
// was. It is Same(StampOf(s.Path)) for less: calls ask this of several files.
func (s Stamp) Unchanged() bool { return !s.Recent && s.looksNow() }

// Looks reports whether the file looks as it did.
func (s Stamp) Looks(now Stamp) bool {
	if s.Info == nil || now.Info == nil {
		return s.Info == now.Info
	}
	return os.SameFile(s.Info, now.Info) && s.Info.Size() == now.Info.Size() && s.Info.ModTime().Equal(now.Info.ModTime()) && s.Changed().Equal(now.Changed())
}

// Changed returns when the file, or what is known of it, last changed.
func (s Stamp) Changed() time.Time { return changed(s.Info) }
