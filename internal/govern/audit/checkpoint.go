package audit

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	// slotSize is one disk sector: a head overwritten in place is the old one
	// or the new one, never a mixture.
	slotSize   = 512
	headSuffix = ".head"
	origin     = "ken/audit/"
)

// A head is what a checkpoint signs: so many records of a chain have this root
// and end at this byte of this segment.
type head struct {
	chain   string
	size    int64
	root    tlog.Hash
	segment int
	offset  int64
	closed  bool // nothing comes after it
	time    time.Time
}

// text is the signed part, in the C2SP checkpoint form: origin, size, root,
// then lines of our own.
func (h head) text() string { return string(h.appendText(make([]byte, 0, slotSize))) }

func (h head) appendText(b []byte) []byte {
	state := "open"
	if h.closed {
		state = "closed"
	}
	b = append(append(append(b, origin...), h.chain...), '\n')
	b = append(strconv.AppendInt(b, h.size, 10), '\n')
	b = append(base64.StdEncoding.AppendEncode(b, h.root[:]), "\nstate "...)
	b = append(append(b, state...), "\nend "...)
	b = append(strconv.AppendInt(b, int64(h.segment), 10), ' ')
	b = append(strconv.AppendInt(b, h.offset, 10), "\ntime "...)
	return append(h.time.UTC().AppendFormat(b, timeLayout), '\n')
}

// sign returns the head as [note.Sign] would, for less: it is signed for each call.
func (h head) sign(signer note.Signer) ([]byte, error) {
	b := h.appendText(make([]byte, 0, slotSize))
	sig, err := signer.Sign(b)
	if err != nil {
		return nil, err
	}
	b = append(append(append(b, "\n— "...), signer.Name()...), ' ')
	var room [128]byte
	named := append(binary.BigEndian.AppendUint32(room[:0], signer.KeyHash()), sig...)
	return append(base64.StdEncoding.AppendEncode(b, named), '\n'), nil
}

// parseHead checks the signature of a note and reads it.
func parseHead(msg []byte, known note.Verifiers) (head, error) {
	n, err := note.Open(msg, known)
	if err != nil {
		return head{}, err
	}
	for _, sig := range n.Sigs { // one spelling only: base64 has spare bits
		if raw, err := base64.StdEncoding.DecodeString(sig.Base64); err != nil || base64.StdEncoding.EncodeToString(raw) != sig.Base64 {
			return head{}, errors.New("signed, but the signature is not in its canonical form")
		}
	}
	var h head
	var root, state, at string
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[0], origin) {
		return head{}, errors.New("signed, but not an audit checkpoint")
	}
	h.chain = lines[0][len(origin):]
	root = lines[2]
	_, err = fmt.Sscanf(lines[1]+" "+strings.Join(lines[3:6], " "), "%d state %s end %d %d time %s", &h.size, &state, &h.segment, &h.offset, &at)
	if err != nil {
		return head{}, fmt.Errorf("signed, but not an audit checkpoint: %w", err)
	}
	if h.root, err = tlog.ParseHash(root); err != nil {
		return head{}, err
	}
	if h.time, err = time.Parse(timeLayout, at); err != nil {
		return head{}, err
	}
	h.closed = state == "closed"
	if h.text() != n.Text { // one spelling only
		return head{}, errors.New("signed, but not formatted as an audit checkpoint")
	}
	return h, nil
}

// unslot takes the padding off; it must be exactly what write adds.
func unslot(b []byte) []byte {
	return append(bytes.TrimRight(b, "\n"), '\n')
}

// A slotFile is what the log needs of the file of heads; tests give one that
// fails.
type slotFile interface {
	io.WriterAt
	Sync() error
	Close() error
}

// headFile is the file of heads that a running log writes.
type headFile struct {
	f      slotFile
	signer note.Signer
	slots  int64 // used; slot 0 is the newest head
	note   []byte
	slot   [slotSize]byte // what is written
}

// A signedHead is a head on its way to the file.
type signedHead struct {
	note []byte
	err  error
}

func (h head) sealed(signer note.Signer) (s signedHead) {
	s.note, s.err = h.sign(signer)
	return s
}

// write writes a note to a slot, with new lines up to its end.
func (hf *headFile) write(note []byte, slot int64) error {
	if len(note) > slotSize {
		return fmt.Errorf("checkpoint of %d bytes is longer than its slot of %d", len(note), slotSize)
	}
	for i := copy(hf.slot[:], note); i < slotSize; i++ {
		hf.slot[i] = '\n'
	}
	_, err := hf.f.WriteAt(hf.slot[:], slot*slotSize)
	return err
}

