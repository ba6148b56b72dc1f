package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// Restored says what became of one file.
type Restored struct {
	Path string `json:"path"`

	// How is "restored" for the very bytes of before, "removed" for a file
	// that was not there before, "merged" when others had changed the file and
	// only the servers were put back, and "as it was" when nothing was to do.
	How   string   `json:"how"`
	Notes []string `json:"notes,omitempty"`
}

// Undo removes Ken from a client's files again. A file that was not changed since
// is restored byte for byte. From one that was changed, Ken's entry is removed,
// the servers are put back and everything else stays; with force it gets its old
// bytes in any case. What was kept is deleted when every file is done, so Undo
// can be repeated after an error.
func Undo(ctx context.Context, client string, keep Keep, force bool) ([]Restored, error) {
	c, err := clientNamed(client)
	if err != nil {
		return nil, err
	}
	rec, err := loadRecord(ctx, keep, client)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "disconnect", Target: client, Err: errors.New("client is not connected, so there is nothing to undo")}
	}
	var out []Restored
	for _, f := range rec.Files {
		done, err := f.undo(c.forFile(f.Path, f.Original), rec.Entry, force)
		if err != nil {
			return out, err
		}
		out = append(out, done)
	}
	return out, keep.Delete(ctx, recordKey(client))
}

func (f recordedFile) undo(c Client, entry recordEntry, force bool) (Restored, error) {
	there := isThere(f.Path)
	data, target, err := readFile(f.Path)
	if err != nil {
		return Restored{}, err
	}
	switch {
	case there == f.Existed && bytes.Equal(data, f.Original):
		return Restored{Path: f.Path, How: "as it was"}, nil
	case !there:
		if err := replaceFile(target, f.Original, false, func() error { return unchanged(f.Path, false, nil) }); err != nil {
			return Restored{}, unwritten(f.Path, err)
		}
		return Restored{Path: f.Path, How: "restored", Notes: []string{"it had been deleted"}}, nil
	case force || hashOf(data) == f.Applied:
		how := "restored"
		if !f.Existed {
			how = "removed"
		}
		return Restored{Path: f.Path, How: how}, restore(f.Path, target, f.Existed, f.Original, data)
	}
	merged, notes, err := f.putBack(c, entry, data)
	if err != nil {
		return Restored{}, &capability.Error{
			Kind: capability.Conflict, Op: "disconnect", Target: f.Path, Err: err,
			Fix: "fix the file, or use --force to restore it as it was before it was connected",
		}
	}
	if err := replaceFile(target, merged, false, func() error { return unchanged(f.Path, true, data) }); err != nil {
		return Restored{}, unwritten(f.Path, err)
	}
	notes = append([]string{"it was changed after it was connected: those changes stay, the servers were put back"}, notes...)
	return Restored{Path: f.Path, How: "merged", Notes: notes}, nil
}

// putBack takes Ken's entry out of a file that others changed, and puts the
// servers back.
func (f recordedFile) putBack(c Client, entry recordEntry, data []byte) (out []byte, notes []string, err error) {
	first, err := c.format.read(f.Original)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range f.Tables {
		if t.Added != "" {
			if data, err = takeOut(c, t, data); err != nil {
				return nil, nil, err
			}
			continue
		}
		old, err := table(first, t.At)
		if err != nil {
			return nil, nil, err
		}
		doc, err := c.format.read(data)
		if err != nil {
			return nil, nil, err
		}
		entries, err := table(doc, t.At)
		if err != nil {
			return nil, nil, err
		}
		ch := change{at: t.At, drop: map[string]bool{}}
		if v, ok := entries[t.Ken]; ok && c.ours(Entry{Command: entry.Command, URL: entry.URL}, t.Ken, v) {
			ch.drop[t.Ken] = true
		}
		var again []string
		for _, name := range t.Moved {
			raw := c.format.raw(f.Original, t.At, name)
			switch _, there := entries[name]; {
			case raw == "":
			case there && !ch.drop[name]:
				again = append(again, untrusted.Line(name, 80))
			default:
				ch.put = append(ch.put, put{name: name, raw: raw, plain: old[name]})
			}
		}
		if len(again) > 0 {
			notes = append(notes, fmt.Sprintf("%s: there again, added after Ken was connected, so left as it is", strings.Join(again, ", ")))
		}
		if len(ch.put) == 0 && len(ch.drop) == 0 {
			continue
		}
		if data, _, err = changed(c.format, data, []change{ch}); err != nil {
			return nil, nil, err
		}
	}
	return data, notes, nil
}

// takeOut takes Ken's name out of a list, where both are still there.
func takeOut(c Client, t recordedTable, data []byte) ([]byte, error) {
	doc, err := c.format.read(data)
	if err != nil {
		return nil, err
	}
	if list, ok := listAt(doc, t.At); !ok || !slices.Contains(list, t.Added) {
		return data, nil
	}
	out, _, err := changed(c.format, data, []change{{at: t.At, remove: t.Added}})
	return out, err
}

// Connected returns the names of the clients that are connected, of those that
// Ken knows.
func Connected(ctx context.Context, keep Keep) ([]string, error) {
	var out []string
	for _, c := range Clients() {
		rec, err := loadRecord(ctx, keep, c.Name)
		if err != nil {
			return out, err
		}
		if rec != nil {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
