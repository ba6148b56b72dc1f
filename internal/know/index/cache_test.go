package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/language"
	"ken/internal/testkit/indextest"
)

// kept returns the files of a cache by name.
func kept(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

// only returns the one file of a cache.
func only(t *testing.T, dir string) (path, data string) {
	t.Helper()
	files := kept(t, dir)
	if len(files) != 1 {
		t.Fatalf("the cache holds %v, want one file", slices.Sorted(maps.Keys(files)))
	}
	for name, data := range files {
		return filepath.Join(dir, name), data
	}
	return "", ""
}

// TestCache: a segment that was kept is the one that was made, and can be
// changed like it.
func TestCache(t *testing.T) {
	list := indextest.Many(400)
	c := &Cache{Dir: filepath.Join(t.TempDir(), "new", "dir"), Name: "test"}
	made := c.Build(list)
	path, data := only(t, c.Dir)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s has mode %v, %v, want it private", path, info.Mode(), err)
	}
	again := c.Build(list)
	if dump(again) != dump(made) || dump(made) != dump(Build(list)) {
		t.Error("the segment that was kept is not the one that was made")
	}
	gauge := indextest.Tool("gauge", "reads a gauge "+indextest.Word(9))
	change := func(s *Segment) string {
		s, _ = s.Change([]*capability.Capability{gauge}, []int{0, 9, 200})
		return dump(s)
	}
	if change(again) != change(made) {
		t.Error("once changed, the segment that was kept is not the one that was made")
	}
	if now := kept(t, c.Dir)[filepath.Base(path)]; now != data {
		t.Error("reading a kept segment altered its file")
	}
	// The file is really what is read.
	other := indextest.Many(400)
	other[0] = indextest.Tool("gauge", "gauge")
	must(t, os.WriteFile(path, encode(Build(other), keyOf(list, nil)), 0o600))
	if _, ok := c.Build(list).Words.Get("gauge"); !ok {
		t.Error("the kept file was not read: nothing has its word gauge")
	}
}

func TestCacheKeepsNothing(t *testing.T) {
	var none *Cache
	list := indextest.Many(leastCached)
	if got := none.Build(list); got.Len() != len(list) {
		t.Errorf("a nil cache builds %d, want %d", got.Len(), len(list))
	}
	if got := (&Cache{}).Build(list); got.Len() != len(list) {
		t.Errorf("a cache without a folder builds %d, want %d", got.Len(), len(list))
	}
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	if got := c.Build(list[:leastCached-1]); got.Len() != leastCached-1 {
		t.Errorf("a cache builds %d, want %d", got.Len(), leastCached-1)
	}
	if files := kept(t, c.Dir); len(files) > 0 {
		t.Errorf("a small list was kept: %v", slices.Sorted(maps.Keys(files)))
	}
	c.Build(list)
	only(t, c.Dir)
}

