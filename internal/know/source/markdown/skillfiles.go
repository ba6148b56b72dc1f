package markdown

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/untrusted"
	"ken/internal/yamldoc"
)

// A skill is more than its text: a model that follows it runs its scripts and
// reads its references. What is malicious in a skill is mostly there, so these
// files are scanned like the text and are part of the skill's hash.

const (
	MaxSkillFiles     = 64 // scanned
	MaxSkillListed    = 2000
	MaxSkillFileBytes = 256 << 10
	MaxSkillDepth     = 6

	metaFiles     = "files"     // JSON list of paths within the folder
	metaFileCount = "fileCount" // how many there are, listed or not
	metaFilesHash = "filesHash"
)

// A surface is the files of a skill beside SKILL.md.
type surface struct {
	s     *skill
	root  *safefs.Root // the skill's folder
	paths []string
	links []string
	inner []string // folders that are skills themselves
	more  bool     // there are files that were not listed
}

// scanFiles lists the skill's other files and scans those that are text.
func (s *skill) scanFiles(c *capability.Capability) {
	folder, err := s.u.Root.Beneath(s.folder)
	if err != nil {
		s.u.FaultErr("unreadable", s.folder, 1, err)
		return
	}
	defer folder.Close()
	f := &surface{s: s, root: folder}
	f.list(".", 0)
	f.report()
	if len(f.paths)+len(f.links)+len(f.inner) == 0 {
		return
	}
	listed, _ := json.Marshal(f.paths[:min(len(f.paths), MaxSkillFiles)]) // strings cannot fail
	format.SetMeta(c, metaFiles, yamldoc.Value{Any: string(listed)})
	format.SetMeta(c, metaFileCount, yamldoc.Value{Any: strconv.Itoa(len(f.paths))})
	hash, findings := f.scan()
	format.SetMeta(c, metaFilesHash, yamldoc.Value{Any: hash})
	c.Findings = append(c.Findings, findings...)
}

// list gathers the files of a folder and those below, sorted by path. A folder
// that is a skill itself is left out.
func (f *surface) list(dir string, depth int) {
	entries, err := f.root.List(dir)
	if err != nil || depth > MaxSkillDepth || f.s.u.Context.Err() != nil {
		f.more = f.more || err == nil
		return
	}
	own := func(e fs.DirEntry) bool { return dir == "." && e.Name() == path.Base(f.s.file) }
	if depth > 0 && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(format.SkillMarkers(), e.Name()) }) {
		f.inner = append(f.inner, dir)
		return
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case own(e): // an editor's files count too: a skill could tell a model to run one
		case len(f.paths) >= MaxSkillListed:
			f.more = true
			return
		case e.Type()&fs.ModeSymlink != 0:
			f.links = append(f.links, p)
		case e.IsDir():
			if !safefs.SkipFolder(e.Name()) {
				f.list(p, depth+1)
			}
		default:
			f.paths = append(f.paths, p)
		}
	}
}

// report says which files the scan does not see.
func (f *surface) report() {
	if n := len(f.paths); n > MaxSkillFiles || f.more {
		count := strconv.Itoa(n)
		if f.more {
			count = "more than " + count
		}
		f.warn(".", fmt.Sprintf("the skill has %s files; only %d are scanned", count, min(n, MaxSkillFiles)), "keep a skill small, or name what it needs elsewhere")
	}
	for i, p := range f.links {
		if i == 3 {
			f.warn(p, fmt.Sprintf("%d more links are not followed", len(f.links)-i), "copy the files into the skill")
			break
		}
		f.warn(p, "a link is not followed, so what it leads to is not scanned", "copy the file into the skill")
	}
}

func (f *surface) warn(p, message, fix string) {
	f.s.u.Warn("unscanned-file", path.Join(f.s.folder, p), 0, message, fix)
}

// scan reads the files and returns what the text scan found in them, and a hash
// over their names and contents, of those that are not scanned too.
func (f *surface) scan() (hash string, findings []capability.Finding) {
	h := sha256.New()
	for _, p := range f.inner {
		fmt.Fprintf(h, "skill %d:%s", len(p), p)
	}
	for _, p := range f.links {
		target := f.root.LinkTarget(p)
		fmt.Fprintf(h, "link %d:%s %d:%s", len(p), p, len(target), target)
	}
	for i, p := range f.paths {
		fmt.Fprintf(h, "%d:%s", len(p), p)
		if i >= MaxSkillFiles {
			f.root.HashInto(h, p)
			continue
		}
		data, _, err := f.root.Read(p, MaxSkillFileBytes)
		if err != nil {
			f.root.HashInto(h, p)
			if !isAsset(p) {
				f.warn(p, "not scanned: "+err.Error(), "keep only readable text of at most 256 KiB in a skill")
			}
			continue
		}
		fmt.Fprintf(h, "%d:%s", len(data), data)
		text, _, nul := format.AsText(data)
		if nul > 0 {
			if isAsset(p) {
				continue
			}
			// A NUL must not hide a script from the scan: shells pass over it.
			f.warn(p, fmt.Sprintf("it is not plain text (NUL on line %d); scanned as far as it can be read", nul), "keep only text and pictures in a skill")
			text, _, _ = format.AsText(bytes.ReplaceAll(data, []byte{0}, nil))
		}
		findings = append(findings, seal.Findings("file:"+p, untrusted.Scan(string(text)))...)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16]), findings
}

// isAsset reports whether a file's name is that of a picture, a font, a
// document or an archive, which no scan of text can judge.
func isAsset(p string) bool {
	return safefs.HasExt(p, ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tiff", ".svgz", ".pdf",
		".ttf", ".otf", ".woff", ".woff2", ".eot", ".docx", ".xlsx", ".pptx", ".odt", ".zip", ".gz", ".tgz",
		".mp3", ".mp4", ".wav", ".ogg", ".webm", ".mov")
}
