package audit

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Proof shows to anyone who has the public key that a record is in a chain
// that was signed, without the rest of the chain.
type Proof struct {
	ID     ID          `json:"id"`
	Line   string      `json:"line"`   // the record as it is stored
	Hashes []tlog.Hash `json:"hashes"` // from the record up to the root
	Head   string      `json:"head"`   // the signed note
}

// Prove makes the proof for a record against the newest signed head of its
// chain. It reads the chain once and keeps only what the proof needs.
func Prove(dir, checkpointDir, publicKey string, id ID) (Proof, error) {
	chain, seq, err := id.split()
	if err != nil {
		return Proof{}, err
	}
	known, err := verifiers(publicKey)
	if err != nil {
		return Proof{}, err
	}
	hs, err := readSomeHeads(checkpointDir, chain, known, 1)
	if err == nil && hs.newest == nil {
		err = errors.New("signed checkpoint not found")
	}
	if err != nil {
		return Proof{}, fmt.Errorf("prove %s: checkpoint: %w; run audit verify", id, err)
	}
	if seq >= hs.newest.size {
		return Proof{}, fmt.Errorf("prove %s: the chain has %d signed records", id, hs.newest.size)
	}
	r := &rangeReader{dir: dir, chain: chain, size: hs.newest.size, want: seq}
	hashes, err := tlog.ProveRecord(hs.newest.size, seq, r)
	if err != nil {
		return Proof{}, fmt.Errorf("prove %s: %w; run audit verify", id, err)
	}
	if r.line == "" { // the only record needs no hashes
		if _, err := r.ReadHashes(nil); err != nil {
			return Proof{}, fmt.Errorf("prove %s: %w; run audit verify", id, err)
		}
	}
	p := Proof{ID: id, Line: r.line, Hashes: hashes, Head: string(hs.note)}
	if err := check(p, known); err != nil {
		return Proof{}, fmt.Errorf("%w; run audit verify", err)
	}
	return p, nil
}

// CheckProof says whether p holds under publicKey, as in [Verify].
func CheckProof(p Proof, publicKey string) error {
	known, err := verifiers(publicKey)
	if err != nil {
		return err
	}
	return check(p, known)
}

func check(p Proof, known note.Verifiers) error {
	chain, seq, err := p.ID.split()
	if err != nil {
		return err
	}
	h, err := parseHead([]byte(p.Head), known)
	if err != nil {
		return fmt.Errorf("proof of %s: checkpoint: %w", p.ID, err)
	}
	if h.chain != chain {
		return fmt.Errorf("proof of %s: the checkpoint belongs to chain %s", p.ID, h.chain)
	}
	if seq >= h.size {
		return fmt.Errorf("proof of %s: the checkpoint covers only %d records", p.ID, h.size)
	}
	if err := tlog.CheckRecord(p.Hashes, h.size, h.root, seq, tlog.RecordHash([]byte(p.Line))); err != nil {
		return fmt.Errorf("proof of %s: the record differs from the signed one: %w", p.ID, err)
	}
	return nil
}

// A rangeReader gives the hashes of subtrees by reading the chain once.
type rangeReader struct {
	dir, chain string
	size       int64
	want       int64
	line       string // record want, once read
}

// ReadHashes returns the hashes at the places that tlog numbers: each is the
// root over 2^level records.
func (r *rangeReader) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	type span struct {
		from, to int64
		tree     frontier
	}
	spans := make([]span, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		spans[i] = span{from: n << level, to: (n + 1) << level}
	}
	files, err := r.files()
	if err != nil {
		return nil, err
	}
	lines := chainLines{dir: r.dir, name: r.chain, segments: files.segments}
	defer lines.close()
	for seq := range r.size {
		line, at, err := lines.next()
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("%s: byte %d: found %d records, but %d were signed", at.file, at.offset, seq, r.size)
		}
		if err != nil {
			return nil, err
		}
		if seq == r.want {
			r.line = string(line)
		}
		leaf := tlog.RecordHash(line)
		for i := range spans {
			if s := &spans[i]; s.from <= seq && seq < s.to {
				s.tree.add(leaf)
			}
		}
	}
	out := make([]tlog.Hash, len(spans))
	for i := range spans {
		out[i] = spans[i].tree.root()
	}
	return out, nil
}

func (r *rangeReader) files() (chainFiles, error) {
	chains, _, err := listChains(r.dir)
	if err != nil {
		return chainFiles{}, err
	}
	for _, c := range chains {
		if c.name == r.chain {
			return c, nil
		}
	}
	return chainFiles{}, fmt.Errorf("chain %s has no file in %s", r.chain, r.dir)
}