// TestCacheCannotWrite: a folder that cannot be used costs nothing but speed.
func TestCacheCannotWrite(t *testing.T) {
	list := indextest.Many(300)
	want := dump(Build(list))
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if got := dump((&Cache{Dir: file, Name: "test"}).Build(list)); got != want {
		t.Error("with a file for a folder the segment is another")
	}
	if got := dump((&Cache{Dir: filepath.Join(file, "x"), Name: "test"}).Build(list)); got != want {
		t.Error("with a folder in a file the segment is another")
	}
	// Where something else is in the way, nothing is left lying about.
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	c.Build(list)
	path, _ := only(t, c.Dir)
	must(t, os.Remove(path))
	must(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
	if got := dump(c.Build(list)); got != want {
		t.Error("with a folder in its place the segment is another")
	}
	if entries, _ := os.ReadDir(c.Dir); len(entries) != 1 {
		t.Errorf("the cache left %v", entries)
	}
}

// TestCacheDamaged: a file that is not exactly what was written is as none, and
// is written anew.
func TestCacheDamaged(t *testing.T) {
	list := indextest.Many(300)
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	want := dump(c.Build(list))
	path, good := only(t, c.Dir)
	flip := func(at int) string {
		data := []byte(good)
		data[at] ^= 0x10
		return string(data)
	}
	head := len(cacheFormat) + sha256.Size
	for what, bad := range map[string]string{
		"empty": "", "one byte": good[:1], "the head alone": good[:head], "half": good[:len(good)/2], "without the end": good[:len(good)-1],
		"more": good + "x", "twice": good + good, "another version": strings.Replace(good, cacheFormat, "ken index 0\n", 1),
		"text": "not an index at all\n", "a flipped bit of the version": flip(2), "of the key": flip(len(cacheFormat) + 3),
		"of a count": flip(head + 1), "of a level": flip(head + 6), "in the middle": flip(len(good) / 2),
		"near the end": flip(len(good) - sumSize - 2), "of the sum": flip(len(good) - 1),
	} {
		must(t, os.WriteFile(path, []byte(bad), 0o600))
		if got := dump(c.Build(list)); got != want {
			t.Errorf("%s: the segment is another", what)
		}
		if _, now := only(t, c.Dir); now != good {
			t.Errorf("%s: the file was not written anew", what)
		}
	}
}

// TestDecodeRefuses: whatever byte is different, wherever a file ends.
func TestDecodeRefuses(t *testing.T) {
	list := indextest.Many(20)
	key := keyOf(list, nil)
	good := encode(Build(list), key)
	if _, ok := decode(good, key, list, nil); !ok {
		t.Fatal("decode refuses what encode wrote")
	}
	if _, ok := decode(good, keyOf(list[:19], nil), list[:19], nil); ok {
		t.Error("decode takes a file for another list")
	}
	if _, ok := decode(good, key, list[:19], nil); ok {
		t.Error("decode takes a file for a shorter list")
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(good)
		at := rapid.IntRange(0, len(good)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			bad = bad[:at]
		case 2:
			bad = slices.Insert(bad, at, rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "bytes")...)
		}
		if _, ok := decode(bad, key, list, nil); ok {
			t.Fatalf("decode takes a file that was damaged at %d of %d", at, len(good))
		}
	})
}

// TestDecodeChecks: a file that is whole, but says what cannot be.
func TestDecodeChecks(t *testing.T) {
	list := indextest.Many(20)
	key := keyOf(list, nil)
	for what, damage := range map[string]func(*Segment){
		"nothing":                    func(*Segment) {},
		"a word of no term":          func(s *Segment) { s.Words.base["zork"] = uint32(s.Postings.Count) },
		"a stem of no term":          func(s *Segment) { s.Stems.base["zork"] = 1 << 31 },
		"a capability of no term":    func(s *Segment) { s.Docs[3].Terms[0] = uint32(s.Postings.Count) },
		"a name of no term":          func(s *Segment) { s.Docs[3].InName[0] = uint32(s.Postings.Count) },
		"a term without a count":     func(s *Segment) { s.Docs[3].Counts = s.Docs[3].Counts[1:] },
		"a capability too few":       func(s *Segment) { s.Docs = s.Docs[1:] },
		"a language nobody heard of": func(s *Segment) { s.Docs[3].Lang = uint8(language.Count) },
	} {
		s := Build(list)
		damage(s)
		if _, ok := decode(encode(s, key), key, list, nil); ok != (what == "nothing") {
			t.Errorf("a file with %s: decode = %v", what, ok)
		}
	}
}

