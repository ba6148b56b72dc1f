package safefs

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestOneFile(t *testing.T) {
	const content = "some text"
	for _, name := range []string{"a.md", "cards/a.md", "a/b/c.json"} {
		f := OneFile{name, &Content{strings.NewReader(content), int64(len(content)), time.Unix(1e9, 0)}}
		if err := fstest.TestFS(f, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
