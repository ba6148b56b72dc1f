package vectors

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/know/catalog"
	"ken/internal/know/reader"
	"ken/internal/know/source"
	"ken/internal/testkit"
)

// TestNew: what ken.yaml says about embedding is checked before anything is sent.
func TestNew(t *testing.T) {
	env := map[string]string{"KEY": "secret"}
	tests := []struct {
		name string
		set  func(*config.Discovery)
		err  string
		has  bool // an embedder besides the model inside
		own  bool // the model inside
	}{
		{"nothing", func(*config.Discovery) {}, "", false, true},
		{"none", func(d *config.Discovery) { d.EmbeddingModelID = "none" }, "", false, false},
		{"None", func(d *config.Discovery) { d.EmbeddingModelID = " None" }, "write none", false, false},
		{"an address alone", func(d *config.Discovery) { d.EmbeddingURL = "http://127.0.0.1:1/v1" }, "discovery.embeddingModelId", false, false},
		{"a model alone", func(d *config.Discovery) { d.EmbeddingModelID = "m" }, "discovery.embeddingUrl", false, false},
		{"both", func(d *config.Discovery) { d.EmbeddingModelID, d.EmbeddingURL = "m", "http://127.0.0.1:1/v1" }, "", true, true},
		{"a key", func(d *config.Discovery) {
			d.EmbeddingModelID, d.EmbeddingURL, d.EmbeddingKeyEnv = "m", "http://127.0.0.1:1/v1", "KEY"
		}, "", true, true},
		{"no key", func(d *config.Discovery) {
			d.EmbeddingModelID, d.EmbeddingURL, d.EmbeddingKeyEnv = "m", "http://127.0.0.1:1/v1", "OTHER"
		}, "OTHER, which is empty", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var start config.Config
			tt.set(&start.Discovery)
			k, err := New(Config{
				Start: start, Dir: t.TempDir(), Getenv: func(name string) string { return env[name] },
				OnClose: func(end func() error) { t.Cleanup(func() { end() }) },
			})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("New = %v, want an error with %q", err, tt.err)
			}
			if err == nil && ((k.Embedder() != nil) != tt.has || (k.Index() != nil) != tt.own || k.Local()) {
				t.Errorf("embedder %v, model inside %v, local %v", k.Embedder(), k.Index(), k.Local())
			}
		})
	}
}

// TestClose: an Embed that goes on after Ken has closed writes no file.
func TestClose(t *testing.T) {
	if !reader.Supported() {
		t.Skip("cannot here: this processor cannot run the second reader")
	}
	dir := filepath.Join(t.TempDir(), "vectors")
	var ends []func() error
	start := config.Config{Discovery: config.Discovery{Reader: config.ReaderAuto}}
	k := testkit.Must(New(Config{Start: start, Dir: dir, OnClose: func(end func() error) { ends = append(ends, end) }}))(t)
	for _, end := range ends {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if v, err := k.capabilities.Embed(t.Context(), []string{"send a postcard"}); err != nil || len(v) != 1 {
		t.Errorf("Embed = %d vectors, %v", len(v), err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat %s = %v, want that it does not exist", dir, err)
	}
}

// TestRest: the models rest once no message was read for a while.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(rest)
		r.later()
		time.Sleep(restAfter - time.Second)
		r.later()
		time.Sleep(restAfter - time.Second)
		if !r.timer.Stop() {
			t.Error("the models rest although a message was read meanwhile")
		}
		r.later()
		time.Sleep(restAfter + time.Second)
		if r.timer.Stop() {
			t.Errorf("the models do not rest %v after the last message", restAfter)
		}
		r.later()
		if err := r.stop(); err != nil || r.timer.Stop() {
			t.Errorf("stop = %v, and the wait goes on", err)
		}
	})
}

// TestGiveWay: after a search no capability is begun for a while, and searches that
// never stop do not keep capabilities from being read.
func TestGiveWay(t *testing.T) {
	if !reader.Supported() {
		t.Skip("cannot here: this processor cannot run the second reader")
	}
	synctest.Test(t, func(t *testing.T) {
		var k Keeper
		low := lowReader{asked: &k.asked}
		took := func() time.Duration {
			began := time.Now()
			got, err := low.Embed(t.Context(), []string{"send an email", "list files", "read a page"})
			if err != nil || len(got) != 3 || len(got[2]) != low.Dimensions() {
				t.Fatalf("Embed = %d vectors, %v", len(got), err)
			}
			return time.Since(began)
		}
		if d := took(); d != 0 {
			t.Errorf("without a search capabilities wait %v, want no wait", d)
		}
		k.Searching()
		if d := took(); d != giveWay {
			t.Errorf("after a search capabilities wait %v, want %v", d, giveWay)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				k.Searching()
				time.Sleep(giveWay / 4)
			}
		}()
		time.Sleep(time.Nanosecond)
		if d := took(); d > 3*giveWay {
			t.Errorf("three capabilities take %v while searches never stop, want at most %v", d, 3*giveWay)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := low.Embed(gone, []string{"send an email"}); !errors.Is(err, context.Canceled) {
			t.Errorf("Embed with a context that has ended: %v", err)
		}
		stop()
		time.Sleep(giveWay)
	})
}

// flaky is an embedder that fails until it is repaired.
type flaky struct {
	broken atomic.Bool
	asked  atomic.Int32
}

func (*flaky) Model() string   { return "flaky" }
func (*flaky) Dimensions() int { return 2 }

func (f *flaky) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.asked.Add(1)
	if f.broken.Load() {
		return nil, errors.New("no service")
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = []float32{1, 0}
	}
	return out, nil
}

// TestKeep: vectors are asked for at the first search and not before, and an
// embedder that failed is asked again after a while.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := source.NewMemory("test", capability.TrustUser)
		m.Put(capability.Capability{Name: "weather", Description: "Weather forecast"}, capability.Detail{})
		c := testkit.Must(catalog.New(catalog.Config{Sources: []capability.Source{m}}))(t)
		testkit.OK(t, c.Load(t.Context()))
		e := &flaky{}
		e.broken.Store(true)
		var end func() error
		k := testkit.Must(New(Config{Given: e, Catalog: func() *catalog.Catalog { return c }, OnClose: func(f func() error) { end = f }}))(t)
		if k.Index() == nil || e.asked.Load() != 0 {
			t.Errorf("New asked %d times; model inside %v", e.asked.Load(), k.Index())
		}
		k.Wait(t.Context()) // returns though it failed
		synctest.Wait()
		if e.asked.Load() == 0 {
			t.Error("Wait did not ask for vectors")
		}
		if _, err := k.Check(t.Context()); err == nil {
			t.Error("Check of a broken embedder reports nothing")
		}
		before := e.asked.Load()
		e.broken.Store(false)
		time.Sleep(embedAgain - time.Second)
		synctest.Wait()
		if e.asked.Load() != before {
			t.Error("a broken embedder is asked again at once")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if e.asked.Load() == before {
			t.Error("a broken embedder is not asked again")
		}
		if name, err := k.Check(t.Context()); name != "flaky" || err != nil {
			t.Errorf("Check = %q, %v", name, err)
		}
		if end == nil {
			t.Fatal("nothing ends the work")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
