package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
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

// TestHeadIsANote: a head is signed as the library for notes signs it, and the library
// reads it.
func TestHeadIsANote(t *testing.T) {
	key := testKey(t)
	for _, closed := range []bool{false, true} {
		h := head{chain: newChain(time.Now()), size: 12345678, segment: 3, offset: 1 << 40, closed: closed, time: time.Now()}
		got, err := h.sign(key.signer)
		if err != nil {
			t.Fatal(err)
		}
		want, err := note.Sign(&note.Note{Text: h.text()}, key.signer)
		if err != nil || string(got) != string(want) {
			t.Errorf("sign = %q, want %q, %v", got, want, err)
		}
		known, err := verifiers(key.public)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseHead(got, known); err != nil {
			t.Errorf("the head cannot be read: %v", err)
		}
	}
}
