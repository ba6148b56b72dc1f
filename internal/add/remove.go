package add

import (
	"errors"
	"os"
	"path/filepath"

	"ken/capability"
	"ken/internal/know/source/openapi"
	"ken/internal/yamldoc"
)

// FindAPI returns the folder of an API that was added, and whether there is one
// of this name.
func FindAPI(places Places, name string) (folder string, ok bool) {
	if !apiName.MatchString(name) {
		return "", false
	}
	folder = filepath.Join(places.Capabilities, name)
	info, err := os.Lstat(filepath.Join(folder, openapi.Marker))
	return folder, err == nil && info.Mode().IsRegular()
}

// RemoveAPI removes an API that was added.
func RemoveAPI(places Places, name string) error {
	folder, ok := FindAPI(places, name)
	if !ok {
		return NotAdded(name)
	}
	return places.take(folder)
}

// NotAdded returns the error of a name under which nothing was added.
func NotAdded(name string) error {
	return &capability.Error{
		Kind: capability.NotFound, Op: "remove", Target: name, Err: errors.New("nothing was added under this name"),
		Fix: "ken remove without a name lists what was added",
	}
}

// An Added is something that ken add added.
type Added struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	From   string `json:"from,omitempty"`
	Folder string `json:"folder"`
}

// List returns what was added, by kind and name.
func List(places Places) ([]Added, error) {
	var out []Added
	entries, err := os.ReadDir(places.Capabilities)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if folder, ok := FindAPI(places, e.Name()); ok {
			out = append(out, Added{"api", e.Name(), markedFrom(filepath.Join(folder, openapi.Marker)), folder})
		}
	}
	return out, nil
}

// markedFrom returns where something came from, by what was written beside it.
func markedFrom(marker string) string {
	data, err := os.ReadFile(marker)
	if err != nil {
		return ""
	}
	m, err := yamldoc.Parse(data, yamldoc.Limits{})
	if err != nil {
		return ""
	}
	return yamldoc.NewReader(m).String("from")
}
