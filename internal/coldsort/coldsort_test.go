package coldsort

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type item struct {
	name  string
	place int
}

func TestSort(t *testing.T) {
	names := func(a, b item) int { return strings.Compare(a.name, b.name) }
	for n := range 200 {
		list := make([]item, n)
		for i := range list {
			list[i] = item{string(rune('a' + rand.IntN(20))), i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, names)
		got := slices.Clone(list)
		if Stable(got, names); !slices.Equal(got, want) {
			t.Fatalf("Stable sorts %v as %v, want %v", list, got, want)
		}
		if By(list, names); !slices.IsSortedFunc(list, names) {
			t.Fatalf("By leaves %v", list)
		}
	}
}
