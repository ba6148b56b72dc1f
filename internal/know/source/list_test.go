package source

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

func symlink(target, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.Symlink(target, name)
}

// twoFiles are a package's manifest and commands, for fuzzing.
type twoFiles struct{ manifest, commands string }

func (f twoFiles) Open(name string) (fs.File, error) {
	return fstest.MapFS{
		"manifest.json": {Data: []byte(f.manifest)}, "commands.yaml": {Data: []byte(f.commands)},
		"docs/USAGE.md": {Data: []byte("Use it.")},
	}.Open(name)
}

// readAs reads one file by a format.
func readAs(f format.Format, name string, data []byte) *format.Unit {
	u := &format.Unit{Context: context.Background(), Root: &safefs.Root{Name: "r"}, Path: name, Format: f.Name, Data: data}
	f.Read(u)
	return u
}

// checkUnit checks what must hold of any unit, whatever the input was.
func checkUnit(t *testing.T, u *format.Unit) {
	t.Helper()
	for i, c := range u.Capabilities {
		switch {
		case c.ID == "" || c.Name == "" || c.Kind == "" || c.Category == "" || c.Hash == "":
			t.Errorf("capability %+v lacks a field", c)
		case c.Trust != capability.TrustRemote:
			t.Errorf("%s has trust %v, more than its source", c.ID, c.Trust)
		case c.Run != nil && c.Run.Runner == "":
			t.Errorf("%s has a recipe without a runner", c.ID)
		case c.Kind == capability.KindChannel && c.Category != "communication":
			t.Errorf("channel %s is in %s", c.ID, c.Category)
		}
		if s := u.Details[i].Schema; s != nil && !json.Valid(s) {
			t.Errorf("schema of %s is not JSON: %s", c.ID, s)
		}
	}
	for _, p := range u.Presets {
		if p.Name == "" || len(p.Members) == 0 {
			t.Errorf("preset %+v is empty", p)
		}
	}
	for _, p := range u.Problems {
		if p.Code == "" || p.Message == "" || p.Origin.Path == "" {
			t.Errorf("problem %+v does not say what and where", p)
		}
	}
}
