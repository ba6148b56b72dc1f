package add

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/openapi"
	"ken/internal/yamldoc"
)

// FindAPI returns the folder of an API that was added, and whether there is one
// of this name.
func FindAPI(places Places, name string) (folder string, ok bool) {
	if !apiName().MatchString(name) {
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

// packageMarker returns the file that says where a package came from.
func (p Places) packageMarker(id string) string { return filepath.Join(p.Extensions, "."+id+".added") }

// FindPackage returns the folder of a package that was added, and whether there is
// one of this id.
func FindPackage(places Places, id string) (folder string, ok bool) {
	if !filepath.IsLocal(id) || strings.ContainsAny(id, `/\`) || strings.HasPrefix(id, ".") {
		return "", false
	}
	info, err := os.Lstat(places.packageMarker(id))
	return filepath.Join(places.Extensions, id), err == nil && info.Mode().IsRegular()
}

// RemovePackage removes a package that was added. What its programs wrote stays;
// work is the folder with it, or "".
func RemovePackage(places Places, id string) (work string, err error) {
	folder, ok := FindPackage(places, id)
	if !ok {
		return "", NotAdded(id)
	}
	keep := filepath.Join(folder, "work")
	if entries, err := os.ReadDir(keep); err != nil || len(entries) == 0 {
		if err := places.take(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		return "", os.Remove(places.packageMarker(id))
	}
	list, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { // the manifest goes first: without it nothing is read
		return cmp.Or(-compareBool(a.Name() == format.ExtensionManifest, b.Name() == format.ExtensionManifest), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range list {
		if e.Name() != "work" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	return keep, errors.Join(err, os.Remove(places.packageMarker(id)))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
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
	entries, err = os.ReadDir(places.Extensions)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name, _ := strings.CutSuffix(strings.TrimPrefix(e.Name(), "."), ".added")
		if folder, ok := FindPackage(places, name); ok && e.Name() == filepath.Base(places.packageMarker(name)) {
			out = append(out, Added{"package", name, markedFrom(places.packageMarker(name)), folder})
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