// TestCacheNear: a list that is nearly one that was kept has its segment from
// there: only what is new is read, and nothing is left of what is gone.
func TestCacheNear(t *testing.T) {
	for _, model := range []*embed.Model{nil, indextest.Builtin(t)} {
		list := indextest.Many(400)
		c := &Cache{Dir: t.TempDir(), Name: "test", Model: model}
		// The file has a word that is nowhere in the list, so that a segment made
		// of the list alone is told from one that was kept.
		planted := slices.Clone(list)
		planted[7] = indextest.Tool("gauge", "gauge")
		must(t, os.WriteFile(filepath.Join(c.Dir, "test-0123456789abcdef"+cacheSuffix), encode(BuildWith(model, planted), keyOf(planted, model)), 0o600))
		fresh := []*capability.Capability{indextest.Tool("aa", "reads a barometer "+indextest.Word(9)), indextest.Tool("zz", "a second")}
		now := slices.Concat(fresh[:1], list[:7], list[8:200], list[203:], fresh[1:])
		slices.Reverse(now[20:40])
		got := c.Build(now)
		if _, ok := got.Words.Get("gauge"); !ok {
			t.Error("the kept file was not read: nothing has its word gauge")
		}
		only(t, c.Dir) // so little is different that the file stays the only one
		whole := BuildWith(model, now)
		if got.Len() != whole.Len() || got.Terms != whole.Terms || got.Spoken != whole.Spoken {
			t.Errorf("the segment has %d capabilities and %d terms, want %d and %d", got.Len(), got.Terms, whole.Len(), whole.Terms)
		}
		for i := range now {
			if g, w := got.Docs[i], whole.Docs[i]; g.Capability != w.Capability || len(g.Terms) != len(w.Terms) || g.Norm != w.Norm || !slices.Equal(g.nameCodes, w.nameCodes) {
				t.Fatalf("slot %d has %+v, want %+v", i, g, w)
			}
			if model != nil && !slices.Equal(got.VectorStore.Code(i), whole.VectorStore.Code(i)) {
				t.Fatalf("slot %d has another vector", i)
			}
		}
		id, _ := got.Words.Get("gauge")
		if list := got.Postings.Of(id); len(list) > 0 {
			t.Errorf("what is gone is still found: %v", list)
		}
		// Where more is different, the next start has a file of its own.
		c.Build(now[:380])
		if n := len(kept(t, c.Dir)); n != 2 {
			t.Errorf("after a list with %d fewer there are %d files, want 2", len(now)-380, n)
		}
		// A file that has little in common is not read.
		if s := c.Build(indextest.Many(1200)[800:]); s.Len() != 400 {
			t.Errorf("another list has %d, want 400", s.Len())
		}
	}
}

// TestCacheNearDamaged: a damaged file of nearly the same list is as none.
func TestCacheNearDamaged(t *testing.T) {
	list := indextest.Many(300)
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	c.Build(list[:299])
	path, good := only(t, c.Dir)
	want := dump(Build(list))
	for _, bad := range []string{"", good[:60], good[:100], good[:len(good)/2], good[:len(good)-1] + "x", strings.Replace(good, cacheFormat, "ken index 0\n", 1)} {
		for name := range kept(t, c.Dir) {
			must(t, os.Remove(filepath.Join(c.Dir, name)))
		}
		must(t, os.WriteFile(path, []byte(bad), 0o600))
		if got := dump(c.Build(list)); got != want {
			t.Errorf("a file of %d bytes: the segment is another", len(bad))
		}
	}
}

func TestCachePrunes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	c := &Cache{Dir: dir, Name: "a"}
	must(t, os.MkdirAll(dir, 0o700))
	key := func(i int) string { return fmt.Sprintf("%016x", i) }
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 8 {
		path := filepath.Join(dir, "a-"+key(i)+cacheSuffix)
		must(t, os.WriteFile(path, []byte("x"), 0o600))
		when := old.Add(time.Duration(i*3%8) * time.Hour) // the newest are 5, 2, 7, 4 …
		must(t, os.Chtimes(path, when, when))
	}
	others := []string{"b-" + key(1) + cacheSuffix, "a-b-" + key(1) + cacheSuffix, "a-notes.index", "a-" + key(9) + ".txt", "a"}
	for _, name := range others {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	list := indextest.Many(300)
	c.Build(list)
	hash := keyOf(list, nil)
	want := append(others, "a-"+hex.EncodeToString(hash[:8])+cacheSuffix)
	for _, i := range []int{5, 2, 7} {
		want = append(want, "a-"+key(i)+cacheSuffix)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(kept(t, dir))); !slices.Equal(got, want) {
		t.Errorf("the cache holds\n%q, want\n%q", got, want)
	}
}

