package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/parsecache"
	"ken/internal/know/source/safefs"
	"ken/internal/testkit"
	"ken/internal/testkit/sourcetest"
)

// largeCatalog is a catalog that is worth caching, with a bad row in it.
func largeCatalog() string {
	var b strings.Builder
	for i := 0; b.Len() < parsecache.MinSize; i++ {
		fmt.Fprintf(&b, `{"id":"t%d","name":"tool-%d","description":"Does thing %d.","input_schema":{"type":"object","properties":{"a%d":{"type":"string"}}}}`+"\n", i, i, i, i)
	}
	return b.String() + "{bad\n"
}

func entriesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	return names
}

// forge changes the first description in the only entry of a cache, so that a
// test can tell whether the entry was used.
func forge(t *testing.T, u *format.Unit, dir string) {
	t.Helper()
	names := entriesIn(t, dir)
	if len(names) != 1 {
		t.Fatalf("the cache holds %v, want one entry", names)
	}
	data, err := os.ReadFile(names[0])
	must(t, err)
	id := parsecache.KeyOf(u)
	if !parsecache.Unpack(data, id, u) {
		t.Fatal("the entry does not unpack")
	}
	u.Capabilities[0].Description = "From the cache."
	must(t, os.WriteFile(names[0], parsecache.Pack(u, false, id), 0o600))
}

func TestCacheAnswersForTheSameBytes(t *testing.T) {
	text, dir := largeCatalog(), filepath.Join(t.TempDir(), "a", "cache")
	p := sourcetest.Write(t, t.TempDir(), "c.jsonl", text)
	cfg := TreeConfig{Path: p, Trust: capability.TrustUser, Cache: &parsecache.Cache{Dir: dir}}
	_, fresh := load(t, cfg)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("cache directory: %v, %v, want mode 0700", info, err)
	}
	if info, err = os.Stat(entriesIn(t, dir)[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("entry: %v, %v, want mode 0600", info, err)
	}
	tree, again := load(t, cfg)
	if !reflect.DeepEqual(fresh, again) {
		t.Error("what comes from the cache differs from what was parsed")
	}
	c := again.Capabilities[len(again.Capabilities)-1]
	if d, err := tree.Detail(context.Background(), c); err != nil || !strings.Contains(string(d.Schema), `"properties"`) {
		t.Errorf("Detail of a cached capability = %s, %v", d.Schema, err)
	}
	forge(t, &format.Unit{Root: &safefs.Root{Name: filepath.Dir(p)}, Path: "c.jsonl", Format: "jsonl", Source: p, Trust: capability.TrustUser, Data: []byte(text)}, dir)
	if _, b := load(t, cfg); b.Capabilities[0].Description != "From the cache." {
		t.Errorf("description = %q: the cache is not used", b.Capabilities[0].Description)
	}
	sourcetest.Write(t, filepath.Dir(p), "c.jsonl", text+"\n")
	if _, b := load(t, cfg); b.Capabilities[0].Description != "Does thing 0." || len(entriesIn(t, dir)) != 2 {
		t.Errorf("description = %q, entries %d: the cache answers for other bytes", b.Capabilities[0].Description, len(entriesIn(t, dir)))
	}
}

func TestCacheHoldsOnlyLargeFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := sourcetest.Write(t, t.TempDir(), "c.jsonl", `{"name":"a"}`)
	load(t, TreeConfig{Path: p, Cache: &parsecache.Cache{Dir: dir}})
	if _, err := os.Stat(dir); err == nil {
		t.Error("a small file made a cache")
	}
	load(t, TreeConfig{Path: p, Cache: &parsecache.Cache{}})
	load(t, TreeConfig{Path: p})
}

func TestCacheDamageIsMendedNotFatal(t *testing.T) {
	testkit.CI(t, "catalogs that are worth caching")
	for name, damage := range map[string]func([]byte) []byte{
		"empty":           func([]byte) []byte { return nil },
		"cut":             func(b []byte) []byte { return b[:len(b)/2] },
		"one bit":         func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"longer":          func(b []byte) []byte { return append(b, 0) },
		"another version": func(b []byte) []byte { return append([]byte("KENPARSX"), b[8:]...) },
		"another file":    func([]byte) []byte { return []byte("hello") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			p := sourcetest.Write(t, t.TempDir(), "c.jsonl", largeCatalog())
			cfg := TreeConfig{Path: p, Trust: capability.TrustUser, Cache: &parsecache.Cache{Dir: dir}}
			_, want := load(t, cfg)
			entry := entriesIn(t, dir)[0]
			good, err := os.ReadFile(entry)
			must(t, err)
			must(t, os.WriteFile(entry, damage([]byte(string(good))), 0o600))
			if _, got := load(t, cfg); !reflect.DeepEqual(got, want) {
				t.Error("the batch differs after damage to the cache")
			}
			if mended, err := os.ReadFile(entry); err != nil || string(mended) != string(good) {
				t.Errorf("the entry was not written again: %v", err)
			}
		})
	}
}

func TestCacheOfOthersIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o770))
	cache := &parsecache.Cache{Dir: dir}
	err := cache.Check()
	if capability.KindOf(err) != capability.Denied || !strings.Contains(fmt.Sprint(err), "chmod go-w") {
		t.Fatalf("Check of a directory that others write to = %v, want a refusal with the fix", err)
	}
	p := sourcetest.Write(t, t.TempDir(), "c.jsonl", largeCatalog())
	_, b := load(t, TreeConfig{Path: p, Cache: cache})
	last := b.Problems[len(b.Problems)-1]
	if last.Code != "cache-unused" || last.Severity != capability.Warning || len(b.Capabilities) == 0 || len(entriesIn(t, dir)) != 0 {
		t.Errorf("%d capabilities, last problem %v, entries %v", len(b.Capabilities), last, entriesIn(t, dir))
	}
	for _, good := range []*parsecache.Cache{nil, {}, {Dir: filepath.Join(t.TempDir(), "new")}} {
		if err := good.Check(); err != nil {
			t.Errorf("Check(%+v) = %v", good, err)
		}
	}
	file := sourcetest.Write(t, t.TempDir(), "f", "x")
	if err := (&parsecache.Cache{Dir: file}).Check(); capability.KindOf(err) != capability.Denied {
		t.Errorf("Check of a file = %v, want a refusal", err)
	}
}
