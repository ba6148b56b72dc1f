package index

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"fmt"

	"ken/capability"
)

func TestZZQuality(t *testing.T) {
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip()
	}
	for _, name := range []string{"dev/acebench-en", "dev/bfcl-multiturn", "dev/restbench", "train/metatool", "train/sealtools", "train/apibank"} {
		var caps []*capability.Capability
		for _, r := range readRows(t, filepath.Join(dir, name, "corpus.jsonl")) {
			caps = append(caps, &capability.Capability{ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters})
		}
		v := NewView(Part{Segment: Build(caps)})
		var sum, fit, score float64
		rows := readRows(t, filepath.Join(dir, name, "queries.jsonl"))
		for _, q := range rows {
			a := v.Search(Query{Text: q.Query}, 10, nil)
			fit += a.Fit
			dcg, ideal := 0.0, 0.0
			for i, h := range a.Hits[:min(5, len(a.Hits))] {
				score += h.Score
				for _, g := range q.Gold {
					if string(caps[h.Slot].ID) == g {
						dcg += 1 / math.Log2(float64(i+2))
					}
				}
			}
			for i := range min(5, len(q.Gold)) {
				ideal += 1 / math.Log2(float64(i+2))
			}
			if ideal > 0 {
				sum += dcg / ideal
			}
		}
		fmt.Printf("%-20s %5d ndcg %.4f fit %.5f score %.5f\n", name, len(rows), sum/float64(len(rows)), fit/float64(len(rows)), score/float64(len(rows)))
	}
}
