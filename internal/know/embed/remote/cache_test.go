package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func someTexts(prefix string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("%s does the thing number %d", prefix, i*i)
	}
	return texts
}

func mustEmbed(t testing.TB, c *Cache, texts []string) [][]float32 {
	t.Helper()
	vectors, err := c.Embed(t.Context(), texts)
	must(t, err)
	return vectors
}

// A keeping is a service and a folder in which its vectors are kept.
type keeping struct {
	*testing.T
	*service
	cfg Config
	dir string
}

func newKeeping(t *testing.T) *keeping {
	k := &keeping{T: t, service: newService(), dir: t.TempDir()}
	k.cfg = k.serve(t)
	return k
}

// cache returns a cache as another process has it, of an embedder that knows
// nothing yet.
func (k *keeping) cache() *Cache { return NewCache(open(k.T, k.cfg), k.dir) }

// embeds checks that the service is asked for exactly these texts, in any
// order, so that c has the vectors of texts; want is nil where they are new.
func (k *keeping) embeds(what string, c *Cache, texts []string, want [][]float32, asked ...string) [][]float32 {
	k.Helper()
	k.asked()
	got := mustEmbed(k.T, c, texts)
	if want != nil && !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
		k.Errorf("%s: the vectors are others", what)
	}
	if _, now := k.asked(); !slices.Equal(slices.Sorted(slices.Values(now)), slices.Sorted(slices.Values(asked))) {
		k.Errorf("%s: the service was asked for %q, want %q", what, now, asked)
	}
	return got
}

// troubled checks what a cache says of its trouble; nothing is as "".
func troubled(t *testing.T, c *Cache, want string) {
	t.Helper()
	if err := c.Trouble(); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("Trouble() = %v, want %q in it", err, want)
	}
}

// setAside reports whether the file of a cache was moved away.
func setAside(c *Cache) bool {
	_, err := os.Stat(c.path + asideSuffix)
	return err == nil
}

func TestCacheAsksOnce(t *testing.T) {
	k := newKeeping(t)
	k.dir = filepath.Join(k.dir, "a", "b")
	texts := someTexts("tool", 20)
	c := k.cache()
	if got := c.Dimensions(); got != 0 {
		t.Errorf("Dimensions() at first = %d, want 0", got)
	}
	first := k.embeds("one of them twice", c, append(texts, texts[3]), nil, append(texts, probe)...)
	k.embeds("the second time", c, texts, first[:20])
	c = k.cache()
	k.embeds("after a restart", c, texts, first[:20], probe)
	k.embeds("with two new texts", c, append(someTexts("new", 2), texts...), nil, someTexts("new", 2)...)
	troubled(t, c, "")
	first[3][0] = 7 // the caller's own
	if first[20][0] == 7 {
		t.Error("the vectors of a text that is asked for twice are one")
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{c.path: 0o600, k.dir: 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has the mode %v, %v, want %v", path, info.Mode(), err, want)
			}
		}
	}
	// What one cache adds another finds without asking.
	k.embeds("another cache", c, someTexts("other", 3), nil, someTexts("other", 3)...)
	late := k.cache()
	k.embeds("a late cache", late, texts, nil, probe)
	k.embeds("more in the first", c, someTexts("more", 3), nil, someTexts("more", 3)...)
	k.embeds("what the first has", late, someTexts("more", 3), nil)
}

// slow is an embedder that returns only when it is let go, also after ctx has ended.
type slow struct {
	*Embedder
	asked, letGo chan struct{}
}

func (s slow) Embed(_ context.Context, texts []string) ([][]float32, error) {
	s.asked <- struct{}{}
	<-s.letGo
	return s.Embedder.Embed(context.Background(), texts)
}

