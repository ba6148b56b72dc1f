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
	"ken/internal/language"
)

// many makes a list that is worth keeping.
func many(n int) []*capability.Capability {
	list := office()
	for i := range n - len(list) {
		list = append(list, tool(fmt.Sprintf("%sTool_%d", word(i), i), fmt.Sprintf("reads %s and %s; 天気 %d", word(i), word(i/2), i), func(c *capability.Capability) {
			c.Tags, c.Aliases = []string{word(i / 3)}, []string{word(i) + "-alias"}
		}))
	}
	return list
}

// kept returns the files of a cache by name.
func kept(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
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

// asks are messages that use all that a segment has.
var asks = []string{
	"search flights to Oslo", "tool:send_email", "flight-finder", "reads " + word(9), "天気 12", word(30) + "-ALIAS", "thumbnail dimensions", "gauge",
}

func answers(s *Segment) string {
	v := NewView(Part{Segment: s})
	var b strings.Builder
	for _, text := range asks {
		answer := v.Search(Query{Text: text}, 20, nil)
		answer.Embedding = 0
		fmt.Fprintf(&b, "%s: %+v\n", text, answer)
	}
	return b.String()
}

// TestCache: a segment that was kept is the one that was made, and can be
// changed like it.
func TestCache(t *testing.T) {
	list := many(400)
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
	if got, want := answers(again), answers(made); got != want {
		t.Errorf("the segment that was kept answers\n%s, want\n%s", got, want)
	}
	change := func(s *Segment) string {
		s, _ = s.Change([]*capability.Capability{tool("gauge", "reads a gauge "+word(9))}, []int{0, 9, 200})
		return answers(s)
	}
	if got, want := change(again), change(made); got != want {
		t.Errorf("once changed, the segment that was kept answers\n%s, want\n%s", got, want)
	}
	if now := kept(t, c.Dir)[filepath.Base(path)]; now != data {
		t.Error("reading a kept segment altered its file")
	}
	// The file is really what is read.
	other := many(400)
	other[0] = tool("gauge", "gauge")
	if err := os.WriteFile(path, encode(Build(other), keyOf(list, nil)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := names(NewView(Part{Segment: c.Build(list)}), "gauge"); len(got) != 1 {
		t.Errorf("the kept file was not read: Search(gauge) = %v", got)
	}
}

func TestCacheKeepsNothing(t *testing.T) {
	var none *Cache
	list := many(leastCached)
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
	list := many(300)
	want := answers(Build(list))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := answers((&Cache{Dir: file, Name: "test"}).Build(list)); got != want {
		t.Errorf("with a file for a folder: %s, want %s", got, want)
	}
	if got := answers((&Cache{Dir: filepath.Join(file, "x"), Name: "test"}).Build(list)); got != want {
		t.Errorf("with a folder in a file: %s, want %s", got, want)
	}
	// Where something else is in the way, nothing is left lying about.
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	c.Build(list)
	path, _ := only(t, c.Dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := answers(c.Build(list)); got != want {
		t.Errorf("with a folder in its place: %s, want %s", got, want)
	}
	if entries, _ := os.ReadDir(c.Dir); len(entries) != 1 {
		t.Errorf("the cache left %v", entries)
	}
}

// TestCacheDamaged: a file that is not exactly what was written is as none, and
// is written anew.
func TestCacheDamaged(t *testing.T) {
	list := many(300)
	c := &Cache{Dir: t.TempDir(), Name: "test"}
	want := answers(c.Build(list))
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
		"near the end": flip(len(good) - sha256.Size - 2), "of the sum": flip(len(good) - 1),
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := answers(c.Build(list)); got != want {
			t.Errorf("%s: answers\n%s, want\n%s", what, got, want)
		}
		if _, now := only(t, c.Dir); now != good {
			t.Errorf("%s: the file was not written anew", what)
		}
	}
}

// TestDecodeRefuses: whatever byte is different, wherever a file ends.
func TestDecodeRefuses(t *testing.T) {
	list := many(20)
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
	list := many(20)
	key := keyOf(list, nil)
	for what, damage := range map[string]func(*Segment){
		"nothing":                    func(*Segment) {},
		"a word of no term":          func(s *Segment) { s.words.base["zork"] = uint32(s.postings.n) },
		"a stem of no term":          func(s *Segment) { s.stems.base["zork"] = 1 << 31 },
		"a capability of no term":    func(s *Segment) { s.docs[3].terms[0] = uint32(s.postings.n) },
		"a name of no term":          func(s *Segment) { s.docs[3].inName[0] = uint32(s.postings.n) },
		"a term without a count":     func(s *Segment) { s.docs[3].counts = s.docs[3].counts[1:] },
		"a capability too few":       func(s *Segment) { s.docs = s.docs[1:] },
		"a language nobody heard of": func(s *Segment) { s.docs[3].lang = uint8(language.Count) },
	} {
		s := Build(list)
		damage(s)
		if _, ok := decode(encode(s, key), key, list, nil); ok != (what == "nothing") {
			t.Errorf("a file with %s: decode = %v", what, ok)
		}
	}
}

func TestCachePrunes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	c := &Cache{Dir: dir, Name: "a"}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	key := func(i int) string { return fmt.Sprintf("%016x", i) }
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 8 {
		path := filepath.Join(dir, "a-"+key(i)+cacheSuffix)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		when := old.Add(time.Duration(i*3%8) * time.Hour) // the newest are 5, 2, 7, 4 …
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	others := []string{"b-" + key(1) + cacheSuffix, "a-b-" + key(1) + cacheSuffix, "a-notes.index", "a-" + key(9) + ".txt", "a"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := many(300)
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
		c := tool("name", "description")
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
	a, b := tool("a", ""), tool("b", "")
	if keyOf([]*capability.Capability{a, b}, nil) == keyOf([]*capability.Capability{b, a}, nil) {
		t.Error("the key does not depend on the order, and slots do")
	}
	c, d := base(), base()
	d.Version, d.Hash, d.Priority, d.Trust, d.Parameters[0].Type = "2", "sha256:x", 9, capability.TrustUser, "string"
	if keyOf([]*capability.Capability{c}, nil) != keyOf([]*capability.Capability{d}, nil) {
		t.Error("the key depends on what a segment is not made of")
	}
}

// TestCacheFormat: what is written of a fixed list does not change unless the
// format's name does; otherwise a new program would read the files of an older
// one that splits, stems or counts words differently.
func TestCacheFormat(t *testing.T) {
	list := many(40)
	for i := range language.Count {
		stop := slices.Compact(slices.Sorted(slices.Values(language.StopWords(i))))
		list = append(list, tool(fmt.Sprintf("lang%02d", i), strings.Join(stop, " ")+" "+strings.Join(vocabulary, " ")))
	}
	for i, w := range vocabulary {
		list = append(list, tool(fmt.Sprintf("%s_%d", w, i), strings.Join(vocabulary[i/2:i], ". ")))
	}
	s := Build(list)
	clear(s.postings.says) // what these are made of is in the key
	for i := range s.docs {
		s.docs[i].norm = [fields]float32{}
	}
	sum := sha256.Sum256(encode(s, [sha256.Size]byte{}))
	const format, want = "ken index 4\n", "31fefb317a496f72"
	if got := hex.EncodeToString(sum[:8]); got != want || cacheFormat != format {
		t.Errorf("format %q writes %s, want %q to write %s: give cacheFormat its next number and put both here", cacheFormat, got, format, want)
	}
}

// FuzzDecode: no file, even one with the right sum, does harm.
func FuzzDecode(f *testing.F) {
	list := many(9)[5:]
	key := keyOf(list, nil)
	head := len(cacheFormat) + sha256.Size
	good := encode(Build(list), key)
	f.Add(good[head : len(good)-sha256.Size])
	small := encode(Build(nil), key)
	f.Add(small[head : len(small)-sha256.Size])
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, body []byte) {
		data := slices.Concat([]byte(cacheFormat), key[:], body)
		sum := sha256.Sum256(data)
		s, ok := decode(append(data, sum[:]...), key, list, nil)
		if !ok {
			return
		}
		v := NewView(Part{Segment: s})
		for _, text := range asks {
			v.Search(Query{Text: text}, 5, nil)
		}
		s, _ = s.Change(list[:1], []int{0, 3})
		NewView(Part{Segment: s}).Search(Query{Text: asks[0]}, 5, nil)
	})
}
