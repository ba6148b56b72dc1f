package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"ken/internal/store"
)

// An Archive is an audit log with all its chains, of this process and others.
// Its store is a third place, besides the chains and their signed heads, that
// knows how far each chain had come: a chain that is removed, or put back to an
// earlier state together with its head, is missed there.
type Archive struct {
	Dir           string // of the chains
	CheckpointDir string // of their signed heads
	KeyFile       string // that signs them; the public key lies beside it
	Store         func() (*store.Store, error)
	Home          string // names this machine, where others have the same store
}

// headPrefix is of the heads in the store that the key of this machine signs.
func (a Archive) headPrefix() string {
	if a.Home == "" {
		return "audit/chain/"
	}
	return store.Key("audit", "home", a.Home) + "/"
}

const (
	// storeTime is how long the store may take for a head.
	storeTime = 20 * time.Second

	// maxDied is how many chains of dead processes are examined.
	maxDied = 64
)

// SaveHead puts the newest signed head of a log into the store.
func (a Archive) SaveHead(log *Log) error {
	s, err := a.Store()
	if err != nil {
		return err
	}
	var b store.Batch
	b.Put(a.headPrefix()+log.Chain(), log.Head())
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	_, err = s.Apply(ctx, &b)
	return err
}

// savedHeads returns the heads of all chains that the store has.
func (a Archive) savedHeads(ctx context.Context) ([][]byte, error) {
	s, err := a.Store()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for item, err := range s.Scan(ctx, a.headPrefix(), store.Range{}) {
		if err != nil {
			return out, err
		}
		out = append(out, item.Value)
	}
	return out, nil
}

// Verify checks every chain against the heads in the store and against heads
// that were kept elsewhere.
func (a Archive) Verify(ctx context.Context, elsewhere ...[]byte) (Report, error) {
	heads, err := a.savedHeads(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("verify the audit log: read the checkpoint in the store: %w", err)
	}
	elsewhere = append(elsewhere, heads...)
	key, err := a.publicKey()
	_, missing := os.Stat(a.Dir)
	gone := errors.Is(missing, fs.ErrNotExist)
	switch {
	case errors.Is(err, fs.ErrNotExist) && gone && len(elsewhere) == 0:
		return Report{}, nil // nothing was ever recorded
	case gone:
		// What is missing is reported chain by chain.
		if err := os.MkdirAll(a.Dir, 0o700); err != nil {
			return Report{}, err
		}
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify the audit log: the public key is missing: %w; restore the .pub file that belongs to the audit key", err)
	}
	return Verify(a.Dir, a.CheckpointDir, key, elsewhere...)
}

// Prove makes the proof of a record, and returns the public key that checks it.
func (a Archive) Prove(id ID) (Proof, string, error) {
	key, err := a.publicKey()
	if err != nil {
		return Proof{}, "", fmt.Errorf("prove %s: the public key is missing: %w", id, err)
	}
	p, err := Prove(a.Dir, a.CheckpointDir, key, id)
	return p, key, err
}

func (a Archive) publicKey() (string, error) {
	b, err := os.ReadFile(a.KeyFile + ".pub")
	return strings.TrimSpace(string(b)), err
}

// CloseOrphans writes into log a closing record for every call that was running
// when its process died. Each chain is examined once, by one process.
func (a Archive) CloseOrphans(ctx context.Context, log *Log) error {
	db, err := a.Store()
	if err != nil {
		return err
	}
	chains, err := log.Died(maxDied)
	for _, chain := range chains {
		err = errors.Join(err, a.closeOrphansOf(ctx, log, db, chain))
	}
	return err
}

func (a Archive) closeOrphansOf(ctx context.Context, log *Log, db *store.Store, chain string) error {
	key := store.Key("audit-orphans", chain)
	if _, there, err := db.Get(ctx, key); err != nil || there {
		return err
	}
	orphans, err := Orphans(a.Dir, chain)
	if err != nil {
		return err
	}
	var claim store.Batch
	claim.At(key, 0)
	claim.Put(key, []byte("1"))
	version, err := db.Apply(ctx, &claim)
	if errors.Is(err, store.ErrConflict) {
		return nil // another process is doing it
	}
	if err != nil || len(orphans) == 0 {
		return err
	}
	records := make([]Record, len(orphans))
	for i, r := range orphans {
		records[i] = r.AsLost(chain)
	}
	if _, err = log.Append(ctx, records...); err != nil {
		var undo store.Batch
		undo.At(key, version)
		undo.Delete(key)
		_, unclaimed := db.Apply(ctx, &undo)
		return errors.Join(err, unclaimed)
	}
	return nil
}
