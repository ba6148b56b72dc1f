package remote

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestParseAnswer(t *testing.T) {
	one := func(embedding string) string { return `{"data":[{"index":0,"embedding":` + embedding + `}]}` }
	tests := []struct {
		in   string
		n    int
		want string // the vectors, or what is in the error
	}{
		{one(`[3,4]`), 1, "[[0.6 0.8]]"},
		{one(" [ 3e0 ,\n\t4.0 ] "), 1, "[[0.6 0.8]]"},
		{one(`[3e-40,4e-40]`), 1, "[[0.6 0.8]]"}, // as good as they can be
		{one(`[3e38,0]`), 1, "[[1 0]]"},
		{one(`[0,0]`), 1, "[[0 0]]"},
		{`{"data":[{"embedding":[1]}]}`, 1, "[[1]]"},
		{`{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}`, 2, "[[1 0] [0 1]]"},
		{`{"data":[]}`, 0, "[]"},
		{`{"data":[{"embedding":[1]},{"embedding":[2]}]}`, 2, "an index is missing"},
		{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`, 2, "index 0, repeated"},
		{`{"data":[{"index":2,"embedding":[1]},{"index":0,"embedding":[2]}]}`, 2, "index 2"},
		{`{"data":[{"index":-1,"embedding":[1]}]}`, 1, "index -1"},
		{`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, 2, "of 1 and of 2 numbers"},
		{one(`[1e39]`), 1, "not a list"},
		{one(`[1,null]`), 1, "not a list"},
		{one(`[]`), 1, "not a list"},
		{one(`["1"]`), 1, "not a list"},
		{one(`[[1],[2]]`), 1, "not a list"},
		{one(`{"a":1}`), 1, "not a list"},
		{one(`null`), 1, "not a list"},
		{one(`"AAAA"`), 1, "not a list"},
		{one(`[NaN]`), 1, "not the JSON"},
		{one(`[` + strings.Repeat("1,", maxDimensions) + `1]`), 1, "not a list of 1 to 16384"},
		{one(`[1]`) + "x", 1, "not the JSON"},
		{one(`[1]`), 2, "1 vectors for 2 texts"},
		{``, 1, "not the JSON"},
		{`[]`, 1, "not the JSON"},
	}
	for _, test := range tests {
		v, err := parseAnswer([]byte(test.in), test.n)
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if strings.HasPrefix(test.want, "[") && test.in != one(`[3e-40,4e-40]`) && got != test.want || !strings.HasPrefix(test.want, "[") && !strings.Contains(got, test.want) {
			t.Errorf("parseAnswer(%.80s, %d) = %.200s, want %s", test.in, test.n, got, test.want)
		}
		if err == nil {
			for _, vector := range v {
				if n := length(vector); n != 0 && math.Abs(n-1) > 1e-5 {
					t.Errorf("parseAnswer(%.80s) has a vector of length %v", test.in, n)
				}
			}
		}
	}
}

func length(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// What is taken for an answer is one, and means what encoding/json reads in it.
func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[0,1.5e-3]},{"index":0,"embedding":[1, -2]}]}`), 2)
	f.Add([]byte(`{"data":[{"embedding":[null,1e38,3e38]}]}`), 1)
	f.Add([]byte(`{"data":[{"index":0,"embedding":"AACAPw=="}]}`), 1)
	f.Add([]byte(`{"object":"list","data":[],"model":"m","usage":{"total_tokens":0}}`), 0)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = max(0, min(n, 1000))
		vectors, err := parseAnswer(data, n)
		if err != nil {
			return
		}
		if len(vectors) != n {
			t.Fatalf("parseAnswer(%q, %d) gives %d vectors", data, n, len(vectors))
		}
		var plain struct {
			Data []struct {
				Index     int
				Embedding []float64
			}
		}
		if err := json.Unmarshal(data, &plain); err != nil {
			t.Fatalf("parseAnswer(%q, %d) reads what encoding/json does not: %v", data, n, err)
		}
		for _, d := range plain.Data {
			v := vectors[d.Index]
			if len(v) != len(d.Embedding) || len(v) == 0 || len(v) != len(vectors[0]) {
				t.Fatalf("parseAnswer(%q, %d): vector %d has %d numbers, want %d", data, n, d.Index, len(v), len(d.Embedding))
			}
			if got := length(v); math.IsNaN(got) || got != 0 && math.Abs(got-1) > 1e-3 {
				t.Fatalf("parseAnswer(%q, %d): vector %d has the length %v", data, n, d.Index, got)
			}
			for i, x := range v {
				if float64(x)*d.Embedding[i] < 0 {
					t.Fatalf("parseAnswer(%q, %d): number %d of vector %d is %v for %v", data, n, i, d.Index, x, d.Embedding[i])
				}
			}
		}
	})
}
