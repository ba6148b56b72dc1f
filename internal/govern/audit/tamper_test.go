package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"ken/internal/testkit"
)

// smallLog writes n records besides the first and closes. Three records to a
// segment, a kept checkpoint every two.
func smallLog(t testing.TB, n int) (Config, *Log) {
	t.Helper()
	cfg := testConfig(t)
	cfg.SegmentBytes, cfg.CheckpointEvery = 1500, 2
	l := testOpen(t, cfg)
	for i := range n {
		testAppend(t, l, Record{Event: Executed, ExtensionID: fmt.Sprintf("ext%d", i)})
	}
	return cfg, l
}

// files returns the segments of the only chain and its checkpoint file.
func files(t testing.TB, cfg Config) (segments []string, head string) {
	t.Helper()
	segments = testkit.Must(filepath.Glob(filepath.Join(cfg.Dir, "*.jsonl")))(t)
	heads, err := filepath.Glob(filepath.Join(cfg.CheckpointDir, "*"+headSuffix))
	if err != nil || len(heads) != 1 {
		t.Fatalf("heads = %v, %v, want one", heads, err)
	}
	return segments, heads[0]
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(path))(t)
}

func mustWrite(t testing.TB, path string, data []byte) {
	t.Helper()
	testkit.OK(t, os.WriteFile(path, data, 0o600))
}

func only(t testing.TB, cfg Config) ChainReport {
	t.Helper()
	rep := testVerify(t, cfg)
	if len(rep.Chains) != 1 {
		t.Fatalf("Verify gives %d chains, want 1: %v", len(rep.Chains), rep.Chains)
	}
	return rep.Chains[0]
}

func wantChain(t testing.TB, cfg Config, want State) {
	t.Helper()
	if rep := only(t, cfg); rep.State != want {
		t.Errorf("Verify = %v, want %v", rep, want)
	}
}

func closedLog(t testing.TB, n int) Config {
	t.Helper()
	cfg, l := smallLog(t, n)
	testClose(t, l)
	return cfg
}

// every returns how many bytes the tests below go on at once: all, or few in short.
func every(all, short int) int {
	if testing.Short() {
		return short
	}
	return all
}

// TestFlipEveryByte changes every byte of a small closed log, one at a time;
// each change is found, at its record and at its offset.
func TestFlipEveryByte(t *testing.T) {
	cfg := closedLog(t, 4)
	if got := only(t, cfg); got.State != Whole || got.Records != 5 || got.Signed != 5 {
		t.Fatalf("untouched: %v", got)
	}
	segments, _ := files(t, cfg)
	if len(segments) < 2 {
		t.Fatalf("want several segments, got %v", segments)
	}
	seq := int64(0)
	flips := 0
	for _, path := range segments {
		data := mustRead(t, path)
		start := 0
		for i := range data {
			if i > 0 && data[i-1] == '\n' {
				start = i
				seq++
			}
			if i%every(1, 61) != 0 {
				continue
			}
			changed := bytes.Clone(data)
			changed[i] ^= 1 << (i % 8)
			mustWrite(t, path, changed)
			flips++
			rep := only(t, cfg)
			// Without its newline the last line is unfinished: then it is cut.
			okState := rep.State == Broken || rep.State == Cut && i == len(data)-1
			if !okState || rep.Seq != seq || rep.File != path || rep.Offset != int64(start) {
				t.Fatalf("byte %d of %s ^ %#x: got %v, want broken at record %d byte %d", i, filepath.Base(path), 1<<(i%8), rep, seq, start)
			}
		}
		seq++
		mustWrite(t, path, data)
	}
	t.Logf("%d changes found", flips)
}

// TestFlipEveryByteOfCheckpoint: neither are the signed heads open to change.
func TestFlipEveryByteOfCheckpoint(t *testing.T) {
	cfg := closedLog(t, 3)
	_, head := files(t, cfg)
	data := mustRead(t, head)
	for i := 0; i < 2*slotSize; i += every(1, 61) { // the newest head and one of the history
		changed := bytes.Clone(data)
		changed[i] ^= 1
		mustWrite(t, head, changed)
		if rep := only(t, cfg); rep.State != BadSignature {
			t.Fatalf("byte %d: %v, want bad signature", i, rep)
		}
	}
}

