package source

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"ken/internal/know/source/markdown"
	"ken/internal/know/source/safefs"
)

// A look is what the file system says about the files of a unit, without
// reading them. It goes as deep as any format does.
type look struct {
	// print changes when a file does. Zero is never equal to another: the
	// files were touched so lately that their times cannot tell, or they are
	// too many.
	print uint64

	files []uint32 // hashed names of the documents that hold something
	empty []string // documents that hold nothing
	links []string // paths that the links among the files hang on
}

// sameAs reports whether nothing changed between two looks.
func (l look) sameAs(m look) bool { return l.print == m.print && l.print != 0 }

// lost returns a document that held something in an earlier look and is empty
// now, or gone.
func (l look) lost(earlier look) (emptied string, gone bool) {
	have := slices.Clone(l.files)
	for _, name := range l.empty {
		h := hashName(name)
		if emptied == "" && slices.Contains(earlier.files, h) {
			emptied = name
		}
		have = append(have, h)
	}
	for _, h := range earlier.files {
		if !slices.Contains(have, h) {
			return emptied, true
		}
	}
	return emptied, false
}

// A looker gathers a look.
type looker struct {
	root  *safefs.Root
	now   time.Time
	sum   hash.Hash64
	vague bool // the print would not tell
	count int
	look
}

const (
	lookDepth = 1 + markdown.MaxSkillDepth
	lookFiles = 2 * markdown.MaxSkillListed
)

// lookAt looks at a file or folder. e, when not nil, is its entry in the folder
// around it and saves asking again.
func lookAt(r *safefs.Root, p string, e fs.DirEntry) look {
	l := &looker{root: r, now: time.Now(), sum: fnv.New64a()}
	if e == nil {
		if info, err := fs.Lstat(r.FS, p); err == nil {
			e = fs.FileInfoToDirEntry(info)
		}
	}
	l.visit(p, e, lookDepth)
	l.print = l.sum.Sum64()
	if l.vague {
		l.print = 0
	}
	return l.look
}

func (l *looker) visit(p string, e fs.DirEntry, depth int) {
	if e == nil {
		l.put(p, 0)
		return
	}
	link := e.Type()&fs.ModeSymlink != 0
	info, err := e.Info()
	if link {
		l.links = append(l.links, l.root.Trail(p)...)
		info, err = fs.Stat(l.root.FS, p)
	}
	if err != nil {
		l.put(p, 0)
		return
	}
	if !info.IsDir() {
		l.file(p, info)
		return
	}
	if depth == 0 || link && depth < lookDepth {
		return
	}
	entries, err := l.root.List(p)
	if err != nil {
		l.put(p, 0)
		return
	}
	for _, e := range entries {
		if l.count++; l.count > lookFiles {
			l.vague = true
			return
		}
		if !safefs.SkipFolder(e.Name()) {
			l.visit(path.Join(p, e.Name()), e, depth-1)
		}
	}
}

func (l *looker) file(p string, info fs.FileInfo) {
	l.printFile(p, info)
	l.vague = l.vague || isRecent(info.ModTime(), l.now)
	switch {
	case !isDocument(p):
	case info.Size() == 0:
		l.empty = append(l.empty, p)
	default:
		l.files = append(l.files, hashName(p))
	}
}

// printFile takes in all that tells a file from another and from itself at
// another time. A folder is only told from another folder.
func (l *looker) printFile(p string, info fs.FileInfo) {
	inode, changed := identity(info)
	if info.IsDir() {
		l.put(p, uint64(info.Mode()), inode)
		return
	}
	l.put(p, uint64(info.Size()), uint64(info.ModTime().UnixNano()), uint64(info.Mode()), inode, changed)
}

func (l *looker) put(p string, values ...uint64) {
	buf := append(make([]byte, 0, len(p)+1+8*len(values)), p...)
	buf = append(buf, 0)
	for _, v := range values {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	l.sum.Write(buf)
}

// isRecent reports whether a file could change again without its time of
// change moving. Whole seconds mean a file system that keeps no finer ones.
func isRecent(changed, now time.Time) bool {
	age := now.Sub(changed)
	if changed.Nanosecond() == 0 {
		return age >= 0 && age < 2*time.Second
	}
	return age >= 0 && age < 20*time.Millisecond
}

func hashName(p string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(p))
	return h.Sum32()
}

// isDocument reports whether a file's name is one that some format reads.
func isDocument(p string) bool {
	return safefs.HasExt(p, ".md", ".json", ".jsonl", ".yaml", ".yml") && safefs.BaseName(p) != "readme.md" && !isScratch(path.Base(p))
}

// isScratch knows the files that editors and tools leave for a moment beside
// the one they write.
func isScratch(name string) bool {
	return strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".goutputstream-") || name == "4913" || name == ".DS_Store" ||
		safefs.HasExt(name, ".swp", ".swx", ".swo", ".tmp", ".part", ".crdownload", ".bak", ".orig", ".lock")
}

// dependingOn returns the look of a unit that was read from further files: a
// change of one of them is a change of the unit, and since the look does not
// cover them it never counts as the same.
func (l look) dependingOn(files []string) look {
	if len(files) > 0 {
		l.links = append(slices.Clone(l.links), files...)
		l.print = 0
	}
	return l
}
