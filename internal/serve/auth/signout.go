package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"ken/internal/store"
)

// keeping is how long reading or writing sign-outs may take.
const keeping = 10 * time.Second

// What the store has: a key for every sign-out, and one for the time that all
// cookies must be younger than. Each is there as long as a cookie could live.
func signOuts() string     { return store.Key("signin", "out") + "/" }
func signedOutAll() string { return store.Key("signin", "before") }

// born says since when the store keeps sign-outs. It stays: where it is missing
// the store is new, or another than before, and what was signed out is unknown.
func born() string { return store.Key("signin", "born") }

// A signOut is that a cookie counts no more, or, without its serial, that all
// that were given before a time do not.
type signOut struct {
	Serial string `json:"serial,omitempty"`
	At     int64  `json:"at"` // seconds since 1970
}

// remember has the jar keep sign-outs in a store, and reads those of before.
// Where they cannot be read, nothing that was given before counts: people sign
// in again.
func (j *jar) remember(keep func() (*store.Store, error), log *slog.Logger) {
	if j.keep = keep; keep == nil {
		return
	}
	if err := j.recall(); err != nil {
		j.gone.all(time.Now().Unix())
		log.Error("what was signed out before cannot be read, so every browser must sign in again; see ken doctor", "why", err)
	}
}

func (j *jar) recall() error {
	ctx, cancel := context.WithTimeout(context.Background(), keeping)
	defer cancel()
	db, err := j.keep()
	if err != nil {
		return err
	}
	if err := j.birth(ctx, db); err != nil {
		return err
	}
	all, _, err := readSignOut(ctx, db, signedOutAll())
	if err != nil {
		return err
	}
	j.gone.all(all.At)
	for item, err := range db.Scan(ctx, signOuts(), store.Range{}) {
		var one signOut
		if err == nil {
			err = json.Unmarshal(item.Value, &one)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", item.Key, err)
		}
		if one.At < all.At { // its cookie is older than that
			continue
		}
		j.gone.add(one.Serial, item.Expires)
	}
	return nil
}

// follow takes in what other servers sign out, until ctx ends.
func (j *jar) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if db, err := j.keep(); err == nil {
			for c, err := range db.Watch(ctx, "signin/", 0) {
				var one signOut
				if err != nil || c.Gone || json.Unmarshal(c.Value, &one) != nil {
					continue // after an error nothing follows
				}
				switch {
				case c.Key == signedOutAll() || c.Key == born():
					j.gone.all(one.At)
				case strings.HasPrefix(c.Key, signOuts()) && one.Serial != "":
					j.gone.add(one.Serial, c.Expires)
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// birth voids what was given before the store was there, and marks a new one.
func (j *jar) birth(ctx context.Context, db *store.Store) error {
	mark, there, err := readSignOut(ctx, db, born())
	if err != nil {
		return err
	}
	if !there {
		mark.At = time.Now().Unix()
		value, _ := json.Marshal(mark) // a number
		var b store.Batch
		b.Put(born(), value)
		if _, err := db.Apply(ctx, &b); err != nil {
			return err
		}
	}
	j.gone.all(mark.At)
	return nil
}

func readSignOut(ctx context.Context, db *store.Store, key string) (s signOut, there bool, err error) {
	item, there, err := db.Get(ctx, key)
	if err == nil && there {
		if err = json.Unmarshal(item.Value, &s); err != nil {
			err = fmt.Errorf("read %s: %w", item.Key, err)
		}
	}
	return s, there, err
}

// void has a cookie, and what it was or is renewed to, count no more. It holds
// in this process at once. The error is that it could not be kept for others.
func (j *jar) void(ctx context.Context, serial string) error {
	now := time.Now()
	before := j.gone.add(serial, now.Add(browserLife)) // one that was renewed meanwhile ends by then
	if j.keep == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeping)
	defer cancel()
	db, err := j.keep()
	if err != nil {
		return err
	}
	var b store.Batch
	put := func(key string, s signOut) {
		value, _ := json.Marshal(s) // text and a number
		b.PutFor(key, value, browserLife)
	}
	put(store.Key("signin", "out", serial), signOut{serial, now.Unix()})
	if before != 0 {
		put(signedOutAll(), signOut{At: before})
	}
	_, err = db.Apply(ctx, &b)
	return err
}

// voids remembers what no longer counts until it would have ended anyway. When
// they are too many, all that was given before counts no more: people sign in
// again. The zero voids is empty.
type voids struct {
	mu     sync.Mutex
	until  map[string]time.Time
	before int64 // seconds since 1970
}

// add revokes serial until the given time. If the list is full, everything that
// was issued up to now is revoked instead of the serials in it; then add returns
// the time before which that is, else 0.
func (v *voids) add(serial string, until time.Time) (before int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.until == nil {
		v.until = map[string]time.Time{}
	}
	now := time.Now()
	if len(v.until) >= mostVoid {
		for s, end := range v.until {
			if !now.Before(end) {
				delete(v.until, s)
			}
		}
	}
	if len(v.until) >= mostVoid {
		clear(v.until)
		before = now.Unix() + 1
		v.before = before
	}
	v.until[serial] = until
	return before
}

// all voids what was given before a time.
func (v *voids) all(before int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.before = max(v.before, before)
}

func (v *voids) has(serial string, given int64, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	end, ok := v.until[serial]
	return ok && now.Before(end) || given < v.before
}
