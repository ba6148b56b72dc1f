// Package sample writes the files that `ken init` begins with: a commented
// ken.yaml, its schema for editors, and a small catalog.
package sample

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ken/internal/config"
)

//go:embed catalog
var catalog embed.FS

// Catalog returns the small catalog that lies beside ken.yaml: a map, a card, a
// skill and a tool, to use and to learn from.
func Catalog() fs.FS {
	files, err := fs.Sub(catalog, "catalog")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// Write writes ken.yaml, its schema and the catalog into a directory, which is
// made where it is missing. An existing file is never changed but named in kept;
// nothing is written outside the directory, whatever links are in it. After an
// error, written says what was written before it.
func Write(dir string) (written, kept []string, err error) {
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
	if _, err := root.Lstat(config.JSONName); err == nil {
		kept = append(kept, filepath.Join(dir, config.JSONName))
	} else if err := put(config.YAMLName, config.Sample()); err != nil {
		return written, kept, err
	}
	schema, err := config.Schema()
	if err == nil {
		err = put(config.SchemaName, schema)
	}
	if err != nil {
		return written, kept, err
	}
	files := Catalog()
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
