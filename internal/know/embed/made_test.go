package embed

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// unpack reads a compressed file of testdata.
func unpack(t testing.TB, name string) string {
	t.Helper()
	text, err := unpackFile(name)
	must(t, err)
	return text
}

func unpackFile(name string) (string, error) {
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	return string(text), err
}

// vocabulary is BERT's, in its order.
func vocabulary(t testing.TB) []string {
	return strings.Split(strings.TrimSuffix(unpack(t, "vocab.txt.gz"), "\n"), "\n")
}

// noise returns weights that are the same on every machine: each row in its own
// range, as trained rows are.
func noise(pieces, dims int) []float32 {
	weights := make([]float32, pieces*dims)
	state := uint64(1)
	next := func() uint64 {
		state += 0x9E3779B97F4A7C15
		return mix(state, state^0xE7037ED1A0B428DB)
	}
	for i := range pieces {
		reach := float32(1 + next()%4000)
		for j := range dims {
			weights[i*dims+j] = reach * float32(int64(next()%2001)-1000) / (1 << 20)
		}
	}
	return weights
}

// pack returns a model file.
func pack(t testing.TB, name string, vocabulary []string, weights []float32) string {
	t.Helper()
	var file bytes.Buffer
	if _, err := Pack(&file, name, vocabulary, weights, nil); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func load(t testing.TB, file string) *Model {
	t.Helper()
	m, err := Load(file)
	must(t, err)
	return m
}

// tiny returns a model of a few pieces.
func tiny(t testing.TB, pieces ...string) *Model {
	t.Helper()
	return load(t, pack(t, "tiny", pieces, noise(len(pieces), 16)))
}

// full returns a model of BERT's vocabulary with noise for weights. It is made
// once for all tests of a run.
func full(t testing.TB) *Model {
	t.Helper()
	m, err := fullOnce()
	must(t, err)
	return m
}

var fullOnce = sync.OnceValues(func() (m *Model, err error) {
	text, err := unpackFile("vocab.txt.gz")
	if err != nil {
		return nil, err
	}
	pieces := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var file bytes.Buffer
	if _, err := Pack(&file, "noise", pieces, noise(len(pieces), 256), nil); err != nil {
		return nil, err
	}
	return Load(file.String())
})

// Row returns the row of a token: the i-th number of its vector is row[i], taken
// as a byte, minus 128, times scale. The row is empty and the scale 0 for a
// token that adds nothing to a vector. The scale has no unit; only scales of
// one model compare.
func (m *Model) Row(id uint32) (row string, scale uint16) {
	if id >= m.count {
		return "", 0
	}
	at := int(id) * m.dims
	return m.rows[at : at+m.dims], load16(m.scales, 2*int(id))
}

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