// TestCutEveryLength cuts the tail at every length, of a closed chain and of
// one whose process lives: always found, against the signed head.
func TestCutEveryLength(t *testing.T) {
	for _, closed := range []bool{true, false} {
		cfg, l := smallLog(t, 4)
		if closed {
			testClose(t, l)
		}
		segments, _ := files(t, cfg)
		slices.Reverse(segments)
		step := every(1, 61)
		if !closed {
			step = every(5, 61)
		}
		for _, path := range segments {
			data := mustRead(t, path)
			for n := len(data) - 1; n >= 0; n -= step {
				mustWrite(t, path, data[:n])
				rep := only(t, cfg)
				if rep.State.OK() {
					t.Fatalf("closed=%v: %s cut to %d bytes: %v", closed, filepath.Base(path), n, rep)
				}
				want := int64(bytes.LastIndexByte(data[:n], '\n') + 1)
				if rep.File == path && rep.Offset != want {
					t.Fatalf("closed=%v: %s cut to %d bytes: offset %d, want %d", closed, filepath.Base(path), n, rep.Offset, want)
				}
			}
			testkit.OK(t, os.Remove(path))
			if rep := only(t, cfg); rep.State != MissingFile || rep.File != path {
				t.Fatalf("closed=%v: %s removed: %v, want missing file", closed, filepath.Base(path), rep)
			}
		}
	}
}

// TestCutToEarlierCheckpoint: a log cut exactly to a size that was signed once
// is still shorter than the newest head; with the newest head removed too, the
// history, and a head kept elsewhere, still tell.
func TestCutToEarlierCheckpoint(t *testing.T) {
	cfg, l := smallLog(t, 6)
	kept := l.Head()
	testClose(t, l)
	segments, head := files(t, cfg)
	slots := mustRead(t, head)
	known := testkit.Must(verifiers(cfg.Key.Public()))(t)
	old := slots[slotSize : 2*slotSize]
	h := testkit.Must(parseHead(unslot(bytes.Clone(old)), known))(t)
	for _, s := range segments[h.segment:] {
		testkit.OK(t, os.Remove(s))
	}
	path := segments[h.segment-1]
	mustWrite(t, path, mustRead(t, path)[:h.offset])
	if rep := only(t, cfg); rep.State != MissingFile && rep.State != Cut {
		t.Errorf("cut to a checkpoint: %v", rep)
	}
	mustWrite(t, head, slices.Concat(old, slots[slotSize:]))
	if rep := only(t, cfg); rep.State.OK() {
		t.Errorf("the newest head put back: %v", rep)
	}
	mustWrite(t, head, slices.Concat(old, old))
	if rep := only(t, cfg); !rep.State.OK() {
		t.Errorf("both rewound: %v; want it to look in order, or this test shows nothing", rep)
	}
	rep, err := Verify(cfg.Dir, cfg.CheckpointDir, cfg.Key.Public(), kept)
	if err != nil || rep.OK() {
		t.Errorf("Verify with a head kept elsewhere = %v, %v, want an alarm", rep, err)
	}
}

// TestLaterChainRemembers: with chain and checkpoint both removed, a chain
// that was opened later still says that there was one.
func TestLaterChainRemembers(t *testing.T) {
	cfg := closedLog(t, 3)
	segments, head := files(t, cfg)
	later := testOpen(t, cfg)
	if w := later.Warnings(); len(w) != 0 {
		t.Errorf("Warnings() = %v, want none", w)
	}
	for _, path := range append(segments, head) {
		testkit.OK(t, os.Remove(path))
	}
	rep := testVerify(t, cfg)
	if len(rep.Chains) != 2 || rep.Chains[0].State != MissingFile || !strings.Contains(rep.Chains[0].Problem, later.Chain()) {
		t.Errorf("Verify = %v, want the first chain missing, as the second remembers", rep.Chains)
	}
}

