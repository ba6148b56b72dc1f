package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// A Switch is what a person last said about an extension.
type Switch struct {
	Key
	Tenant string    `json:"tenant,omitempty"`
	On     bool      `json:"on"`
	Digest string    `json:"digest,omitempty"` // of what was accepted, while on
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Why    string    `json:"why,omitempty"`

	// Version is that of the store's key; 0 for an extension about which
	// no person switched it.
	Version int64 `json:"-"`
}

const formatVersion = 1

type storedSwitch struct {
	V int `json:"v"`
	Switch
}

type storedManifest struct {
	V        int       `json:"v"`
	Manifest *Manifest `json:"manifest"`
}

// decode reads a value of the desk.
func decode(item store.Item, into any) error {
	if err := item.Decode(formatVersion, into); err != nil {
		return &capability.Error{
			Kind: capability.Internal, Op: "read", Target: item.Key, Err: err,
			Fix: "use the newest Ken version that wrote to this store, or review the extension again",
		}
	}
	return nil
}

// decodeSwitch reads a switch and makes sure that it is the one of its key.
func decodeSwitch(item store.Item) (Switch, error) {
	var s storedSwitch
	if err := decode(item, &s); err != nil {
		return Switch{}, err
	}
	s.Version = item.Version
	if keyOf("switch", s.Tenant, s.Key) != item.Key {
		return Switch{}, &capability.Error{
			Kind: capability.Internal, Op: "read", Target: item.Key, Err: errors.New("record and key name different extensions"),
			Fix: "review the extension again",
		}
	}
	return s.Switch, nil
}

// fingerprint stands for a text of any length in a key: different texts,
// different fingerprints.
func fingerprint(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

func keyOf(kind, tenant string, k Key) string {
	return store.Key("extension", kind, fingerprint(tenant), fingerprint(k.ID), fingerprint(k.Place))
}

func switchesOf(tenant string) string {
	return store.Key("extension", "switch", fingerprint(tenant)) + "/"
}

func markOf(tenant string) string { return store.Key("extension", "mark", fingerprint(tenant)) }
