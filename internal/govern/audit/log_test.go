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
	return must(NewKey(ed25519.NewKeyFromSeed(seed[:])))(t)
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
	l := must(Open(cfg))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func testClose(t testing.TB, l *Log) {
	t.Helper()
	noErr(t, l.Close())
}

func testAppend(t testing.TB, l *Log, records ...Record) ID {
	t.Helper()
	return must(l.Append(t.Context(), records...))(t)
}

func testVerify(t testing.TB, cfg Config) Report {
	t.Helper()
	return must(Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public()))(t)
}

// fatal is what [must] and [noErr] need of a test.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// must ends the test if there is an error: must(os.ReadFile(path))(t).
func must[T any](v T, err error) func(t fatal) T {
	return func(t fatal) T {
		t.Helper()
		noErr(t, err)
		return v
	}
}

func noErr(t fatal, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
