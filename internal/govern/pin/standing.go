package pin

import (
	"context"
	"encoding/json"
	"fmt"

	"ken/internal/store"
)

// A Standing says whether what was said of a server's tools still holds, without
// looking at them.
type Standing struct {
	// Token stands for everything that verdicts on the same tools depend on: the
	// pins of the server and the rules. While it is the same, so are they. Empty:
	// the server has no pins.
	Token string

	// Seen is the last listing that was checked.
	Seen Seen
}

// Seen is a listing by two digests: as the server wrote it, and as it is kept. It
// has its place beside the pins because a listing that is the same is not compared
// with them again.
type Seen struct {
	Raw string `json:"raw"`
	Sum string `json:"sum"`
}

type storedSeen struct {
	V int `json:"v"`
	Seen
}

func seenKey(server string) string { return store.Key("mcp", "seen", fingerprint(server)) }

// Standing returns how a server stands. Its prompts and resources count.
func (d *Desk) Standing(ctx context.Context, server string) (Standing, error) {
	mark, offers, seen := markKey(server), markKey(OffersKey(server)), seenKey(server)
	items, err := d.store.GetAll(ctx, mark, offers, seen)
	if err != nil {
		return Standing{}, unavailable("check tools", server, err)
	}
	var out Standing
	if version := items[mark].Version; version > 0 {
		out.Token = fmt.Sprint(version, items[offers].Version, d.conf.Policy())
	}
	var s storedSeen
	if item, there := items[seen]; there && item.Decode(formatVersion, &s) == nil {
		out.Seen = s.Seen // a damaged one costs speed alone
	}
	return out, nil
}

// Saw keeps the digests of a listing that was checked.
func (d *Desk) Saw(ctx context.Context, server string, seen Seen) error {
	value, err := json.Marshal(storedSeen{formatVersion, seen})
	if err != nil {
		return err
	}
	var b store.Batch
	b.Put(seenKey(server), value)
	if _, err := d.store.Apply(ctx, &b); err != nil {
		return unavailable("keep the digest of the tools", server, err)
	}
	return nil
}