// TestOpenWarns: a process that starts notices a chain shorter than signed.
func TestOpenWarns(t *testing.T) {
	cfg := closedLog(t, 1)
	segments, _ := files(t, cfg)
	data := mustRead(t, segments[0])
	mustWrite(t, segments[0], data[:len(data)-1])
	if w := testOpen(t, cfg).Warnings(); len(w) != 1 || !strings.Contains(w[0], segments[0]) {
		t.Errorf("Warnings() = %v, want one about %s", w, segments[0])
	}
}

// TestForgeries: what someone without the key may try with whole lines.
func TestForgeries(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(lines [][]byte) [][]byte
		seq  int64
	}{
		{"a line removed", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }, 2},
		{"two lines swapped", func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, 1},
		{"a line doubled", func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) }, 2},
		{"an empty line", func(l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("\n")) }, 2},
		{"a line added at the end", func(l [][]byte) [][]byte {
			last := bytes.TrimSuffix(l[len(l)-1], []byte("\n"))
			_, _, ok := links(last)
			if !ok {
				panic("no links")
			}
			line := appendLine(nil, "2026-01-30T10:30:45.123Z", []byte(`,"event":"capability_executed"`), 1, "", int64(len(l)), tlog.RecordHash(last))
			return append(l, append(line, '\n'))
		}, 5},
		{"all rewritten, with good links", func(l [][]byte) [][]byte {
			// The first record stays; from the second on everything is forged.
			prev := tlog.RecordHash(bytes.TrimSuffix(l[0], []byte("\n")))
			for i := 1; i < len(l); i++ {
				line := appendLine(nil, "2026-01-30T10:30:45.123Z", []byte(`,"event":"capability_executed"`), 1, "", int64(i), prev)
				prev = tlog.RecordHash(line)
				l[i] = append(line, '\n')
			}
			return l
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			l := testOpen(t, cfg)
			for range 4 {
				testAppend(t, l, ran)
			}
			testClose(t, l)
			segments, _ := files(t, cfg)
			lines := bytes.SplitAfter(mustRead(t, segments[0]), []byte("\n"))
			mustWrite(t, segments[0], bytes.Join(c.do(lines[:len(lines)-1]), nil))
			if rep := only(t, cfg); rep.State != Broken || rep.Seq != c.seq {
				t.Errorf("Verify = %v, want broken at record %d", rep, c.seq)
			}
		})
	}
}

// TestAnotherChainsFile: a file under another chain's name does not pass, nor
// does a head.
func TestAnotherChainsFile(t *testing.T) {
	cfg := testConfig(t)
	a, b := testOpen(t, cfg), testOpen(t, cfg)
	testClose(t, a)
	testClose(t, b)
	copyFile := func(dir, suffix string) {
		mustWrite(t, filepath.Join(dir, b.Chain()+suffix), mustRead(t, filepath.Join(dir, a.Chain()+suffix)))
	}
	find := func() ChainReport {
		for _, c := range testVerify(t, cfg).Chains {
			if c.Chain == b.Chain() {
				return c
			}
		}
		t.Fatal("chain b is not in the report")
		return ChainReport{}
	}
	copyFile(cfg.Dir, ".000001.jsonl")
	if rep := find(); rep.State != Broken || rep.Seq != 0 {
		t.Errorf("with another chain's records: %v", rep)
	}
	copyFile(cfg.CheckpointDir, headSuffix)
	if rep := find(); rep.State.OK() {
		t.Errorf("with another chain's records and head: %v", rep)
	}
}

// TestMissingCheckpointAndKey: no checkpoint, or one of another key, is an alarm.
func TestMissingCheckpointAndKey(t *testing.T) {
	cfg := closedLog(t, 2)
	other := testkit.Must(LoadKey(filepath.Join(t.TempDir(), "key")))(t)
	rep, err := Verify(cfg.Dir, cfg.CheckpointDir, other.Public())
	if err != nil || rep.Chains[0].State != BadSignature {
		t.Errorf("Verify under another key = %v, %v, want bad signature", rep, err)
	}
	rep, err = Verify(cfg.Dir, cfg.CheckpointDir, other.Public()+"\n"+cfg.Key.Public())
	if err != nil || !rep.OK() {
		t.Errorf("Verify under both keys = %v, %v, want ok", rep, err)
	}
	_, head := files(t, cfg)
	mustWrite(t, head, nil)
	wantChain(t, cfg, Unsigned)
	testkit.OK(t, os.Remove(head))
	wantChain(t, cfg, Unsigned)
}

