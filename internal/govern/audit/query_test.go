package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQueryMerges: three chains that overlap in time come out as one, by time,
// under every filter.
func TestQueryMerges(t *testing.T) {
	cfg := testConfig(t)
	cfg.SegmentBytes = 1200
	now := seedClock()
	cfg.now = func() time.Time { return now }
	step := func() { now = now.Add(time.Second) }
	var logs []*Log
	for i := range 3 {
		logs = append(logs, testOpen(t, cfg))
		step()
		for j := range 5 {
			for k, l := range logs {
				testAppend(t, l, Record{Event: Executed, SessionID: fmt.Sprint("s", k), ExtensionID: fmt.Sprint("e", i, j)})
				step()
			}
		}
	}
	all := collect(t, cfg.Dir, Filter{})
	if len(all) != 3+5+10+15 {
		t.Fatalf("Query gives %d records, want 33", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b Entry) int { return a.Record.Timestamp.Compare(b.Record.Timestamp) }) {
		t.Error("Query is not by time")
	}
	for _, e := range all {
		data := mustRead(t, e.File)
		if line := data[e.Offset:][:len(e.Line)]; string(line) != string(e.Line) {
			t.Errorf("%s is not at %s:%d", e.ID, e.File, e.Offset)
		}
	}
	from, to := all[10].Record.Timestamp, all[20].Record.Timestamp
	for _, c := range []struct {
		f    Filter
		want func(r Record) bool
	}{
		{Filter{Session: "s1"}, func(r Record) bool { return r.SessionID == "s1" }},
		{Filter{Session: "s"}, func(Record) bool { return false }},
		{Filter{Extension: "e12"}, func(r Record) bool { return r.ExtensionID == "e12" }},
		{Filter{Since: from}, func(r Record) bool { return !r.Timestamp.Before(from) }},
		{Filter{Until: to}, func(r Record) bool { return !r.Timestamp.After(to) }},
		{Filter{Since: from, Until: to, Event: string(Executed), Session: "s0"}, func(r Record) bool {
			return !r.Timestamp.Before(from) && !r.Timestamp.After(to) && r.Event == Executed && r.SessionID == "s0"
		}},
		{Filter{Since: now.Add(time.Hour)}, func(Record) bool { return false }},
	} {
		var got, want []ID
		for _, e := range collect(t, cfg.Dir, c.f) {
			got = append(got, e.ID)
		}
		for _, e := range all {
			if c.want(e.Record) {
				want = append(want, e.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("Query(%+v) = %v, want %v", c.f, got, want)
		}
	}
	n := 0
	for range Query(cfg.Dir, Filter{}) {
		if n++; n == 3 {
			break
		}
	}
}

// TestQueryBadLines: a bad line is reported with its place and hides nothing
// but itself; an unfinished one is not mentioned.
func TestQueryBadLines(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	testAppend(t, l, Record{Event: Executed})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	segments, _ := files(t, cfg)
	data := string(mustRead(t, segments[0]))
	good := data[strings.IndexByte(data, '\n')+1:]
	mustWrite(t, segments[0], []byte(data+"not a record\n"+strings.Repeat("x", maxLine+10)+"\n"+good+`{"half":`))
	var errs []string
	n := 0
	for _, err := range Query(cfg.Dir, Filter{}) {
		if err != nil {
			errs = append(errs, err.Error())
		} else {
			n++
		}
	}
	if n != 3 || len(errs) != 2 || !strings.Contains(errs[0], fmt.Sprintf("byte %d", len(data))) || !strings.Contains(errs[1], "longer than") {
		t.Errorf("%d records and errors %q; want 3 and two errors with places", n, errs)
	}
	if got := collect(t, filepath.Join(cfg.Dir, "nowhere"), Filter{}); got != nil {
		t.Errorf("Query of no directory = %v", got)
	}
}

// TestTail follows two chains, one of them opened later and rotating.
func TestTail(t *testing.T) {
	cfg := testConfig(t)
	cfg.SegmentBytes = 900
	a := testOpen(t, cfg)
	testAppend(t, a, Record{Event: Executed, EffectID: "old"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range Tail(ctx, cfg.Dir, Filter{Event: string(Executed)}) {
			if err != nil {
				got <- err.Error()
				continue
			}
			got <- e.Record.EffectID
		}
	}()
	// What is written before Tail looks counts as old; so first wait until it follows.
	seen := ""
	for i := 0; seen == ""; i++ {
		testAppend(t, a, Record{Event: Executed, EffectID: "probe"})
		select {
		case seen = <-got:
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("Tail gives nothing")
		}
	}
	b := testOpen(t, cfg)
	var want []string
	for i := range 10 {
		for _, l := range []*Log{a, b} {
			id := fmt.Sprint(l.Chain(), i)
			testAppend(t, l, Record{Event: Executed, EffectID: id})
			testAppend(t, l, Record{Event: Failed, EffectID: "not this"})
			want = append(want, id)
		}
	}
	var have []string
	for len(have) < len(want) {
		select {
		case s := <-got:
			if s != "probe" {
				have = append(have, s)
			}
		case <-ctx.Done():
			t.Fatalf("Tail gave %d of %d: %v", len(have), len(want), have)
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("Tail gave %v, want %v", have, want)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("Tail does not end with its context")
	}
}

// TestTailSince begins with what is there.
func TestTailSince(t *testing.T) {
	cfg := testConfig(t)
	a := testOpen(t, cfg)
	for i := range 3 {
		testAppend(t, a, Record{Event: Executed, EffectID: fmt.Sprint(i)})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var got []string
	for e, err := range Tail(ctx, cfg.Dir, Filter{Since: time.Now().Add(-time.Hour), Event: string(Executed)}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Record.EffectID); len(got) == 3 {
			break
		}
	}
	if !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("Tail = %v, want 0 1 2", got)
	}
}

// TestKeys: a key is made once, by the first caller, and refused if other users can
// read it.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "audit.key")
	made := make(chan Key)
	for range 4 {
		go func() {
			k, err := LoadKey(path)
			if err != nil {
				t.Error(err)
			}
			made <- k
		}()
	}
	first := <-made
	for range 3 {
		if k := <-made; k.Public() != first.Public() || k.Digest([]byte("x")) != first.Digest([]byte("x")) {
			t.Errorf("two keys: %s and %s", first.Public(), k.Public())
		}
	}
	if got := strings.TrimSpace(string(mustRead(t, path+".pub"))); got != first.Public() {
		t.Errorf("%s.pub = %q, want %q", path, got, first.Public())
	}
	if first.Digest([]byte("x")) == testKey(t).Digest([]byte("x")) {
		t.Error("digests do not depend on the key")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("LoadKey of a key that all can read = %v, want the fix", err)
	}
	mustWrite(t, path+"2", []byte("rubbish"))
	if _, err := LoadKey(path + "2"); err == nil {
		t.Error("LoadKey of rubbish = nil error")
	}
	if _, err := NewKey(nil); err == nil {
		t.Error("NewKey(nil) = nil error")
	}
	if _, err := Verify(t.TempDir(), t.TempDir(), ""); err == nil {
		t.Error("Verify without a key = nil error")
	}
}
