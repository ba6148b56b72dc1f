// Package sourcetest helps to test how sources are read.
package sourcetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SeedAttacks adds the texts of the attack corpora to a fuzz target, each in
// the place where the format has words. It adds nothing when KEN_ATTACKS is not
// set.
func SeedAttacks(f *testing.F, add func(text, quoted string)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("KEN_ATTACKS"), "*.jsonl"))
	if err != nil || os.Getenv("KEN_ATTACKS") == "" {
		return
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var row struct{ Text string }
			if json.Unmarshal([]byte(line), &row) != nil {
				continue
			}
			quoted, _ := json.Marshal(row.Text) // a string cannot fail; it is YAML as well
			if len(quoted) < 3<<10 {            // long seeds only slow the search
				add(row.Text, string(quoted))
			}
		}
	}
}
