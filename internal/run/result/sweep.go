package result

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ken/internal/coldsort"
)

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// Swept says what a sweep found and did.
type Swept struct {
	Results int   // left
	Bytes   int64 // left
	Removed int
}

// A kept is one result with its text, or a part of one.
type kept struct {
	folder, handle string
	size           int64
	part           bool
}

// Sweep removes what has expired, what is more than PerSession, what writers
// that died left behind, and then the oldest until MaxTotal holds. It may run
// in several processes at once. A file that cannot be removed is left for the
// next sweep.
func (s *Store) Sweep(ctx context.Context) (Swept, error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	return s.sweep(ctx)
}

func (s *Store) sweep(ctx context.Context) (Swept, error) {
	var out Swept
	written, made := s.written.Load(), s.made.Load()
	folders, err := s.folders()
	if err != nil {
		return out, err
	}
	var all []kept
	for _, folder := range folders {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		left, removed := s.sweepFolder(folder)
		out.Removed += removed
		all = append(all, left...)
	}
	for _, k := range all {
		out.Bytes += k.size
	}
	coldsort.By(all, func(a, b kept) int { return strings.Compare(a.handle, b.handle) })
	for _, k := range all {
		switch {
		case k.part:
		case out.Bytes > s.cfg.MaxTotal && s.remove(k):
			out.Bytes -= k.size
			out.Removed++
		default:
			out.Results++
		}
	}
	s.written.Add(-written)
	s.made.Add(-made)
	return out, s.sweepObjects(ctx)
}

func (s *Store) folders() ([]string, error) {
	f, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	var out []string
	for _, e := range entries {
		if e.IsDir() && len(e.Name()) == len(Scope{}.folder()) {
			out = append(out, e.Name())
		}
	}
	return sorted(out), err
}

// sweepFolder goes through one session's results.
func (s *Store) sweepFolder(folder string) (left []kept, removed int) {
	dir, err := s.root.OpenRoot(folder)
	if err != nil {
		return nil, 0 // another sweep took it
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return nil, 0
	}
	entries, _ := f.ReadDir(-1)
	f.Close()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	now, handles := time.Now(), map[string]bool{}
	for _, e := range entries { // newest first
		handle, ending := baseOf(e.Name())
		if ending == "" {
			handles[handle] = true
		}
	}
	count := 0
	for _, e := range entries {
		handle, ending := baseOf(e.Name())
		// "x.text" comes before "x" here, and counts with it.
		if last := len(left) - 1; ending == "text" || ending == "" && (last < 0 || left[last].handle != handle) {
			count++
		}
		if s.stale(handle, ending, handles[handle], now) || count > s.cfg.PerSession && ending != "part" {
			if dir.Remove(e.Name()) == nil {
				removed++
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // gone
		}
		if last := len(left) - 1; last >= 0 && left[last].handle == handle {
			left[last].size += info.Size()
			continue
		}
		left = append(left, kept{folder, handle, info.Size(), ending == "part"})
	}
	if len(left) == 0 {
		s.root.Remove(folder) // fails while something is in it, as it should
	}
	return left, removed
}

// stale reports whether a file has outlived its use. What is still being written
// is given a week, far longer than any call may take; a text whose description
// never came is its writer's last trace.
func (s *Store) stale(handle, ending string, described bool, now time.Time) bool {
	made, ok := madeAt(handle)
	switch {
	case !ok:
		return false // not ours
	case ending == "part":
		return now.Sub(made) >= 7*24*time.Hour
	case ending == "text" && !described:
		return now.Sub(made) >= time.Hour
	}
	return now.Sub(made) >= s.cfg.Keep
}

func (s *Store) remove(k kept) bool {
	dir, err := s.root.OpenRoot(k.folder)
	if err != nil {
		return false
	}
	defer dir.Close()
	dir.Remove(k.handle + ".text") // most have none
	return dir.Remove(k.handle) == nil
}

// due sweeps when enough was written since the last time. One goroutine does;
// the others go on.
func (s *Store) due(bytes int64) {
	made, written := s.made.Add(1), s.written.Add(bytes)
	if made < sweepEach && written < s.cfg.MaxTotal/16 || !s.sweeping.TryLock() {
		return
	}
	defer s.sweeping.Unlock()
	// A caller that stores a result does not wait for long, and cannot repair it.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, _ = s.sweep(ctx)
}

// prune removes what is more than PerSession of one session. Readers never see
// more than that anyway.
func (s *Store) prune(dir *os.Root) {
	handles, err := handlesIn(dir)
	if err != nil || len(handles) <= s.cfg.PerSession {
		return
	}
	for _, handle := range handles[:len(handles)-s.cfg.PerSession] {
		dir.Remove(handle)
		dir.Remove(handle + ".text")
	}
}
