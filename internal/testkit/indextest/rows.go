package indextest

import (
	"bufio"
	"encoding/json"
	"os"
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