// put overwrites the newest head. It is in the page cache then: a killed
// process has it, a machine without power may have the one before.
func (hf *headFile) put(s signedHead) error {
	if s.err != nil {
		return s.err
	}
	if err := hf.write(s.note, 0); err != nil {
		return err
	}
	hf.note = s.note
	hf.slots = max(hf.slots, 1)
	return nil
}

// again writes the newest head once more, over what an error may have left in
// its place, and makes it durable.
func (hf *headFile) again() error {
	if err := hf.write(hf.note, 0); err != nil {
		return err
	}
	return hf.f.Sync()
}

// keep adds the newest head to the history and makes both durable.
func (hf *headFile) keep() error {
	if err := hf.write(hf.note, hf.slots); err != nil {
		return err
	}
	if err := hf.f.Sync(); err != nil {
		return err // what is there is not known: the next one goes over it
	}
	hf.slots++
	return nil
}

// heads is what the checkpoint file of a chain says.
type heads struct {
	found   bool   // the file exists
	alive   bool   // its process holds it
	newest  *head  // nil: the process died before its first record was signed
	history []head // oldest first
	note    []byte // newest, as signed
}

// readHeads reads and checks the checkpoint file of a chain. An error means
// that what is there is not what was written; the heads read until then are
// still given.
func readHeads(dir, chain string, known note.Verifiers) (heads, error) {
	return readSomeHeads(dir, chain, known, maxHeads)
}

// readSomeHeads reads the newest head and limit-1 of the history.
func readSomeHeads(dir, chain string, known note.Verifiers, limit int) (heads, error) {
	var hs heads
	f, err := os.Open(filepath.Join(dir, chain+headSuffix))
	if errors.Is(err, os.ErrNotExist) {
		return hs, nil
	}
	if err != nil {
		return hs, err
	}
	defer f.Close()
	hs.found = true
	hs.alive = held(f) // before reading: a chain that closes meanwhile reads as closed
	var first error
	slots, err := readSlots(f, chain, known, limit)
	for i, s := range slots {
		switch {
		case s.err != nil:
			first = cmp.Or(first, fmt.Errorf("slot %d: %w", i, s.err))
		case i == 0:
			hs.newest, hs.note = &s.head, s.note
		default:
			if n := len(hs.history); n > 0 && hs.history[n-1].size > s.head.size {
				first = cmp.Or(first, fmt.Errorf("slot %d: signs %d records, but an earlier checkpoint signs %d", i, s.head.size, hs.history[n-1].size))
			}
			hs.history = append(hs.history, s.head)
		}
	}
	if n := len(hs.history); n > 0 && hs.newest != nil && hs.newest.size < hs.history[n-1].size {
		first = cmp.Or(first, fmt.Errorf("the newest checkpoint signs %d records, an older one %d: an old checkpoint was restored", hs.newest.size, hs.history[n-1].size))
	}
	return hs, cmp.Or(err, first)
}

type slotHead struct {
	head head
	note []byte
	err  error
}

// maxHeads bounds what is read of one checkpoint file (32 MiB).
const maxHeads = 1 << 16

func readSlots(f *os.File, chain string, known note.Verifiers, limit int) ([]slotHead, error) {
	var out []slotHead
	buf := make([]byte, slotSize)
	for i := range limit {
		var newest slotHead
		if i > 0 {
			newest = out[0]
		}
		s, err := readSlot(f, int64(i), buf, chain, known, newest)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, s)
	}
	if limit == maxHeads {
		return out, fmt.Errorf("more than %d checkpoints", maxHeads)
	}
	return out, nil
}

// readSlot reads one slot, again where a living process may be writing it. One
// that is the newest, byte for byte, is judged as that was: a closed chain ends
// with it, and a signature takes longer to check than a short chain to read.
func readSlot(f *os.File, i int64, buf []byte, chain string, known note.Verifiers, newest slotHead) (slotHead, error) {
	var s slotHead
	for try := 0; ; try++ {
		n, err := f.ReadAt(buf, i*slotSize)
		if n == 0 && err == io.EOF {
			return s, io.EOF
		}
		if n < slotSize && err == io.EOF && i > 0 {
			return s, io.EOF // a full disk cut the last one of the history short
		}
		if err != nil && err != io.EOF {
			return s, err
		}
		s.note = unslot(bytes.Clone(buf[:n]))
		if i > 0 && bytes.Equal(s.note, newest.note) {
			return newest, nil
		}
		s.head, s.err = parseHead(s.note, known)
		if s.err == nil && s.head.chain != chain {
			s.err = fmt.Errorf("signed for chain %s", s.head.chain)
		}
		if s.err == nil || try == 3 {
			return s, nil
		}
	}
}
