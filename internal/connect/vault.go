package connect

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ken/capability"
	"ken/internal/secret"
	"ken/internal/wholefile"
)

// vaultKey is the name of the secret that seals what a [Vault] keeps.
const vaultKey = "ken.connect.key"

// A Vault keeps files sealed in a folder, by a key among the secrets. It is a
// [Keep] for files that are larger than a secret may be. Several processes may
// share the folder; of two that save under one key the later one counts.
type Vault struct {
	dir     string
	secrets *secret.Store
}

// NewVault makes a Vault. The folder and the key are made with the first file.
func NewVault(dir string, secrets *secret.Store) *Vault { return &Vault{dir, secrets} }

func (v *Vault) path(key string) string { return filepath.Join(v.dir, key+".sealed") }

func (v *Vault) fail(op, key string, err error, fix string) error {
	if _, ours := errors.AsType[*capability.Error](err); ours {
		return err
	}
	return &capability.Error{Kind: capability.Unavailable, Op: op, Target: v.path(key), Err: err, Fix: fix}
}

// sealer returns the cipher, and makes its key where that is asked for.
func (v *Vault) sealer(make bool) (cipher.AEAD, error) {
	value, err := v.secrets.Lookup(vaultKey)
	if make && err != nil && capability.KindOf(err) == capability.NotFound {
		var key [32]byte
		if _, err := rand.Read(key[:]); err != nil {
			return nil, err
		}
		value = secret.Of(hex.EncodeToString(key[:]))
		err = v.secrets.Set(vaultKey, value)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(value.Reveal())
	if err != nil || len(key) != 32 {
		return nil, errors.New("the secret " + vaultKey + " is not a key")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Save seals data under a key, a plain file name.
func (v *Vault) Save(_ context.Context, key string, data []byte) error {
	const op, fix = "keep", "see that the folder can be written and has room"
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return v.fail(op, key, err, fix)
	}
	unlock, err := v.lock()
	if err != nil {
		return v.fail(op, key, err, fix)
	}
	defer unlock()
	aead, err := v.sealer(true)
	if err != nil {
		return v.fail(op, key, err, "ken doctor says what is wrong with the secrets")
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return v.fail(op, key, err, fix)
	}
	sealed := aead.Seal(nonce, nonce, data, []byte(key))
	if err := replaceFile(v.path(key), sealed, true, func() error { return nil }); err != nil {
		return v.fail(op, key, err, fix)
	}
	return nil
}

// Load opens what was saved under a key.
func (v *Vault) Load(_ context.Context, key string) ([]byte, error) {
	const op = "open what was kept"
	sealed, err := os.ReadFile(v.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &capability.Error{Kind: capability.NotFound, Op: op, Target: v.path(key), Err: errors.New("nothing was kept")}
	}
	if err != nil {
		return nil, v.fail(op, key, err, "see that it can be read")
	}
	aead, err := v.sealer(false)
	if err != nil {
		// Not NotFound: something was kept, and only its key is missing.
		return nil, &capability.Error{Kind: capability.Unavailable, Op: op, Target: v.path(key), Err: err, Fix: "put secrets.age and secrets.key back from a backup"}
	}
	if len(sealed) < aead.NonceSize() {
		return nil, v.fail(op, key, errors.New("file is damaged"), "put it back from a backup")
	}
	data, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], []byte(key))
	if err != nil {
		return nil, v.fail(op, key, errors.New("file is damaged, or was sealed with another key"), "put it back from a backup, with secrets.age and secrets.key")
	}
	return data, nil
}

// Delete takes away what was saved under a key. Nothing there is fine.
func (v *Vault) Delete(_ context.Context, key string) error {
	if err := os.Remove(v.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v.fail("delete", key, err, "see that the folder can be written")
	}
	return nil
}

// lock keeps other processes from saving and from removing the key. Where the
// system has no such lock, there is none.
func (v *Vault) lock() (unlock func(), err error) {
	unlock, err = wholefile.LockFolder(v.dir, 30*time.Second)
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	return unlock, err
}

// Clean removes the key if nothing is kept any more.
func (v *Vault) Clean() error {
	if !isThere(v.dir) {
		return nil
	}
	unlock, err := v.lock()
	if err != nil {
		return err
	}
	defer unlock()
	kept, err := filepath.Glob(filepath.Join(v.dir, "*.sealed"))
	if err != nil || len(kept) > 0 {
		return err
	}
	if err := v.secrets.Remove(vaultKey); err != nil && capability.KindOf(err) != capability.NotFound && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
