package app

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

// What was shown in a turn and why is kept for those who look at it later. It
// is awareness: a turn whose record is missing is a turn all the same.

const (
	keepRecords  = 30 * 24 * time.Hour // unless sessions are kept for less
	mostRecorded = 4 << 20             // bytes of one record, unpacked
)

func recordKey(who capability.Principal, session string, turn int) string {
	owner := sha256.Sum256([]byte(strconv.Quote(who.Tenant) + strconv.Quote(who.ID)))
	return store.Key("inspect", hex.EncodeToString(owner[:16]), session, strconv.Itoa(turn))
}

// keepRecord keeps the record of a turn.
func (a *App) keepRecord(ctx context.Context, who capability.Principal, session string, turn int, record []byte) error {
	db, err := a.store.Get()
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
	if keep := a.Settings.Chat.Keep; keep > 0 {
		life = min(life, keep)
	}
	var b store.Batch
	b.PutFor(recordKey(who, session, turn), packed.Bytes(), life)
	_, err = db.Apply(ctx, &b)
	return err
}

// keptRecord returns the record of a turn, where it was kept.
func (a *App) keptRecord(ctx context.Context, who capability.Principal, session string, turn int) ([]byte, bool, error) {
	db, err := a.store.Get()
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
