package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ken/internal/yamledit"
)

// Sample returns a ken.yaml with every key, commented out, with its default and a
// line about it.
func Sample() []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=" + schemaName + "\n" + `# Settings of Ken. Every key is here with its default, commented out: take the
# "# " before one away to change it, or run, for example,
#     ken config set capabilities.maxTokens 900
# which keeps these comments. A key that Ken does not know is an error.
# "ken config get" says what is in force and where that was said.
`)
	standard := Default()
	section := ""
	for _, s := range settings() {
		name, key, inSection := strings.Cut(s.name, ".")
		if !inSection {
			fmt.Fprintf(&b, "\n# %s\n# %s: %s\n", s.doc, name, yamledit.Flow(s.show(&standard)))
			continue
		}
		if name != section {
			section = name
			b.WriteString("\n" + name + ":\n")
		} else {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  # %s\n  # %s: %s\n", s.doc, key, yamledit.Flow(s.show(&standard)))
	}
	return []byte(b.String())
}

//go:embed sample
var sampleCatalog embed.FS

// InitFiles returns the small catalog that `ken init` writes beside ken.yaml: a
// map, a card, a skill and a tool, to use and to learn from.
func InitFiles() fs.FS {
	files, err := fs.Sub(sampleCatalog, "sample")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// schemaName is the file beside ken.yaml that says to editors what it may hold.
const schemaName = "ken.schema.json"

// Init writes ken.yaml, its schema and the sample catalog into a directory, which is made
// where it is missing. An existing file is never changed but named in kept;
// nothing is written outside the directory, whatever links are in it. After an
// error, written says what was written before it.
func Init(dir string) (written, kept []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("init %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("init %s: %w", dir, err)
	}
	defer root.Close()
	put := func(name string, data []byte) error {
		err := create(root, name, data)
		full := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case errors.Is(err, fs.ErrExist):
			kept = append(kept, full)
		case err != nil:
			return fmt.Errorf("init %s: %w", full, err)
		default:
			written = append(written, full)
		}
		return nil
	}
	// Both ken.yaml and ken.json would be one too many.
	if _, err := root.Lstat(jsonName); err == nil {
		kept = append(kept, filepath.Join(dir, jsonName))
	} else if err := put(yamlName, Sample()); err != nil {
		return written, kept, err
	}
	schema, err := Schema()
	if err == nil {
		err = put(schemaName, schema)
	}
	if err != nil {
		return written, kept, err
	}
	files := InitFiles()
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return put(name, data)
	})
	return written, kept, err
}

// create writes a new file whole, or none.
func create(root *os.Root, name string, data []byte) error {
	local := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, root.Remove(local))
	}
	return nil
}
