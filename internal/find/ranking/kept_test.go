package ranking

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// asks are messages that use all that a segment has.
var asks = []string{
	"search flights to Oslo", "tool:send_email", "flight-finder", "reads " + indextest.Word(9), "天気 12", indextest.Word(30) + "-ALIAS", "thumbnail dimensions", "gauge",
}

func answers(s *index.Segment) string {
	v := NewView(Part{Segment: s})
	var b strings.Builder
	for _, text := range asks {
		answer := v.Search(Query{Text: text}, 20, nil)
		answer.Embedding = 0
		fmt.Fprintf(&b, "%s: %+v\n", text, answer)
	}
	return b.String()
}

// TestKeptSegmentAnswersTheSame: a segment out of the cache answers like the one
// that was made, with and without vectors, and once it is changed.
func TestKeptSegmentAnswersTheSame(t *testing.T) {
	list := slices.Concat(indextest.Desk(), indextest.Many(400), []*capability.Capability{indextest.Tool("天気", "明日の天気を調べる")})
	for _, c := range []*index.Cache{{Name: "words"}, {Name: "vectors", Model: indextest.Builtin(t)}} {
		c.Dir = filepath.Join(t.TempDir(), "cache")
		made := index.BuildWith(c.Model, list)
		c.Build(list)
		again := c.Build(list)
		if got, want := answers(again), answers(made); got != want {
			t.Errorf("%s: the segment that was kept answers\n%s, want\n%s", c.Name, got, want)
		}
		change := func(s *index.Segment) string {
			s, _ = s.Change([]*capability.Capability{indextest.Tool("gauge", "reads a gauge "+indextest.Word(9))}, []int{0, 9, 200})
			return answers(s)
		}
		if got, want := change(again), change(made); got != want {
			t.Errorf("%s: once changed, the segment that was kept answers\n%s, want\n%s", c.Name, got, want)
		}
	}
}

// TestNearSegmentAnswersTheSame: so does a segment out of one that was kept for
// nearly the same capabilities.
func TestNearSegmentAnswersTheSame(t *testing.T) {
	list := slices.Concat(indextest.Desk(), indextest.Many(400), []*capability.Capability{indextest.Tool("天気", "明日の天気を調べる")})
	for _, c := range []*index.Cache{{Name: "words"}, {Name: "vectors", Model: indextest.Builtin(t)}} {
		c.Dir = filepath.Join(t.TempDir(), "cache")
		c.Build(list)
		now := slices.Concat([]*capability.Capability{indextest.Tool("gauge", "reads a gauge "+indextest.Word(9))}, list[1:30], list[33:])
		if got, want := answers(c.Build(now)), answers(index.BuildWith(c.Model, now)); got != want {
			t.Errorf("%s: the segment out of a kept one answers\n%s, want\n%s", c.Name, got, want)
		}
	}
}
