package audit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// rescan is how often a follower looks at the whole directory, whatever the
// file system told it.
const rescan = time.Second

// Tail follows all chains in dir: it gives the records that f chooses as they
// come, until ctx ends or the caller stops. With f.Since it begins with what
// is already there since then; without, with what is new. A record may be seen
// a moment before its writer is told that it is durable. An error is about one
// line or file and does not end the iteration, but for a folder that cannot be
// read when it begins.
func Tail(ctx context.Context, dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t, err := newFollower(dir, f)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		t.follow(ctx, yield)
	}
}

// A follower remembers how far every chain was read.
type follower struct {
	dir    string
	filter *matcher
	chains map[string]*cursor
}

// newFollower makes one that stands behind what is there, or before it where f
// says since when.
func newFollower(dir string, f Filter) (*follower, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("follow audit chains: %w", err)
	}
	t := &follower{dir: dir, filter: newMatcher(f), chains: map[string]*cursor{}}
	if !f.Since.IsZero() {
		return t, nil
	}
	_, err := t.scan(true)
	return t, err
}

// scan looks at the whole directory and gives the cursors that have more; with
// skip, what is there already counts as read.
func (t *follower) scan(skip bool) ([]*cursor, error) {
	files, _, err := listChains(t.dir)
	if err != nil {
		return nil, err
	}
	var ready []*cursor
	for _, c := range files {
		if !skip && t.chains[c.name] == nil && t.filter.skips(t.dir, c) {
			skipTo := &cursor{dir: t.dir, files: c, filter: t.filter}
			t.toEnd(skipTo)
			t.chains[c.name] = skipTo
			continue
		}
		if cur := t.visit(c); skip {
			t.toEnd(cur)
		} else if t.grown(cur) {
			ready = append(ready, cur)
		}
	}
	return ready, nil
}

func (t *follower) visit(c chainFiles) *cursor {
	cur := t.chains[c.name]
	if cur == nil {
		cur = &cursor{dir: t.dir, files: c, filter: t.filter}
		t.chains[c.name] = cur
	}
	cur.files = c
	return cur
}

// changed returns the cursors of the files that e and the events waiting behind
// it name.
func (t *follower) changed(e fsnotify.Event, events <-chan fsnotify.Event) []*cursor {
	names := map[string]bool{}
	for more := true; more; {
		if chain, n, ok := parseSegment(filepath.Base(e.Name)); ok && e.Has(fsnotify.Create|fsnotify.Write) {
			names[chain] = true
			cur := t.visit(chainFiles{chain, t.segments(chain, n)})
			t.chains[chain] = cur
		}
		select {
		case e, more = <-events:
		default:
			more = false
		}
	}
	var ready []*cursor
	for name := range names {
		ready = append(ready, t.chains[name])
	}
	slices.SortFunc(ready, func(a, b *cursor) int { return cmp.Compare(a.files.name, b.files.name) })
	return ready
}

// segments is what is known of a chain's segments, and n.
func (t *follower) segments(chain string, n int) []int {
	var known []int
	if cur := t.chains[chain]; cur != nil {
		known = cur.files.segments
	}
	if i, found := slices.BinarySearch(known, n); !found {
		known = slices.Insert(slices.Clone(known), i, n)
	}
	return known
}

// grown reports whether a cursor may have more to give.
func (t *follower) grown(c *cursor) bool {
	if c.index < len(c.files.segments)-1 {
		return true
	}
	if c.index >= len(c.files.segments) {
		return false
	}
	info, err := os.Stat(filepath.Join(t.dir, segmentName(c.files.name, c.files.segments[c.index])))
	return err == nil && info.Size() > c.off
}

// toEnd puts a cursor behind the last whole line that is there now.
func (t *follower) toEnd(c *cursor) {
	c.index = len(c.files.segments) - 1
	_, c.off = lastLine(filepath.Join(t.dir, segmentName(c.files.name, c.files.segments[c.index])))
}
