package stream

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// TurnRecords keeps the records of turns: what was shown in them and why, for
// those who look at it later. A turn whose record is missing is still a turn.
type TurnRecords struct {
	Store func() (*store.Store, error)
	Keep  time.Duration // how long sessions are kept; zero: for ever
}

const (
	keepRecords  = 30 * 24 * time.Hour // unless sessions are kept for less
	mostRecorded = 4 << 20             // bytes of one record, unpacked
)

func recordKey(who capability.Principal, session string, turn int) string {
	owner := sha256.Sum256([]byte(strconv.Quote(who.Tenant) + strconv.Quote(who.ID)))
	return store.Key("inspect", hex.EncodeToString(owner[:16]), session, strconv.Itoa(turn))
}

// Put keeps the record of a turn.
func (t TurnRecords) Put(ctx context.Context, who capability.Principal, session string, turn int, record []byte) error {
	db, err := t.Store()
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(record) // memory takes everything
	if err := z.Close(); err != nil {
		return err
	}
	life := keepRecords
	if t.Keep > 0 {
		life = min(life, t.Keep)
	}
	var b store.Batch
	b.PutFor(recordKey(who, session, turn), packed.Bytes(), life)
	_, err = db.Apply(ctx, &b)
	return err
}

// Get returns the record of a turn, and whether there is one.
func (t TurnRecords) Get(ctx context.Context, who capability.Principal, session string, turn int) ([]byte, bool, error) {
	db, err := t.Store()
	if err != nil {
		return nil, false, err
	}
	item, there, err := db.Get(ctx, recordKey(who, session, turn))
	if err != nil || !there {
		return nil, false, err
	}
	z, err := gzip.NewReader(bytes.NewReader(item.Value))
	if err != nil {
		return nil, false, fmt.Errorf("read the record of turn %d of %s: %w", turn, session, err)
	}
	b, err := io.ReadAll(io.LimitReader(z, mostRecorded))
	return b, err == nil, err
}
