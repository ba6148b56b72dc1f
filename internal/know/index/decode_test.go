package index_test

import (
	"testing"

	"ken/internal/find/ranking"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// FuzzDecode: no file, even one with the right sum, does harm.
func FuzzDecode(f *testing.F) {
	list := indextest.Many(9)[5:]
	f.Add(index.EncodeBody(list))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Add(index.EncodeBody(nil))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, ok := index.DecodeBody(body, list)
		if !ok {
			return
		}
		v := ranking.NewView(ranking.Part{Segment: s})
		asks := []string{"search flights to Oslo", "tool:send_email", "flight-finder", "reads " + indextest.Word(9), "天気 12", "thumbnail dimensions", "gauge"}
		for _, text := range asks {
			v.Search(ranking.Query{Text: text}, 5, nil)
		}
		s, _ = s.Change(list[:1], []int{0, 3})
		ranking.NewView(ranking.Part{Segment: s}).Search(ranking.Query{Text: asks[0]}, 5, nil)
	})
}
