package mcpbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"sync"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/know/source/mcpskill"
	"ken/internal/know/source/safefs"
	"ken/internal/know/source/seal"
	"ken/internal/serve/skillshelf"
)

// Skills reads the skills that lie in local files, for clients that know skills.
// It offers a skill only if the scan of the catalog has seen all of its files.
type Skills struct {
	mu    sync.Mutex
	known map[capability.ID]describedSkill
}

// A describedSkill is what was found for one version of a skill.
type describedSkill struct {
	hash  string
	skill skillshelf.Skill
	err   error
}

// mostDescribed bounds how many skills are kept.
const mostDescribed = 4096

// Skill implements mcpserver.Skills.
func (s *Skills) Skill(e *door.Entry) (skillshelf.Skill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.known[e.ID]
	if !ok || d.hash != e.Hash {
		d = describedSkill{hash: e.Hash}
		d.skill, d.err = describe(e)
		if s.known == nil || len(s.known) >= mostDescribed {
			s.known = map[capability.ID]describedSkill{}
		}
		s.known[e.ID] = d
	}
	out := d.skill
	out.Files = append([]skillshelf.File(nil), d.skill.Files...) // the caller changes it
	return out, d.err
}

// folderOf opens the folder of a skill.
func folderOf(e *door.Entry) (*safefs.Root, error) {
	if e.Origin.Format != "skill" || e.Origin.Location != capability.Local || filepath.Base(e.Origin.Path) != mcpskill.Main {
		return nil, errors.New("it is not a local folder with " + mcpskill.Main)
	}
	dir := filepath.Dir(e.Origin.Path)
	return safefs.Open(dir, "", false)
}

// describe reads all files of a skill and returns what clients are told of them.
func describe(e *door.Entry) (out skillshelf.Skill, err error) {
	if !mcpskill.GoodName(e.Name) {
		return out, fmt.Errorf("the name %q must have only lowercase letters, digits and single hyphens", e.Name)
	}
	root, err := folderOf(e)
	if err != nil {
		return out, err
	}
	defer root.Close()
	paths := []string{mcpskill.Main}
	if listed := e.Meta["files"]; listed != "" {
		var more []string
		if err := json.Unmarshal([]byte(listed), &more); err != nil {
			return out, err
		}
		paths = append(paths, more...)
	}
	if err := complete(root, paths); err != nil {
		return out, err
	}
	var total int64
	for _, p := range paths {
		data, _, err := root.Read(p, mcpskill.MaxBytes)
		if err != nil {
			return out, err
		}
		if total += int64(len(data)); total > mcpskill.MaxBytes {
			return out, fmt.Errorf("its files have more than %d bytes", mcpskill.MaxBytes)
		}
		if p == mcpskill.Main {
			if out.Frontmatter, err = mcpskill.Frontmatter(data); err != nil {
				return out, err
			}
		}
		out.Files = append(out.Files, skillshelf.File{URI: p, Digest: mcpskill.Digest(data), Size: int64(len(data))})
	}
	var front struct{ Name, Description string }
	if json.Unmarshal(out.Frontmatter, &front) != nil || front.Name != e.Name || front.Description == "" {
		return out, errors.New("its frontmatter lacks its name or a description")
	}
	return out, nil
}

// complete finds files of a skill that the scan of the catalog has not seen: links,
// skills within the skill, and more files than are scanned.
func complete(root *safefs.Root, scanned []string) error {
	known := make(map[string]bool, len(scanned))
	for _, p := range scanned {
		known[p] = true
	}
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := root.List(dir)
		if err != nil {
			return err
		}
		if depth > 16 || len(entries) > mcpskill.MaxFiles {
			return errors.New("it has too many files")
		}
		for _, entry := range entries {
			p := path.Join(dir, entry.Name())
			switch {
			case entry.IsDir():
				if err := walk(p, depth+1); err != nil {
					return err
				}
			case !known[p]:
				return fmt.Errorf("the file %s was not scanned: it is a link, it belongs to another skill, or the skill has too many files", p)
			}
		}
		return nil
	}
	return walk(".", 0)
}

// File implements mcpserver.Skills.
func (s *Skills) File(e *door.Entry, file string) ([]byte, error) {
	sk, err := s.Skill(e)
	if err != nil {
		return nil, err
	}
	changed := func(err error) error {
		return &capability.Error{Kind: capability.Conflict, Op: "read the skill", Target: string(e.ID), Err: err, Fix: "list the skills again"}
	}
	root, err := folderOf(e)
	if err != nil {
		return nil, changed(err)
	}
	defer root.Close()
	for _, f := range sk.Files {
		if f.URI != file {
			continue
		}
		data, _, err := root.Read(file, mcpskill.MaxBytes)
		switch {
		case err != nil:
			return nil, changed(err)
		case mcpskill.Digest(data) != f.Digest:
			return nil, changed(fmt.Errorf("the file %s has changed since it was listed", file))
		}
		for _, finding := range seal.Findings("text", seal.ScanText(string(data))) {
			if finding.Severity == capability.Grave {
				return nil, changed(fmt.Errorf("%s: %s: %s", file, finding.Rule, finding.Excerpt))
			}
		}
		return data, nil
	}
	return nil, &capability.Error{Kind: capability.NotFound, Op: "read the skill", Target: string(e.ID), Err: fmt.Errorf("it has no file %s", file)}
}
