package vectors

import (
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/know/reader"
	"ken/internal/testkit/indextest"
)

var write = flag.String("write", "", "`folder` of texts.jsonl, which training/reader.py writes: the second reader's vectors of these go to vectors-go.i8 there")

// TestWriteVectors writes the vectors that the program makes of the texts of
// training, in the form that training/reader.py writes its own in: 384 bytes and
// a scale each. It is a tool: TestReaderInGo of package ranking compares the
// two.
func TestWriteVectors(t *testing.T) {
	if *write == "" {
		t.Skip("soak: writes vectors; run with -write")
	}
	if !reader.Supported() {
		t.Fatal("there are no kernels for this processor")
	}
	bench := os.Getenv("KEN_BENCH")
	docs := map[string]*capability.Capability{}
	files, err := filepath.Glob(filepath.Join(bench, "*", "*", "corpus.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("KEN_BENCH %q holds no sets: %v", bench, err)
	}
	for _, file := range files {
		if filepath.Base(filepath.Dir(filepath.Dir(file))) == "catalog" {
			continue // no messages are asked of these
		}
		for _, r := range indextest.ReadRows(t, file) {
			docs[filepath.Base(filepath.Dir(file))+"\x00"+r.ID] = &capability.Capability{
				ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
			}
		}
	}
	rows := indextest.ReadRows(t, filepath.Join(*write, "texts.jsonl"))
	r := secondReader{}
	const size = 384 + 4
	out := make([]byte, len(rows)*size)
	one := func(i int) {
		text, embedder := rows[i].Query, r.Embed
		if text != "" {
			embedder = messageReader{r, new(rest)}.Embed
		} else if c := docs[rows[i].Set+"\x00"+rows[i].ID]; c != nil {
			text = capabilityReader{}.DocumentText(c)
		} else {
			t.Errorf("no capability %s in %s", rows[i].ID, rows[i].Set)
			return
		}
		vectors, err := embedder(t.Context(), []string{text})
		if err != nil {
			t.Error(err)
			return
		}
		into := make([]int8, 384)
		scale := index.Shrink(vectors[0], into)
		at := out[i*size:]
		for k, x := range into {
			at[k] = byte(x)
		}
		binary.LittleEndian.PutUint32(at[384:], math.Float32bits(scale))
	}
	var group sync.WaitGroup
	next := make(chan []int)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for list := range next {
				for _, i := range list {
					one(i)
				}
			}
		})
	}
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	for list := range slices.Chunk(all, 64) {
		next <- list
	}
	close(next)
	group.Wait()
	if err := os.WriteFile(filepath.Join(*write, "vectors-go.i8"), out, 0o644); err != nil {
		t.Fatal(err)
	}
}
