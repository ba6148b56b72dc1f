package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// bytesPerNumber is more than any service takes to write a number, with the
// white space of one that indents its answers.
const bytesPerNumber = 48

// largestAnswer bounds what is read of an answer; dims of 0 are not known.
func largestAnswer(texts, dims int) int64 {
	if dims == 0 {
		dims = maxDimensions
	}
	return 64<<10 + int64(texts)*(4<<10+int64(dims)*bytesPerNumber)
}

// parseAnswer reads the vectors out of an answer for n texts, in the order of
// the texts, whatever the order of the answer. They are finite, equally long
// and of unit length, or zero.
func parseAnswer(data []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not the JSON of embeddings: %w", err)
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("service returned %d vectors for %d texts", len(answer.Data), n)
	}
	vectors := make([][]float32, n)
	dims := 0
	for _, d := range answer.Data {
		at := 0
		if d.Index != nil {
			at = *d.Index
		} else if n > 1 {
			return nil, errors.New("cannot match vectors to texts: an index is missing")
		}
		if at < 0 || at >= n || vectors[at] != nil {
			return nil, fmt.Errorf("vector index %d, repeated or out of range for %d texts", at, n)
		}
		v, err := parseNumbers(d.Embedding, dims)
		if err != nil {
			return nil, fmt.Errorf("vector %d: %w", at, err)
		}
		if dims != 0 && len(v) != dims {
			return nil, fmt.Errorf("service returned vectors of %d and of %d numbers in one answer", dims, len(v))
		}
		if err := normalise(v); err != nil {
			return nil, fmt.Errorf("vector %d: %w", at, err)
		}
		vectors[at], dims = v, len(v)
	}
	return vectors, nil
}

// parseNumbers reads a list of numbers out of valid JSON. A null, which some
// services write for NaN, is an error, where encoding/json
// would read a zero.
func parseNumbers(raw []byte, expect int) ([]float32, error) {
	list, ok := bytes.CutPrefix(raw, []byte("["))
	if !ok {
		return nil, errors.New("not a list of numbers")
	}
	list = bytes.TrimSuffix(list, []byte("]"))
	v := make([]float32, 0, expect)
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, []byte(","))
		x, err := strconv.ParseFloat(string(bytes.Trim(item, " \t\r\n")), 32)
		if err != nil || len(v) == maxDimensions {
			return nil, fmt.Errorf("not a list of 1 to %d numbers", maxDimensions)
		}
		v = append(v, float32(x))
	}
	return v, nil
}

// normalise brings a vector to unit length; one that says nothing stays zero.
func normalise(v []float32) error {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return errors.New("contains NaN or Inf")
	case sum == 0:
		return nil
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return nil
}
