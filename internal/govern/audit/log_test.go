package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"path/filepath"
	"testing"
)

// testKey is the same in every test and every child process.
func testKey(t testing.TB) Key {
	t.Helper()
	seed := sha256.Sum256([]byte("audit test key"))
	key, err := NewKey(ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// testConfig is a log in a directory of the test.
func testConfig(t testing.TB) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t)}
}

func testOpen(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func testClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func testAppend(t testing.TB, l *Log, records ...Record) ID {
	t.Helper()
	id, err := l.Append(t.Context(), records...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func testVerify(t testing.TB, cfg Config) Report {
	t.Helper()
	rep, err := Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return rep
}