// TestCacheClosed: vectors that arrive after Close are returned and not kept, and
// what was kept is left as it is.
func TestCacheClosed(t *testing.T) {
	service := newService()
	e := slow{open(t, service.serve(t)), make(chan struct{}), make(chan struct{})}
	for _, kept := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "vectors")
		var before []byte
		if kept {
			service.weights = "other" // so that the file would be set aside
			mustEmbed(t, NewCache(e.Embedder, dir), []string{"kept"})
			service.weights = ""
		}
		c := NewCache(e, dir)
		if kept {
			before = read(t, c.path)
		}
		done := make(chan error)
		go func() {
			vectors, err := c.Embed(t.Context(), []string{"a text"})
			if err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
				err = fmt.Errorf("Embed = %v", vectors)
			}
			done <- err
		}()
		<-e.asked
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		e.letGo <- struct{}{}
		if err := <-done; err != nil {
			t.Error(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || !kept && len(files) > 0 || kept && (len(files) != 1 || !bytes.Equal(read(t, c.path), before)) {
			t.Errorf("kept before %v: after Close there are %q, %v, or the file changed", kept, files, err)
		}
	}
}

// What is kept is as good as what the index makes of it, and the same whether
// it was kept or just made.
func TestCacheLosesLittle(t *testing.T) {
	k := newKeeping(t)
	k.dims = 768
	e := open(t, k.cfg)
	texts := someTexts("tool", 30)
	exact, err := e.Embed(t.Context(), texts)
	must(t, err)
	for i, v := range mustEmbed(t, NewCache(e, k.dir), texts) {
		if cos := cosine(v, exact[i]); cos < 0.999 {
			t.Errorf("the cosine of %q with itself is %v, want 0.999", texts[i], cos)
		}
	}
}

func TestShrinkGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 1024).Draw(t, "dims")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		if normalise(v) != nil || length(v) == 0 {
			t.Skip("no vector")
		}
		small := shrink(v)
		back := grow(small)
		if cos := cosine(v, back); cos < 0.9998 {
			t.Fatalf("the cosine of a vector of %d numbers with what is kept of it is %v", dims, cos)
		}
		if again := shrink(back); !slices.Equal(again, small) {
			t.Fatalf("shrink(grow(%v)) = %v", small, again)
		}
	})
}

// Vectors that say nothing, or are none, are given on and not kept.
func TestCacheKeepsOnlyVectors(t *testing.T) {
	k := newKeeping(t)
	c := k.cache()
	for _, asked := range [][]string{{probe, "x"}, {"x"}} {
		if v := k.embeds("zeros", c, []string{"", "x"}, nil, asked...); length(v[0]) != 0 || len(v[0]) != 64 || length(v[1]) != 0 {
			t.Errorf("Embed = %v, want zeros", v)
		}
	}
}

// The same name with other weights: everything is made anew, and nothing mixes.
func TestCacheNoticesAnotherModel(t *testing.T) {
	for name, change := range map[string]func(*keeping){
		"weights": func(k *keeping) { k.weights = "other" },
		"length":  func(k *keeping) { k.dims = 96 },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeping(t)
			texts := someTexts("tool", 5)
			mustEmbed(t, k.cache(), texts)
			change(k)
			c := k.cache()
			want, err := open(t, k.cfg).Embed(t.Context(), texts)
			must(t, err)
			for range 2 {
				for i, v := range mustEmbed(t, c, texts) {
					if len(v) != k.dims || cosine(v, want[i]) < 0.999 {
						t.Fatalf("the vector of %q is not the new model's", texts[i])
					}
				}
			}
			troubled(t, c, "all vectors are made again")
			if !setAside(c) {
				t.Error("the old file is not set aside")
			}
			k.embeds("after a restart", k.cache(), texts, nil, probe)
		})
	}
}

