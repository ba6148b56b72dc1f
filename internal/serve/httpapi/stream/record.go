package stream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ken/capability"
	"ken/internal/talk/event"
)

const (
	mostRecord = 256 << 10
	spareNotes = 16 << 10 // of a record, for its end
)

// A record is what a turn is remembered by: its events but for what was said and
// written, bounded. The zero value is ready.
type record struct {
	events []recorded
	size   int
	left   int // events that are not in it
}

type recorded struct {
	name string
	data []byte
}

// memorable is an event as a record has it; nil: it has none of the kind.
func memorable(ev event.Event, name string, data []byte) []byte {
	most := 16 << 10
	switch name {
	case "selected":
		most = mostRecord / 2
	case "finished", "done":
		most = 8 << 10
	case "started", "asked", "answered", "intended", "notice", "step":
	default:
		return nil
	}
	if len(data) <= most {
		return data
	}
	if e, ok := ev.(event.Finished); ok {
		e.Result = excerpt(e.Result, most/4)
		if short, err := json.Marshal(e); err == nil && len(short) <= most {
			return short
		}
	}
	return shrink(name, data, most)
}

// add takes in what is memorable.
func (r *record) add(name string, data []byte) {
	if data == nil {
		return
	}
	if name != "done" && r.size+len(data)+1 > mostRecord-spareNotes {
		r.squeeze()
		if r.size+len(data)+1 > mostRecord-spareNotes {
			r.left++
			return
		}
	}
	r.events = append(r.events, recorded{name, data})
	r.size += len(data) + 1
}

// squeeze makes room: the texts of what was found go first.
func (r *record) squeeze() {
	const most = mostRecord / 8
	for i, e := range r.events {
		if e.name == "selected" && len(e.data) > most {
			r.events[i].data = shrink(e.name, e.data, most)
			r.size += len(r.events[i].data) - len(e.data)
		}
	}
}

// bytes is the record as a JSON array.
func (r *record) bytes() []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	write := func(data []byte) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(data)
	}
	last := len(r.events)
	if last > 0 && r.events[last-1].name == "done" {
		last--
	}
	for _, e := range r.events[:last] {
		write(e.data)
	}
	if r.left > 0 {
		note, _ := json.Marshal(struct { // which always marshals
			Type string `json:"type"`
			Name string `json:"name"`
			Text string `json:"text"`
		}{"notice", "cut", fmt.Sprintf("%d more events of this turn are not in its record, which has at most %d KB", r.left, mostRecord>>10)})
		write(note)
	}
	for _, e := range r.events[last:] {
		write(e.data)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// Record returns the record of a turn that runs here, as far as it has come, or of
// the last one of its session, while the hub has it: a JSON array of its events
// without fragments and outputs, at most 256 KB. What was left out of it says so.
func (h *Hub) Record(who capability.Principal, session string, turn int) ([]byte, bool) {
	l, _ := h.look(who, session)
	if l == nil {
		return nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.turn != nil && l.turn.number == turn:
		return l.turn.record.bytes(), true
	case l.mirror.owner != "" && l.mirror.turn.Number == turn:
		return l.mirror.record.bytes(), true
	case !l.running() && l.last != nil && l.last.done.Turn == turn:
		return l.last.record.bytes(), true
	}
	return nil, false
}