// TestUnfinishedTail: what a crash leaves after the newest head is no alarm,
// for a whole line or a part of one; and nothing of it hides a change before.
func TestUnfinishedTail(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Started})
	segments, head := files(t, cfg)
	open := mustRead(t, head)
	data := mustRead(t, segments[0])
	next := append(appendLine(nil, formatTime(seedClock()), []byte(`,"event":"x"`), 1, "", 2, l.prev), '\n')
	testClose(t, l)
	mustWrite(t, head, open) // as a process that died left it
	for n := range len(next) + 1 {
		mustWrite(t, segments[0], append(bytes.Clone(data), next[:n]...))
		rep := only(t, cfg)
		whole := n == len(next)
		if rep.State != OpenDied || !whole && rep.Unfinished != int64(n) || whole && rep.Records != 3 || rep.Signed != 2 {
			t.Fatalf("%d of %d bytes of a record after the head: %v", n, len(next), rep)
		}
		if n > 0 && !strings.Contains(rep.String(), "never acknowledged") {
			t.Fatalf("report does not say that it was never acknowledged: %v", rep)
		}
		bad := append(bytes.Clone(data), next[:n]...)
		bad[10] ^= 1
		mustWrite(t, segments[0], bad)
		if rep := only(t, cfg); rep.State != Broken || rep.Seq != 0 {
			t.Fatalf("a change before %d unfinished bytes: %v", n, rep)
		}
	}
}

// TestProve: every record has a proof, and the proof fails with any of its
// parts changed.
func TestProve(t *testing.T) {
	cfg, l := smallLog(t, 8)
	pub := cfg.Key.Public()
	for i := range 9 {
		id := makeID(l.Chain(), int64(i))
		p, err := Prove(cfg.Dir, cfg.CheckpointDir, pub, id)
		if err != nil {
			t.Fatalf("Prove(%s): %v", id, err)
		}
		doc := testkit.Must(json.Marshal(p))(t)
		var back Proof
		testkit.OK(t, json.Unmarshal(doc, &back))
		if err := CheckProof(back, pub); err != nil {
			t.Errorf("CheckProof(%s) = %v", id, err)
		}
		for name, spoil := range map[string]func(*Proof){
			"line":   func(p *Proof) { p.Line = strings.Replace(p.Line, "a", "b", 1) },
			"id":     func(p *Proof) { p.ID = makeID(l.Chain(), int64(i+1)) },
			"hashes": func(p *Proof) { p.Hashes = slices.Clone(p.Hashes); p.Hashes[0][0] ^= 1 },
			"fewer":  func(p *Proof) { p.Hashes = p.Hashes[1:] },
			"head":   func(p *Proof) { p.Head = strings.Replace(p.Head, "\n9\n", "\n8\n", 1) },
		} {
			q := p
			if spoil(&q); CheckProof(q, pub) == nil {
				t.Errorf("CheckProof(%s) with another %s = nil", id, name)
			}
		}
	}
	for _, id := range []ID{makeID(l.Chain(), 9), "x", "20260130T103045123Z-1-0123456789abcdef:0"} {
		if _, err := Prove(cfg.Dir, cfg.CheckpointDir, pub, id); err == nil {
			t.Errorf("Prove(%q) = nil error", id)
		}
	}
	lone := testConfig(t)
	first := makeID(testOpen(t, lone).Chain(), 0)
	if p, err := Prove(lone.Dir, lone.CheckpointDir, pub, first); err != nil || CheckProof(p, pub) != nil {
		t.Errorf("Prove of an only record = %v, %v", p, err)
	}
}