// The length changes while a service that was down kept us from noticing.
func TestCacheNoticesAnotherLengthLater(t *testing.T) {
	k := newKeeping(t)
	texts := someTexts("tool", 5)
	mustEmbed(t, k.cache(), texts)
	k.script = []func(http.ResponseWriter, *http.Request){answer(500, "", "")}
	c := k.cache()
	if v := mustEmbed(t, c, texts); len(v[0]) != 64 || c.Dimensions() != 64 {
		t.Fatalf("with the service down: vectors of %d numbers, Dimensions() = %d, want the 64 that are kept", len(v[0]), c.Dimensions())
	}
	k.dims = 96
	for i, v := range mustEmbed(t, c, append(texts, "something new")) {
		if len(v) != 96 || c.Dimensions() != 96 {
			t.Errorf("vector %d has %d numbers, Dimensions() = %d, want 96", i, len(v), c.Dimensions())
		}
	}
}

// A service that is down takes nothing away that is kept, and is not asked
// again and again.
func TestCacheWithoutService(t *testing.T) {
	k := newKeeping(t)
	texts := someTexts("tool", 5)
	mustEmbed(t, k.cache(), texts)
	k.model = "gone"
	k.asked()
	c := k.cache()
	for range 3 {
		mustEmbed(t, c, texts)
	}
	if n, _ := k.asked(); n != 1 {
		t.Errorf("there were %d requests, want 1", n)
	}
	if _, err := c.Embed(t.Context(), []string{"new"}); err == nil {
		t.Error("Embed of a new text: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Embed(ctx, texts); !errors.Is(err, context.Canceled) {
		t.Errorf("Embed with a cancelled context: error %v, want %v", err, context.Canceled)
	}
}

// Whatever happened to the file, Embed works and the file does again.
func TestCacheBrokenFile(t *testing.T) {
	tests := []struct {
		name  string
		harm  func(t *testing.T, path string)
		asked int  // texts, of 10
		aside bool // the file is moved away
	}{
		{"removed", func(t *testing.T, path string) { _ = os.Remove(path) }, 10, false},
		{"empty", func(t *testing.T, path string) { write(t, path, nil) }, 10, false},
		{"foreign", func(t *testing.T, path string) { write(t, path, []byte("hello there")) }, 10, true},
		{"large and foreign", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello there\n"), 1<<18)) }, 10, true},
		{"only marks", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte(mark), 1<<18)) }, 10, true},
		{"torn tail", func(t *testing.T, path string) { write(t, path, read(t, path)[:11*recordSize(64)-1]) }, 1, false},
		{"bit in the middle", func(t *testing.T, path string) { flip(t, path, 3*recordSize(64)+50) }, 1, false},
		{"bit in a mark", func(t *testing.T, path string) { flip(t, path, 3*recordSize(64)) }, 1, false},
		{"bit in a length", func(t *testing.T, path string) { flip(t, path, 3*recordSize(64)+keyEnd+1) }, 1, false},
		{"bit in a length, far too long", func(t *testing.T, path string) { flip(t, path, 3*recordSize(64)+keyEnd+3) }, 1, false},
		{"bytes before", func(t *testing.T, path string) { write(t, path, append([]byte("\xffkenv"), read(t, path)...)) }, 0, false},
		{"zeros after", func(t *testing.T, path string) { write(t, path, append(read(t, path), make([]byte, 5000)...)) }, 0, false},
		{"probe lost", func(t *testing.T, path string) { flip(t, path, 50) }, 10, true},
	}
	for _, test := range tests {
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprint(test.name, " restart ", restart), func(t *testing.T) {
				k := newKeeping(t)
				texts := someTexts("tool", 10)
				c := k.cache()
				want := mustEmbed(t, c, texts) // ten records and the probe's
				test.harm(t, c.path)
				k.asked()
				if restart {
					c = k.cache()
				}
				for range 2 {
					if got := mustEmbed(t, c, texts); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
						t.Fatal("the vectors are others")
					}
				}
				_, asked := k.asked()
				asked = slices.DeleteFunc(asked, func(s string) bool { return s == probe })
				if n := len(asked); restart && n != test.asked || n > 10 {
					t.Errorf("the service was asked for %d texts, want %d", n, test.asked)
				}
				if restart && setAside(c) != test.aside {
					t.Errorf("set aside: %v, want %v", setAside(c), test.aside)
				}
				if restart {
					k.embeds("after a restart", k.cache(), texts, want, probe)
				} else if got := mustEmbed(t, k.cache(), texts); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
					t.Fatal("after a restart the vectors are others")
				}
			})
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(path, data, 0o600))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	data := read(t, path)
	data[at] ^= 0x10
	write(t, path, data)
}

