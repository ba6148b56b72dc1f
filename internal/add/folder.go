package add

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"ken/capability"
	"ken/internal/wholefile"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Places are the folders that are written to, and how the rest is read.
type Places struct {
	Capabilities string // of the user: APIs, each in a folder
	Extensions   string // of the user: packages, each in a folder
	Staging      string // what is not added yet; nothing there is in the catalog

	World
}

// A World is how what is added is read: documents at addresses, and folders as the
// catalog reads them. All fields are required. Package remote has Fetch and Ask.
type World struct {
	Fetch func(ctx context.Context, address string) (data []byte, shown string, err error)
	Ask   func(ctx context.Context, address string, header http.Header, body []byte) (data []byte, shown string, err error)
	Load  func(ctx context.Context, dir string) (capability.Batch, error)
}

// stage returns a new empty folder.
func (p Places) stage() (string, error) {
	if err := os.MkdirAll(p.Staging, dirMode); err != nil {
		return "", err
	}
	return os.MkdirTemp(p.Staging, "add-")
}

// unstage removes such a folder, if it is still there.
func (p Places) unstage(dir string) error {
	err := os.RemoveAll(dir)
	_ = os.Remove(p.Staging) // another add may be under way in it
	return err
}

// move moves a folder to target, in place of the one that is there. If it fails,
// target is as it was.
func (p Places) move(from, target string) (err error) {
	if err := os.MkdirAll(filepath.Dir(target), dirMode); err != nil {
		return err
	}
	old, err := p.stage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.unstage(old)) }()
	aside := filepath.Join(old, "old")
	had := os.Rename(target, aside)
	if had != nil && !errors.Is(had, fs.ErrNotExist) {
		return had
	}
	if err := os.Rename(from, target); err != nil {
		if had == nil {
			err = errors.Join(err, os.Rename(aside, target))
		}
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(target))
}

// take moves a folder out of its place and deletes it. It is gone at once, and
// never there in part.
func (p Places) take(target string) error {
	dir, err := p.stage()
	if err != nil {
		return err
	}
	if err := os.Rename(target, filepath.Join(dir, "old")); err != nil {
		return errors.Join(err, p.unstage(dir))
	}
	return errors.Join(wholefile.SyncFolder(filepath.Dir(target)), p.unstage(dir))
}
