package indextest

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
)

// A Row is a capability or a labelled message of a training set.
type Row struct {
	ID, Name, Description, Category string
	Tags                            []string
	Parameters                      []capability.Parameter
	Summary                         string
	Set                             string // of a list of texts: the one it is of
	Query                           string
	Gold                            []string
	Schema                          json.RawMessage `json:"input_schema"`
}

// Capability makes a capability of a row.
func (r *Row) Capability(id string) *capability.Capability {
	return &capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
	}
}

// Measured returns a path within the measured corpora, and skips the test or
// benchmark where they are not here.
func Measured(t testing.TB, parts ...string) string {
	t.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: the corpora to measure on are not here")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// RealTools returns n tools: real ones in an order of their own, and beyond those
// we have, mixtures of two.
func RealTools(t testing.TB, n int) []Row {
	t.Helper()
	real := slices.Concat(ReadRows(t, Measured(t, "catalog", "toucan", "corpus.jsonl")), ReadRows(t, Measured(t, "catalog", "npm-mcp", "corpus.jsonl")))
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(real), func(i, j int) { real[i], real[j] = real[j], real[i] })
	list := real[:min(n, len(real)):min(n, len(real))]
	for i := len(list); i < n; i++ {
		row, other := real[i%len(real)], real[random.IntN(len(real))]
		_, rest, _ := strings.Cut(other.Name, "_")
		row.Name += "_" + rest
		row.Description = row.Description[:len(row.Description)/2] + other.Description[len(other.Description)/2:]
		row.Parameters, row.Schema = other.Parameters, other.Schema
		list = append(list, row)
	}
	return list
}

// ReadRows reads a file of a training set.
func ReadRows(t testing.TB, path string) []Row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	var out []Row
	for lines.Scan() {
		var r Row
		// Keys that are spelled or shaped differently in one set are not needed of it.
		_ = json.Unmarshal(lines.Bytes(), &r)
		out = append(out, r)
	}
	return out
}
