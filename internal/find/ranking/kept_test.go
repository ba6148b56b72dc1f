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
// that was made, with and without vectors, and once it is changed; and so does one
// out of a segment that was kept for nearly the same capabilities.
func TestKeptSegmentAnswersTheSame(t *testing.T) {
	list := slices.Concat(indextest.Desk(), indextest.Many(400), []*capability.Capability{indextest.Tool("天気", "明日の天気を調べる")})
	gauge := []*capability.Capability{indextest.Tool("gauge", "reads a gauge "+indextest.Word(9))}
	nearly := slices.Concat(gauge, list[1:30], list[33:])
	for _, c := range []*index.Cache{{Name: "words"}, {Name: "vectors", Model: indextest.Builtin(t)}} {
		c.Dir = filepath.Join(t.TempDir(), "cache")
		same := func(what string, got, want *index.Segment) {
			t.Helper()
			if got, want := answers(got), answers(want); got != want {
				t.Errorf("%s: the segment %s answers\n%s, want\n%s", c.Name, what, got, want)
			}
		}
		c.Build(list)
		kept, made := c.Build(list), index.BuildWith(c.Model, list)
		same("that was kept", kept, made)
		kept, _ = kept.Change(gauge, []int{0, 9, 200})
		made, _ = made.Change(gauge, []int{0, 9, 200})
		same("that was kept, once changed,", kept, made)
		same("out of one that was kept", c.Build(nearly), index.BuildWith(c.Model, nearly))
	}
}
