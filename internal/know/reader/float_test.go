package reader

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ken/internal/know/embed"
)

var floats = flag.String("floats", "", "`folder` of vectors-full.i8 and texts.jsonl, which training/reader.py writes")

// TestNearFloat compares the vectors of the dev sets with those that training
// computed in floating point.
func TestNearFloat(t *testing.T) {
	if *floats == "" {
		t.Skip("soak: -floats, the folder of the vectors of training, is not set")
	}
	data, err := os.ReadFile(filepath.Join(*floats, "vectors-full.i8"))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Set, ID, Query              string
		Name, Description, Category string
		Parameters                  []struct{ Name string }
	}
	read := func(path string) (out []row) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var r row
			_ = json.Unmarshal(lines.Bytes(), &r)
			out = append(out, r)
		}
		return out
	}
	m := Builtin()
	const dims, size = 384, 388
	sum, n, worst := 0.0, 0, 1.0
	docs := map[string]row{}
	for _, set := range []string{"acebench-en", "restbench", "bfcl-multiturn"} {
		for _, r := range read(filepath.Join(os.Getenv("KEN_BENCH"), "dev", set, "corpus.jsonl")) {
			docs[set+r.ID] = r
		}
	}
	for i, r := range read(filepath.Join(*floats, "texts.jsonl")) {
		d, known := docs[r.Set+r.ID]
		if r.Query == "" && !known || r.Query != "" && r.Set != "restbench" && r.Set != "acebench-en" {
			continue
		}
		text := r.Query
		if text == "" {
			doc := embed.Document{Name: d.Name, Description: d.Description, Category: d.Category}
			for _, p := range d.Parameters {
				doc.Parameters = append(doc.Parameters, p.Name)
			}
			text = doc.Text()
		}
		want := make([]float32, dims)
		for j := range want {
			want[j] = float32(int8(data[i*size+j])) * math.Float32frombits(binary.LittleEndian.Uint32(data[i*size+dims:]))
		}
		got := dot(m.Append(nil, text), want) / math.Sqrt(dot(want, want))
		sum += got
		n++
		if got < worst {
			worst = got
			t.Logf("%.4f %q", got, text)
		}
		if n == 600 {
			break
		}
	}
	t.Logf("%d texts: mean cosine %.5f, least %.4f", n, sum/float64(n), worst)
}
