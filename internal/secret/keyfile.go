package secret

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"ken/internal/wholefile"
)

const keyBytes = 32

// LoadOrCreateKey returns the random key in a file, and writes one if there is
// none. Where the file cannot be written, the key is another for each process.
func LoadOrCreateKey(path string) []byte {
	if key, err := os.ReadFile(path); err == nil && len(key) == keyBytes {
		return key
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return key
	}
	if wholefile.Create(path, key) == nil {
		return key
	}
	// Another process was first, or the file is not a key, as after a crash.
	if theirs, err := os.ReadFile(path); err == nil && len(theirs) == keyBytes {
		return theirs
	}
	_ = wholefile.Write(path, key, 0o600) // else only this process has the key
	return key
}