// A file that is something else and cannot be moved away is left alone.
func TestCacheCannotSetAside(t *testing.T) {
	c := newKeeping(t).cache()
	must(t, os.MkdirAll(filepath.Join(c.path+asideSuffix, "in the way"), 0o700))
	const precious = "somebody's diary"
	write(t, c.path, []byte(precious))
	for range 2 {
		if v := mustEmbed(t, c, someTexts("x", 3)); len(v) != 3 {
			t.Errorf("Embed gives %d vectors, want 3", len(v))
		}
	}
	if got := read(t, c.path); string(got) != precious {
		t.Errorf("the file holds %q, want %q", got, precious)
	}
	troubled(t, c, "it cannot be moved away")
}

// A place that cannot be used costs speed, and Trouble says what to do.
func TestCacheWithoutPlace(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() < 0 {
		t.Skip("cannot here: the modes of files mean something else")
	}
	s := newService()
	e := open(t, s.serve(t))
	tests := []struct {
		name, want string
		make       func(c *Cache) error
	}{
		{"link", "not a regular file (L", func(c *Cache) error { return os.Symlink("/dev/null", c.path) }},
		{"directory", "not a regular file (d", func(c *Cache) error { return os.Mkdir(c.path, 0o700) }},
		{"pipe", "not a regular file (p", func(c *Cache) error { return exec.Command("mkfifo", c.path).Run() }},
		{"open to others", "run chmod go-w", func(c *Cache) error { return os.Chmod(c.dir, 0o777) }},
		{"a file", "not a directory", func(c *Cache) error {
			return errors.Join(os.Remove(c.dir), os.WriteFile(c.dir, nil, 0o600))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := NewCache(e, filepath.Join(t.TempDir(), "cache"))
			must(t, errors.Join(os.Mkdir(c.dir, 0o700), test.make(c)))
			for range 2 {
				if v := mustEmbed(t, c, []string{"hello", "there"}); len(v) != 2 || len(v[0]) != 64 {
					t.Errorf("Embed = %v, want 2 vectors", v)
				}
			}
			troubled(t, c, test.want)
			troubled(t, c, c.path)
		})
	}
}

func TestCacheIsFull(t *testing.T) {
	k := newKeeping(t)
	c := k.cache()
	c.limit = int64(4 * recordSize(64))
	some, more := someTexts("some", 3), someTexts("more", 3)
	k.embeds("some", c, some, nil, append(some, probe)...)
	troubled(t, c, "")
	for range 2 {
		k.embeds("more", c, more, nil, more...)
	}
	if info, err := os.Stat(c.path); err != nil || info.Size() != c.limit {
		t.Errorf("the file has %v bytes, %v, want %d", info.Size(), err, c.limit)
	}
	troubled(t, c, "new vectors are not kept")
}

// A broken embedder is told so.
func TestCacheOverBrokenEmbedder(t *testing.T) {
	c := NewCache(few{open(t, newService().serve(t))}, t.TempDir())
	if _, err := c.Embed(t.Context(), someTexts("x", 3)); err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("Embed: error %v, want one that says that the embedder is broken", err)
	}
}

// few forgets a text.
type few struct{ *Embedder }

func (f few) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return f.Embedder.Embed(ctx, texts[1:])
}

