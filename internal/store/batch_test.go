package store

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestDecide: batches that share a transaction come out as if each had its
// own.
func TestDecide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := []string{"a", "b", "c"}
		have := map[string]int64{}
		for i, key := range keys {
			if rapid.Bool().Draw(rt, "there") {
				have[key] = int64(i + 1)
			}
		}
		var together, alone []*request
		for range rapid.IntRange(1, 6).Draw(rt, "batches") {
			b := drawBatch(rt, keys)
			gaveUp := rapid.IntRange(0, 4).Draw(rt, "state") == 0
			for _, list := range []*[]*request{&together, &alone} {
				r := &request{batch: b}
				if gaveUp {
					r.state.Store(withdrawn)
				}
				*list = append(*list, r)
			}
		}
		run := func(groups ...[]*request) (store map[string]string, head int64) {
			store, head = map[string]string{}, 3
			versions := maps.Clone(have)
			for key, v := range have {
				store[key] = fmt.Sprint("old@", v)
			}
			for _, requests := range groups {
				g := &group{requests: requests}
				known := map[string]int64{} // only what a database would look up
				for _, key := range g.keys() {
					if v, ok := versions[key]; ok {
						known[key] = v
					}
				}
				g.decide(head, maps.Clone(known), nil)
				g.decide(head, known, nil) // the transaction was made again
				for _, w := range g.writes {
					store[w.key], versions[w.key] = fmt.Sprintf("%s@%d", w.value, w.version), w.version
					if w.drop {
						delete(store, w.key)
						delete(versions, w.key)
					}
				}
				head = g.head
			}
			return store, head
		}
		gotStore, gotHead := run(together)
		var groups [][]*request
		for _, r := range alone {
			groups = append(groups, []*request{r})
		}
		wantStore, wantHead := run(groups...)
		if !maps.Equal(gotStore, wantStore) || gotHead != wantHead {
			rt.Fatalf("together %v at %d, alone %v at %d", gotStore, gotHead, wantStore, wantHead)
		}
		for i := range together {
			if fmt.Sprint(together[i].err) != fmt.Sprint(alone[i].err) || together[i].version != alone[i].version {
				rt.Fatalf("batch %d together = %d, %v; alone %d, %v", i, together[i].version, together[i].err, alone[i].version, alone[i].err)
			}
		}
	})
}

func drawBatch(rt *rapid.T, keys []string) *Batch {
	var b Batch
	for _, key := range keys {
		switch rapid.IntRange(0, 5).Draw(rt, "want") {
		case 0:
			b.Absent(key)
		case 1:
			b.At(key, rapid.Int64Range(1, 6).Draw(rt, "version"))
		}
		switch rapid.IntRange(0, 3).Draw(rt, "write") {
		case 0:
			b.Put(key, []byte(rapid.StringMatching("[a-z]{1,3}").Draw(rt, "value")))
		case 1:
			b.Delete(key)
		}
	}
	return &b
}
