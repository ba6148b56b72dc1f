package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ken/capability"
)

// Keep keeps what files were before they were changed. That may have secrets
// in it, so a Keep seals what it is given; [Vault] is one. Load fails with
// [capability.NotFound] where there is nothing.
type Keep interface {
	Save(ctx context.Context, key string, data []byte) error
	Load(ctx context.Context, key string) ([]byte, error)
	Delete(ctx context.Context, key string) error
}

// record is what is kept of a connected client.
type record struct {
	Version int            `json:"version"`
	Client  string         `json:"client"`
	Entry   recordEntry    `json:"entry"`
	Sealed  []string       `json:"sealed,omitempty"` // names of secrets that came out of its files
	Files   []recordedFile `json:"files"`
}

// recordEntry tells Ken's entry from others later. The token is not kept.
type recordEntry struct {
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"`
}

// recordedFile is one file before it was changed.
type recordedFile struct {
	Path     string          `json:"path"`
	Existed  bool            `json:"existed"`
	Original []byte          `json:"original"`
	Applied  string          `json:"applied"` // the hash of what was written
	Tables   []recordedTable `json:"tables"`
}

// recordedTable is what was moved out of one table.
type recordedTable struct {
	At    []string `json:"at"`
	Moved []string `json:"moved"`
	Ken   string   `json:"ken,omitempty"`   // the name of Ken's entry
	Added string   `json:"added,omitempty"` // to the list of names at the place
}

const recordVersion = 1

func recordKey(client string) string { return "connect-" + client }

// loadRecord returns nil where a client is not connected.
func loadRecord(ctx context.Context, keep Keep, client string) (*record, error) {
	data, err := keep.Load(ctx, recordKey(client))
	if capability.KindOf(err) == capability.NotFound && err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	// The error of the decoder may quote what it read.
	if json.Unmarshal(data, &r) != nil || r.Version != recordVersion {
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "read what was kept of", Target: client,
			Err: errors.New("record cannot be read by this version of Ken"), Fix: "use the version of Ken that connected it, or take Ken's entry out by hand",
		}
	}
	return &r, nil
}

func saveRecord(ctx context.Context, keep Keep, r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep the files of %s: %w", r.Client, err)
	}
	return keep.Save(ctx, recordKey(r.Client), data)
}

// Sealed returns the names of the secrets that came out of a client's files when
// it was connected. Others that its servers refer to a person has set.
func Sealed(ctx context.Context, client string, keep Keep) ([]string, error) {
	r, err := loadRecord(ctx, keep, client)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Sealed, nil
}

func (r *record) file(path string) *recordedFile {
	if r == nil {
		return nil
	}
	for i := range r.Files {
		if r.Files[i].Path == path {
			return &r.Files[i]
		}
	}
	return nil
}

// tables says what the changes of a file moved.
func (c Change) tables() []recordedTable {
	var out []recordedTable
	for _, ch := range c.changes {
		t := recordedTable{At: ch.at, Added: ch.add}
		if ch.isList() {
			out = append(out, t)
			continue
		}
		for _, name := range c.client.format.names(c.Before, ch.at) {
			if ch.drop[name] {
				t.Moved = append(t.Moved, name)
			}
		}
		for _, p := range ch.put {
			t.Ken = p.name
		}
		out = append(out, t)
	}
	return out
}

// joinTables adds what was moved now to what was moved before.
func joinTables(old, now []recordedTable) []recordedTable {
	out := slices.Clone(old)
	for _, t := range now {
		i := slices.IndexFunc(out, func(o recordedTable) bool { return slices.Equal(o.At, t.At) })
		if i < 0 {
			out = append(out, t)
			continue
		}
		moved := slices.Clone(out[i].Moved)
		for _, name := range t.Moved {
			if !slices.Contains(moved, name) {
				moved = append(moved, name)
			}
		}
		out[i].Moved = moved
		if t.Ken != "" {
			out[i].Ken = t.Ken
		}
	}
	return out
}