// Many caches over one file, as processes have them: nothing is lost or mixed.
func TestCachesShareAFile(t *testing.T) {
	k := newKeeping(t)
	e := open(t, k.cfg)
	var group sync.WaitGroup
	for g := range 6 {
		group.Go(func() {
			c := NewCache(e, k.dir)
			for i := range 10 {
				texts := append(someTexts(fmt.Sprint("own ", g, " ", i), 5), someTexts(fmt.Sprint("common ", i), 5)...)
				vectors, err := c.Embed(t.Context(), texts)
				if err != nil || c.Trouble() != nil {
					t.Errorf("Embed: %v, Trouble() = %v", err, c.Trouble())
					return
				}
				exact, err := e.Embed(t.Context(), texts)
				if err != nil {
					t.Error(err)
					return
				}
				for j, v := range vectors {
					if cosine(v, exact[j]) < 0.999 {
						t.Errorf("the vector of %q is another's", texts[j])
					}
				}
			}
		})
	}
	group.Wait()
	c, all := k.cache(), []string{}
	for g := range 6 {
		for i := range 10 {
			all = append(append(all, someTexts(fmt.Sprint("own ", g, " ", i), 5)...), someTexts(fmt.Sprint("common ", i), 5)...)
		}
	}
	k.embeds("afterwards", c, all, nil, probe)
	if c.scan.torn != 0 {
		t.Errorf("%d places of the file are torn, want none", c.scan.torn)
	}
}

// Two models in one directory have two files.
func TestCachePerModel(t *testing.T) {
	k := newKeeping(t)
	a := k.cache()
	mustEmbed(t, a, []string{"hello"})
	k.cfg = k.serve(t) // the same model elsewhere
	b := k.cache()
	k.embeds("the other", b, []string{"hello"}, nil, "hello", probe)
	if a.path == b.path || a.Model() == b.Model() {
		t.Errorf("models %q and %q have the files %s and %s", a.Model(), b.Model(), a.path, b.path)
	}
}

// Whatever a file holds, reading it finds only whole records, however it is
// cut into reads, and what is appended is found.
func FuzzScan(f *testing.F) {
	one := appendRecord(nil, keyOf("m", "one"), []int8{1, -2, 127})
	two := appendRecord(nil, keyOf("m", "two"), []int8{-127, 0})
	f.Add(slices.Concat(one, two), 10)
	f.Add(slices.Concat(one, two[:20], two, []byte(mark)), 60)
	f.Add(slices.Concat([]byte("\xffkenve"), one, []byte("\xffken")), 3)
	f.Add([]byte("hello"), 2)
	f.Fuzz(func(t *testing.T, data []byte, cutAt int) {
		whole := scan{places: map[textKey]place{}}
		must(t, whole.read(bytes.NewReader(data), int64(len(data))))
		for key, at := range whole.places {
			got, small, _, ok := readRecord(data[at.offset:])
			if !ok || got != key || len(small) != int(at.dims) {
				t.Fatalf("scan of %q has a record at %d that is none", data, at.offset)
			}
			if v := grow(small); len(v) != int(at.dims) || length(v) > 1.001 {
				t.Fatalf("grow(%v) = %v", small, v)
			}
		}
		if whole.next > int64(len(data)) || !whole.broken() && whole.next+int64(recordSize(maxDimensions)) < int64(len(data)) {
			t.Fatalf("scan of %d bytes ends at %d", len(data), whole.next)
		}
		// Seen while it grows, and then with more behind it.
		grown := append(slices.Clone(data), appendRecord(nil, keyOf("m", "last"), []int8{5})...)
		parts := scan{places: map[textKey]place{}}
		for _, size := range []int{max(0, min(cutAt, len(data))), len(data), len(grown)} {
			must(t, parts.read(bytes.NewReader(grown), int64(size)))
		}
		if parts.broken() {
			return
		}
		for key, at := range whole.places {
			if _, ok := parts.places[key]; !ok {
				t.Fatalf("scan of %q in parts at %d misses the record at %d", data, cutAt, at.offset)
			}
		}
	})
}
