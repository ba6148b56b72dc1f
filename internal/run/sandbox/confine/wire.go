package confine

import (
	"encoding/binary"
	"errors"
)

// Orders and messages are written by hand and not by a library that looks at
// types: that takes a process which has just begun longer than all its mounts.
// One function for each type both writes and reads it, so that the two cannot
// differ; and both sides are one binary, so that there are no versions.

var errNotOurs = errors.New("not a message of the sandbox helper")

// Encode writes o down for [DecodeOrder].
func (o *Order) Encode() []byte { return encode((*wire).order, o) }

// DecodeOrder reads an order.
func DecodeOrder(data []byte) (*Order, error) { return decode((*wire).order, data) }

// Encode writes m down for [DecodeMessage].
func (m *Message) Encode() []byte { return encode((*wire).message, m) }

// DecodeMessage reads a message.
func DecodeMessage(data []byte) (*Message, error) { return decode((*wire).message, data) }

func encode[T any](f func(*wire, *T), v *T) []byte {
	w := &wire{data: make([]byte, 0, 4<<10)}
	f(w, v)
	return w.data
}

func decode[T any](f func(*wire, *T), data []byte) (*T, error) {
	w, v := &wire{data: data, reading: true}, new(T)
	f(w, v)
	if w.bad || len(w.data) > 0 {
		return nil, errNotOurs
	}
	return v, nil
}

// A wire is what is written so far, or what is left to read.
type wire struct {
	data    []byte
	reading bool
	bad     bool // what was read makes no sense; nothing more is read
}

func (w *wire) order(o *Order) {
	w.text(&o.Path)
	list(w, &o.Args, (*wire).bytes)
	list(w, &o.Env, (*wire).bytes)
	for _, f := range []*bool{&o.Self, &o.Namespaces, &o.Landlock, &o.Seccomp, &o.Network, &o.OpenFiles, &o.OpenNetwork, &o.UnixSockets} {
		w.flag(f)
	}
	list(w, &o.Pin, (*wire).text)
	list(w, &o.Hide, (*wire).text)
	list(w, &o.Files, func(w *wire, f *File) {
		w.text(&f.Path)
		w.text(&f.Text)
	})
	list(w, &o.Covers, func(w *wire, c *Cover) {
		w.text(&c.Path)
		number(w, &c.Dev)
		number(w, &c.Ino)
		number(w, &c.As)
	})
	w.text(&o.Dir)
	number(w, &o.DirFD)
	number(w, &o.WorkFD)
	w.flag(&o.WorkRead)
	list(w, &o.Mounts, (*wire).mount)
	list(w, &o.Links, func(w *wire, l *Link) {
		w.text(&l.Path)
		w.text(&l.Target)
	})
	number(w, &o.Scratch)
	list(w, &o.Read, (*wire).text)
	list(w, &o.Write, (*wire).text)
	list(w, &o.Limits, func(w *wire, l *Limit) {
		number(w, &l.Resource)
		number(w, &l.Value)
		number(w, &l.Hard)
	})
	number(w, &o.Memory)
	number(w, &o.Processes)
}

func (w *wire) mount(m *Mount) {
	w.text(&m.Source)
	w.text(&m.Target)
	number(w, &m.FD)
	number(w, &m.Dev)
	number(w, &m.Ino)
	w.flag(&m.Write)
	w.flag(&m.Device)
	w.flag(&m.Maybe)
}

func (w *wire) message(m *Message) {
	maybe(w, &m.Listening, func(w *wire, l *Listening) { number(w, &l.Port) })
	maybe(w, &m.Started, func(w *wire, s *Started) {
		number(w, &s.LandlockABI)
		w.flag(&s.Seccomp)
		list(w, &s.Missing, (*wire).text)
	})
	maybe(w, &m.Failed, func(w *wire, f *Failed) {
		w.text(&f.Layer)
		w.text(&f.Cause)
		number(w, &f.Errno)
	})
	maybe(w, &m.Ended, func(w *wire, e *Ended) {
		number(w, &e.Code)
		number(w, &e.Signal)
		number(w, &e.UserUS)
		number(w, &e.SysUS)
		number(w, &e.RSSKB)
		w.flag(&e.Starved)
	})
	maybe(w, &m.Hatched, func(w *wire, h *Hatched) { number(w, &h.PID) })
}

func number[T ~int | ~int64 | ~uint64](w *wire, v *T) {
	if !w.reading {
		w.data = binary.AppendVarint(w.data, int64(*v))
		return
	}
	n, size := binary.Varint(w.data)
	if size <= 0 || int64(T(n)) != n {
		w.bad, w.data = true, nil
		return
	}
	*v, w.data = T(n), w.data[size:]
}

func (w *wire) flag(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	number(w, &n)
	*v = n == 1
	w.bad = w.bad || n&^1 != 0
}

func (w *wire) bytes(v *[]byte) {
	n := len(*v)
	number(w, &n)
	if !w.reading {
		w.data = append(w.data, *v...)
		return
	}
	if w.bad || n < 0 || n > len(w.data) {
		w.bad, w.data = true, nil
		return
	}
	*v, w.data = w.data[:n:n], w.data[n:]
}

func (w *wire) text(v *string) {
	b := []byte(*v)
	w.bytes(&b)
	*v = string(b)
}

// list writes or reads a list; an empty one is read as nil. Each element takes
// a byte at least, which bounds what a wrong length can ask for.
func list[T any](w *wire, v *[]T, f func(*wire, *T)) {
	n := len(*v)
	number(w, &n)
	if w.reading {
		if w.bad || n < 0 || n > len(w.data) {
			w.bad, w.data = true, nil
			return
		}
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		f(w, &(*v)[i])
	}
}

// maybe writes or reads what may be nil.
func maybe[T any](w *wire, v **T, f func(*wire, *T)) {
	there := *v != nil
	w.flag(&there)
	if !there || w.bad {
		return
	}
	if w.reading {
		*v = new(T)
	}
	f(w, *v)
}
