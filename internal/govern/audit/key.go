package audit

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"

	"ken/internal/wholefile"
)

// keyName is the name in every signature line.
const keyName = "ken-audit"

// A Key signs the heads of chains and keys the digests in records. The zero
// Key signs nothing and is refused by [Open].
type Key struct {
	signer note.Signer
	public string
	macs   *sync.Pool // of hash.Hash, keyed
}

// NewKey makes a Key of an Ed25519 private key.
func NewKey(private ed25519.PrivateKey) (Key, error) {
	if len(private) != ed25519.PrivateKeySize {
		return Key{}, fmt.Errorf("audit key: %d bytes; an Ed25519 private key has %d", len(private), ed25519.PrivateKeySize)
	}
	public, err := note.NewEd25519VerifierKey(keyName, private.Public().(ed25519.PublicKey))
	if err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	// The signer's text form: algorithm 1, then the seed, under the same hash.
	hash := strings.Split(public, "+")[1]
	secret := "PRIVATE+KEY+" + keyName + "+" + hash + "+" +
		base64.StdEncoding.EncodeToString(append([]byte{1}, private.Seed()...))
	return parseKey(secret, public)
}

func parseKey(secret, public string) (Key, error) {
	signer, err := note.NewSigner(secret)
	if err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	digest, err := hkdf.Key(sha256.New, []byte(secret), nil, "ken audit digest v1", sha256.Size)
	if err != nil {
		return Key{}, fmt.Errorf("audit key: derive digest key: %w", err)
	}
	macs := &sync.Pool{New: func() any { return hmac.New(sha256.New, digest) }}
	return Key{signer: signer, public: public, macs: macs}, nil
}

// Public is the text that [Verify] and [CheckProof] need: the name, the hash
// and the public key in one line. It is no secret.
func (k Key) Public() string { return k.public }

// Digest names data without revealing it: equal data have equal digests under
// one key, and guesses cannot be tried without the key.
func (k Key) Digest(data []byte) string {
	var mac hash.Hash
	if k.macs == nil {
		mac = hmac.New(sha256.New, nil) // the zero Key hides nothing
	} else {
		mac = k.macs.Get().(hash.Hash)
		defer k.macs.Put(mac)
		mac.Reset()
	}
	mac.Write(data)
	const name = "hmac-sha256:"
	var sum [sha256.Size]byte
	return string(hex.AppendEncode([]byte(name), mac.Sum(sum[:0])))
}

// LoadKey reads the key file at path, and makes it where there is none. The
// public half is written beside it as path + ".pub". Processes that make the
// file at the same time end up with the same key.
func LoadKey(path string) (Key, error) {
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(path); err != nil {
			return Key{}, fmt.Errorf("make audit key %s: %w", path, err)
		}
		secret, err = os.ReadFile(path)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read audit key: %w", err)
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return Key{}, fmt.Errorf("audit key %s: other users can read it (mode %v); run chmod 600 on it, or move it away to get a new key", path, info.Mode().Perm())
	}
	line := strings.TrimSpace(string(secret))
	private, err := seedOf(line)
	if err != nil {
		return Key{}, fmt.Errorf("audit key %s: %w; move it away to get a new key, and keep its .pub file to verify older records", path, err)
	}
	key, err := NewKey(private)
	if err != nil {
		return Key{}, err
	}
	// The public half is only a convenience: it can be made again from the key.
	if have, err := os.ReadFile(path + ".pub"); err != nil || strings.TrimSpace(string(have)) != key.public {
		_ = os.WriteFile(path+".pub", []byte(key.public+"\n"), 0o644)
	}
	return key, nil
}

func seedOf(line string) (ed25519.PrivateKey, error) {
	if _, err := note.NewSigner(line); err != nil {
		return nil, err
	}
	parts := strings.SplitN(line, "+", 5)
	raw, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return nil, errors.New("not an Ed25519 signing key")
	}
	return ed25519.NewKeyFromSeed(raw[1:]), nil
}

// createKey writes a new key, where there is none.
func createKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	secret, _, err := note.GenerateKey(rand.Reader, keyName)
	if err != nil {
		return err
	}
	if err := wholefile.Create(path, []byte(secret+"\n")); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// verifiers reads public keys, one a line; several where a key was replaced.
func verifiers(public string) (note.Verifiers, error) {
	var list []note.Verifier
	for line := range strings.Lines(public) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		v, err := note.NewVerifier(line)
		if err != nil {
			return nil, fmt.Errorf("audit public key %q: %w; use the text in the key's .pub file", line, err)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, errors.New("audit public key: missing; use the text in the key's .pub file")
	}
	return note.VerifierList(list...), nil
}
