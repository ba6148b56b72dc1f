package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/internal/store"
)

// limits: what no store takes is refused, with the mend, and not written.
func limits(t *testing.T, s *store.Store) {
	ctx := context.Background()
	long := strings.Repeat("k", store.MaxKey)
	big := make([]byte, store.MaxValue)
	many := func(n int) (b store.Batch) {
		for i := range n {
			b.Put(fmt.Sprintf("many/%d", i), nil)
		}
		return b
	}
	build := func(f func(b *store.Batch)) (b store.Batch) { f(&b); return b }
	for _, test := range []struct {
		name  string
		batch store.Batch
		want  string // "": it is taken
	}{
		{"longest key", build(func(b *store.Batch) { b.Put(long, nil) }), ""},
		{"largest value", build(func(b *store.Batch) { b.Put("big", big) }), ""},
		{"most writes", many(store.MaxWrites), ""},
		{"largest batch", build(func(b *store.Batch) { b.Put("x", big); b.Put("y", big[2:]) }), ""},
		{"key too long", build(func(b *store.Batch) { b.Put(long+"k", nil) }), "digest"},
		{"value too large", build(func(b *store.Batch) { b.Put("big", append(big, 0)) }), "in a file"},
		{"too many writes", many(store.MaxWrites + 1), "split it"},
		{"batch too large", build(func(b *store.Batch) { b.Put("x", big); b.Put("y", big) }), "split it"},
		{"no key", build(func(b *store.Batch) { b.Put("", nil) }), "store.Key"},
		{"space", build(func(b *store.Batch) { b.Put("a b", nil) }), "store.Key"},
		{"zero", build(func(b *store.Batch) { b.Absent("a\x00b") }), "store.Key"},
		{"not ASCII", build(func(b *store.Batch) { b.Delete("ä") }), "store.Key"},
		{"empty part", build(func(b *store.Batch) { b.Put("a//b", nil) }), "fill every part"},
		{"slash first", build(func(b *store.Batch) { b.Put("/a", nil) }), "fill every part"},
		{"slash last", build(func(b *store.Batch) { b.At("a/", 1) }), "fill every part"},
		{"written twice", build(func(b *store.Batch) { b.Put("a", nil); b.Delete("a") }), "keep one"},
		{"asked twice", build(func(b *store.Batch) { b.Absent("a"); b.At("a", 1) }), "keep one"},
		{"version", build(func(b *store.Batch) { b.At("a", -1) }), "version that Get"},
		{"no time", build(func(b *store.Batch) { b.PutFor("a", nil, 0) }), "use Put"},
		{"time past", build(func(b *store.Batch) { b.PutFor("a", nil, -time.Second) }), "use Put"},
		{"too short", build(func(b *store.Batch) { b.PutFor("a", nil, time.Nanosecond) }), "use Put"},
		{"too late", build(func(b *store.Batch) { b.PutFor("a", nil, 1<<63-1) }), "use Put"},
	} {
		_, err := s.Apply(ctx, &test.batch)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: Apply = %v", test.name, err)
		case test.want != "" && (!errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: Apply = %v, want a refusal with %q", test.name, err, test.want)
		}
	}
	if item, ok, err := s.Get(ctx, "big"); err != nil || !ok || len(item.Value) != store.MaxValue {
		t.Errorf("Get(big) = %d bytes, %v, %v", len(item.Value), ok, err)
	}
	if _, ok, err := s.Get(ctx, "a"); ok || err != nil {
		t.Errorf("Get(a) = %v, %v after refusals", ok, err)
	}
	if _, _, err := s.Get(ctx, "a b"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Get(a b) = %v, want %v", err, store.ErrInvalid)
	}
	for _, err := range s.Scan(ctx, "a b", store.Range{}) {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Scan(a b) = %v, want %v", err, store.ErrInvalid)
		}
	}
	for _, err := range s.Watch(ctx, "", -2) {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Watch after -2 = %v, want %v", err, store.ErrInvalid)
		}
	}
}

// every calls each method once and returns their errors.
func every(ctx context.Context, s *store.Store) map[string]error {
	errs := map[string]error{}
	_, _, errs["Get"] = s.Get(ctx, "k")
	var b store.Batch
	b.Put("k", nil)
	_, errs["Apply"] = s.Apply(ctx, &b)
	errs["Scan"], errs["Watch"] = nil, nil
	for _, err := range s.Scan(ctx, "", store.Range{}) {
		errs["Scan"] = err
	}
	for _, err := range s.Watch(ctx, "", 0) {
		errs["Watch"] = err
	}
	return errs
}

// ends: a context that has ended stops everything, and one that ends stops a
// watch.
func ends(t *testing.T, s *store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, err := range every(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v, want %v", name, err, context.Canceled)
		}
	}
	if _, ok, err := s.Get(context.Background(), "k"); ok || err != nil {
		t.Errorf("Get = %v, %v after an Apply whose context had ended", ok, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	watching := s.Watch(ctx, "", store.FromNow)
	time.AfterFunc(10*time.Millisecond, cancel)
	for _, err := range watching {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v, want %v", err, context.Canceled)
		}
	}
	// Stopping early is no error, for either.
	if _, err := (local{s}).apply(put("k/1", ""), put("k/2", "")); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Scan(context.Background(), "k/", store.Range{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, err := range s.Watch(context.Background(), "k/", 0) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

// closed: a store that was closed says so, also to those who wait on it.
func closed(t *testing.T, s *store.Store) {
	watched := make(chan error)
	watching := s.Watch(context.Background(), "", store.FromNow)
	go func() {
		for _, err := range watching {
			watched <- err
		}
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Watch = %v, want %v", err, store.ErrClosed)
	}
	for name, err := range every(context.Background(), s) {
		if !errors.Is(err, store.ErrClosed) || !strings.Contains(err.Error(), "open it again") {
			t.Errorf("%s = %v, want %v", name, err, store.ErrClosed)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close = %v", err)
	}
}
