package audit

import (
	"bytes"
	"container/heap"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"time"
)

// A Filter chooses records. Empty fields choose everything.
type Filter struct {
	Extension string
	Event     string // an event, or one of the seed's lifecycle names (EXT_RUN_DENIED, …)
	Session   string
	Since     time.Time // not before; to the millisecond
	Until     time.Time // not after
}

// Events returns the events that a name asks for: itself, or what stands for a
// lifecycle event of the seed.
func Events(name string) []Event {
	switch name {
	case "":
		return nil
	case "EXT_RUN_STARTED", "EXT_CMD_ROUTED", "EXT_PERMISSION_CHECK":
		// Ken writes one durable record before a call, with route and decision in it.
		return []Event{Started}
	case "EXT_RUN_FINISHED":
		return []Event{Executed, Failed, TimedOut, Unknown}
	case "EXT_RUN_DENIED":
		return []Event{Violation}
	}
	return []Event{Event(name)}
}

// EventNames returns every name that [Events] knows: the events, then the seed's
// lifecycle names.
func EventNames() []string {
	return []string{
		string(Started), string(Executed), string(Slow), string(Failed), string(TimedOut), string(Violation), string(Unknown),
		string(Asked), string(Approval), string(JobAdded), string(JobCancelled), string(JobRetried), string(Changed), string(Opened), string(Retired), string(Resumed),
		"EXT_RUN_STARTED", "EXT_CMD_ROUTED", "EXT_PERMISSION_CHECK", "EXT_RUN_FINISHED", "EXT_RUN_DENIED",
	}
}

// A matcher is a Filter made ready. Most lines are refused by their bytes:
// the encoder spells every value in exactly one way.
type matcher struct {
	needles      [][]byte // all must be there
	events       []Event
	f            Filter
	since, until string
}

func newMatcher(f Filter) *matcher {
	m := &matcher{f: f, events: Events(f.Event)}
	need := func(name, value string) {
		e := encoder{b: []byte(timestampHole)}
		e.string(name, value)
		m.needles = append(m.needles, e.b[len(timestampHole):])
	}
	if f.Extension != "" {
		need("extension_id", f.Extension)
	}
	if f.Session != "" {
		need("session_id", f.Session)
	}
	if len(m.events) == 1 {
		need("event", string(m.events[0]))
	}
	if !f.Since.IsZero() {
		m.since = formatTime(f.Since)
	}
	if !f.Until.IsZero() {
		m.until = formatTime(f.Until)
	}
	return m
}

// line judges the bytes of a line, and says when the chain is past the end.
func (m *matcher) line(line []byte, past *bool) bool {
	if at, ok := lineTime(line); ok {
		if at < m.since {
			return false
		}
		if m.until != "" && at > m.until {
			*past = true
			return false
		}
	}
	for _, n := range m.needles {
		if !bytes.Contains(line, n) {
			return false
		}
	}
	return true
}

// record judges what line let through, now by its fields.
func (m *matcher) record(r *Record) bool {
	return (m.f.Extension == "" || r.ExtensionID == m.f.Extension) &&
		(m.f.Session == "" || r.SessionID == m.f.Session) &&
		(len(m.events) == 0 || slices.Contains(m.events, r.Event))
}

// skips says that nothing in a chain can match, by its first and last times.
func (m *matcher) skips(dir string, c chainFiles) bool {
	if m.until != "" && chainTime(c.name) > m.until {
		return true
	}
	if m.since == "" {
		return false
	}
	// Times in a chain never run backwards.
	line, _ := lastLine(filepath.Join(dir, segmentName(c.name, c.segments[len(c.segments)-1])))
	last, ok := lineTime(line)
	return ok && last < m.since
}

// Query returns the records of all chains in dir that f chooses, by time; within
// a chain always in its order. It holds one record of each chain that
// overlaps with others at a time. An error is about one line or file and does
// not end the iteration. Query trusts the files: [Verify] does not.
func Query(dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		chains, _, err := listChains(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		m := newMatcher(f)
		var wait []*cursor
		for _, c := range chains {
			if !m.skips(dir, c) {
				wait = append(wait, &cursor{dir: dir, files: c, filter: m})
			}
		}
		merge(wait, yield)
	}
}

// merge returns what the cursors have now, by time. They come sorted by the time
// their chains began, and each is read only when its time has come. It returns
// false when the caller wants no more.
func merge(wait []*cursor, yield func(Entry, error) bool) bool {
	var open byTime
	defer func() {
		for _, h := range open {
			h.c.close()
		}
	}()
	// fill returns errors away and pushes the cursor's next entry.
	fill := func(c *cursor) bool {
		for {
			e, err := c.next()
			if err == io.EOF {
				return true
			}
			if err == nil {
				heap.Push(&open, headEntry{e, c})
				return true
			}
			if !yield(Entry{}, err) {
				c.close()
				return false
			}
		}
	}
	for len(wait) > 0 || len(open) > 0 {
		if len(wait) > 0 && (len(open) == 0 || chainTime(wait[0].files.name) <= open[0].e.at) {
			c := wait[0]
			wait = wait[1:]
			if !fill(c) {
				return false
			}
			continue
		}
		h := heap.Pop(&open).(headEntry)
		if !yield(h.e, nil) {
			h.c.close()
			return false
		}
		if !fill(h.c) {
			return false
		}
	}
	return true
}

type headEntry struct {
	e Entry
	c *cursor
}

type byTime []headEntry

func (h byTime) Len() int { return len(h) }
func (h byTime) Less(i, j int) bool {
	if h[i].e.at != h[j].e.at {
		return h[i].e.at < h[j].e.at
	}
	return h[i].c.files.name < h[j].c.files.name
}
func (h byTime) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byTime) Push(x any)   { *h = append(*h, x.(headEntry)) }
func (h *byTime) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
