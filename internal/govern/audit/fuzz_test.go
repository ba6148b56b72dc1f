package audit

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"ken/internal/testkit"
)

const fuzzChain = "20260130T103045123Z-1-0123456789abcdef"

// FuzzSegment: any bytes as a segment. Reading ends, says something about
// every line, keeps its places, and nothing passes for a signed chain.
func FuzzSegment(f *testing.F) {
	first := appendLine(nil, formatTime(seedClock()), []byte(`,"level":"INFO","event":"capability_executed"`), 1, "", 0, genesis(fuzzChain))
	f.Add([]byte(string(first) + "\n"))
	f.Add([]byte(string(first) + "\nhalf"))
	f.Add([]byte("\n\n{}\n"))
	f.Add([]byte(`{"timestamp":"2026-01-30T10:30:45.123Z","event":"x","seq":99999999999999999999,"prev":""}` + "\n"))
	f.Add([]byte{0, 0, 0, '\n', 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		mustWrite(t, filepath.Join(dir, segmentName(fuzzChain, 1)), data)
		n := 0
		for e, err := range Query(dir, Filter{}) {
			n++
			if err == nil && !bytes.Equal(data[e.Offset:][:len(e.Line)], e.Line) {
				t.Fatalf("entry at %d is not what stands there", e.Offset)
			}
		}
		if lines := bytes.Count(data, []byte("\n")); n != lines {
			t.Fatalf("%d entries and errors for %d lines", n, lines)
		}
		rep, err := Verify(dir, t.TempDir(), testKey(t).Public())
		if err != nil || rep.OK() {
			t.Fatalf("Verify = %v, %v, want an alarm: nothing is signed", rep, err)
		}
		lr := newLineReader(bytes.NewReader(data), 0)
		for {
			line, start, err := lr.next()
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			}
			if seq, prev, ok := links(line); ok {
				// What is taken for links is exactly what the writer writes.
				end := appendLine(nil, "", nil, 0, "", seq, prev)
				if !strings.HasSuffix(string(line), string(end[bytes.LastIndex(end, []byte(`,"seq"`)):])) {
					t.Fatalf("links(%q at %d) = %d, %v", line, start, seq, prev)
				}
			}
		}
	})
}

// FuzzHead: any bytes as a checkpoint; only what the key signed is accepted.
func FuzzHead(f *testing.F) {
	key := testKey(f)
	known := testkit.Must(verifiers(key.Public()))(f)
	h := head{chain: fuzzChain, size: 3, root: tlog.RecordHash(nil), segment: 1, offset: 77, time: seedClock()}
	signed := testkit.Must(h.sign(key.signer))(f)
	f.Add(signed)
	f.Add([]byte("ken/audit/x\n1\n"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if got, err := parseHead(msg, known); err == nil && (!bytes.Equal(msg, signed) || got.size != 3) {
			t.Fatalf("parseHead(%q) = %+v", msg, got)
		}
	})
}

// FuzzRedact: no text makes the redactor fail, let a held value through, or
// come out differently the second time.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"Authorization: Bearer x", "a://b:c@d/e@f", "--token x --token", "password='a b' \"token\":\"\\\"\"", "-----BEGIN PRIVATE KEY-----", "token=token=token=", "Qz7!Qz7!Qz7!"} {
		f.Add(s)
	}
	var r Redactor
	r.Hold("Qz7!Qz7!")
	f.Fuzz(func(t *testing.T, s string) {
		got := r.String(s)
		if strings.Contains(got, "Qz7!Qz7!") {
			t.Fatalf("String(%q) = %q", s, got)
		}
		_ = r.CommandLine(strings.Fields(s))
		testkit.Must(json.Marshal(got))(t)
	})
}
