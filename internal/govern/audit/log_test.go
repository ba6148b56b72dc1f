package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"path/filepath"
	"testing"

	"ken/internal/testkit"
)

// testKey is the same in every test and every child process.
func testKey(t testing.TB) Key {
	t.Helper()
	seed := sha256.Sum256([]byte("audit test key"))
	return testkit.Must(NewKey(ed25519.NewKeyFromSeed(seed[:])))(t)
}

// testConfig is a log in a directory of the test.
func testConfig(t testing.TB) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t)}
}

// ran is the least that can be recorded.
var ran = Record{Event: Executed}

func testOpen(t testing.TB, cfg Config) *Log {
	t.Helper()
	l := testkit.Must(Open(cfg))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func testClose(t testing.TB, l *Log) {
	t.Helper()
	testkit.OK(t, l.Close())
}

func testAppend(t testing.TB, l *Log, records ...Record) ID {
	t.Helper()
	return testkit.Must(l.Append(t.Context(), records...))(t)
}

func testVerify(t testing.TB, cfg Config) Report {
	t.Helper()
	return testkit.Must(Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public()))(t)
}