// TestCacheKey: all that a segment is made of is in the key, and what is not
// does not matter.
func TestCacheKey(t *testing.T) {
	base := func() *capability.Capability {
		c := indextest.Tool("name", "description")
		c.DisplayName, c.Category, c.Tags, c.Aliases = "display", "category", []string{"tag", "tag2"}, []string{"alias"}
		c.Triggers = &capability.Triggers{Keywords: []string{"keyword"}}
		c.Parameters = []capability.Parameter{{Name: "p", Description: "text of p"}, {Name: "q"}}
		return c
	}
	seen := map[[sha256.Size]byte]string{}
	for what, change := range map[string]func(*capability.Capability){
		"nothing":      func(*capability.Capability) {},
		"id":           func(c *capability.Capability) { c.ID = "x" },
		"name":         func(c *capability.Capability) { c.Name = "x" },
		"display name": func(c *capability.Capability) { c.DisplayName = "x" },
		"description":  func(c *capability.Capability) { c.Description = "x" },
		"category":     func(c *capability.Capability) { c.Category = "x" },
		"tag":          func(c *capability.Capability) { c.Tags = []string{"tag", "x"} },
		"fewer tags":   func(c *capability.Capability) { c.Tags = []string{"tag"} },
		"joined tags":  func(c *capability.Capability) { c.Tags = []string{"tagtag2"} },
		"alias":        func(c *capability.Capability) { c.Aliases = []string{"x"} },
		"tag as alias": func(c *capability.Capability) { c.Tags, c.Aliases = []string{"tag"}, []string{"tag2", "alias"} },
		"keyword":      func(c *capability.Capability) { c.Triggers = &capability.Triggers{Keywords: []string{"x"}} },
		"no triggers":  func(c *capability.Capability) { c.Triggers = nil },
		"keyword as parameter": func(c *capability.Capability) {
			c.Triggers, c.Parameters = nil, []capability.Parameter{{Name: "1", Description: "keyword"}, {Name: "p", Description: "text of p"}, {Name: "q"}}
		},
		"parameter":        func(c *capability.Capability) { c.Parameters[0].Name = "x" },
		"parameter's text": func(c *capability.Capability) { c.Parameters[1].Description = "x" },
		"fewer parameters": func(c *capability.Capability) { c.Parameters = c.Parameters[:1] },
		"shifted":          func(c *capability.Capability) { c.Name, c.DisplayName = "named", "isplay" },
	} {
		c := base()
		change(c)
		key := keyOf([]*capability.Capability{c}, nil)
		if same, ok := seen[key]; ok {
			t.Errorf("the key with another %s is that with another %s", what, same)
		}
		seen[key] = what
	}
	a, b := indextest.Tool("a", ""), indextest.Tool("b", "")
	if keyOf([]*capability.Capability{a, b}, nil) == keyOf([]*capability.Capability{b, a}, nil) {
		t.Error("the key does not depend on the order, and slots do")
	}
	c, d := base(), base()
	d.Version, d.Hash, d.Priority, d.Trust, d.Parameters[0].Type = "2", "sha256:x", 9, capability.TrustUser, "string"
	if keyOf([]*capability.Capability{c}, nil) != keyOf([]*capability.Capability{d}, nil) {
		t.Error("the key depends on what a segment is not made of")
	}
	// The hash of a source covers all that was changed above (TestEveryTextIsScannedAndHashed
	// of package seal), so it stands for the texts.
	c.Hash = "sha256:" + strings.Repeat("ab", markSize)
	d.Hash = c.Hash[:len(c.Hash)-1] + "c"
	if keyOf([]*capability.Capability{c}, nil) == keyOf([]*capability.Capability{d}, nil) {
		t.Error("capabilities with different hashes have one key")
	}
	d.Hash, d.Description = c.Hash, "not read again"
	if keyOf([]*capability.Capability{c}, nil) != keyOf([]*capability.Capability{d}, nil) {
		t.Error("the texts of a capability with a hash are hashed again")
	}
}

// TestCacheFormat: what is written of a fixed list does not change unless the
// format's name does; otherwise a new program would read the files of an older
// one that splits, stems or counts words differently.
func TestCacheFormat(t *testing.T) {
	list := indextest.Many(40)
	for i := range language.Count {
		stop := slices.Compact(slices.Sorted(slices.Values(language.StopWords(i))))
		list = append(list, indextest.Tool(fmt.Sprintf("lang%02d", i), strings.Join(stop, " ")+" "+strings.Join(indextest.Vocabulary, " ")))
	}
	for i, w := range indextest.Vocabulary {
		list = append(list, indextest.Tool(fmt.Sprintf("%s_%d", w, i), strings.Join(indextest.Vocabulary[i/2:i], ". ")))
	}
	s := Build(list)
	clear(s.Postings.Says) // what these are made of is in the key
	for i := range s.Docs {
		s.Docs[i].Norm = [fields]float32{}
	}
	sum := sha256.Sum256(encode(s, [sha256.Size]byte{}))
	const format, want = "ken index 7\n", "3a4fa2abbfc33a3e"
	if got := hex.EncodeToString(sum[:8]); got != want || cacheFormat != format {
		t.Errorf("format %q writes %s, want %q to write %s: give cacheFormat its next number and put both here", cacheFormat, got, format, want)
	}
}
