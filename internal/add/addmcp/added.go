package addmcp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"ken/internal/coldsort"
	"ken/internal/wholefile"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// An Added is a server that was added.
type Added struct {
	Name    string
	From    string
	Package string
	Folder  string // of its npm package; empty: there is none
}

func (c Config) marker(name string) string { return filepath.Join(c.Markers, name+".yaml") }

// Keep notes that the server was added, and removes the package of the one before.
// Close does nothing then.
func (s *Server) Keep() error {
	before, had := Find(s.cfg, s.Name)
	text := "# Written by ken add. ken remove removes the server.\n"
	for _, line := range [][2]string{{"from", s.From}, {"package", s.Package}, {"digest", s.Digest}, {"folder", s.Folder}} {
		if line[1] != "" {
			text += line[0] + ": " + yamledit.Flow(line[1]) + "\n"
		}
	}
	if err := os.MkdirAll(s.cfg.Markers, 0o700); err != nil {
		return err
	}
	if err := wholefile.Write(s.cfg.marker(s.Name), []byte(text), 0o600); err != nil {
		return err
	}
	s.Folder = ""
	if had {
		return before.removePackage(s.cfg)
	}
	return nil
}

// Find returns a server that was added.
func Find(cfg Config, name string) (Added, bool) {
	if !serverName().MatchString(name) {
		return Added{}, false
	}
	data, err := os.ReadFile(cfg.marker(name))
	if err != nil {
		return Added{}, false
	}
	out := Added{Name: name}
	if doc, err := yamldoc.Parse(data, yamldoc.Limits{}); err == nil {
		r := yamldoc.NewReader(doc)
		out.From, out.Package, out.Folder = r.String("from"), r.String("package"), r.String("folder")
	}
	return out, true
}

// List returns the servers that were added, by name.
func List(cfg Config) ([]Added, error) {
	entries, err := os.ReadDir(cfg.Markers)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var out []Added
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ".yaml")
		if a, ok := Find(cfg, name); is && ok {
			out = append(out, a)
		}
	}
	coldsort.By(out, func(a, b Added) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Forget removes the package of a server, and what says that it was added.
func (a Added) Forget(cfg Config) error {
	return errors.Join(a.removePackage(cfg), os.Remove(cfg.marker(a.Name)))
}

// removePackage removes the folder of a package, if it is one of those that were
// installed.
func (a Added) removePackage(cfg Config) error {
	if a.Folder == "" || filepath.Dir(a.Folder) != cfg.Packages {
		return nil
	}
	return os.RemoveAll(a.Folder)
}
