package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit/executortest"
)

func BenchmarkFiles(b *testing.B) {
	ws := b.TempDir()
	text := strings.Repeat("a line of some text, as there are many\n", 250) // 10 KB
	for i := range 1000 {
		p := filepath.Join(ws, fmt.Sprintf("d%02d", i/20), fmt.Sprintf("f%03d.txt", i))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	e, err := New(Config{Workspace: ws})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for _, bb := range []struct{ name, tool, args string }{
		{"read 10 KB", "read_file", `{"path":"d07/f150.txt"}`},
		{"list 1000", "list_files", `{"recursive":true}`},
		{"search 10 MB", "search_files", `{"regex":"nothing of the kind"}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if r, err := e.Invoke(b.Context(), executortest.Call("tool:"+bb.tool, bb.args)); err != nil || r.Failed {
					b.Fatal(r, err)
				}
			}
		})
	}
	diff := []byte(text)
	patches, err := parseDiff("@@ -100,2 +100,2 @@\n a line of some text, as there are many\n-a line of some text, as there are many\n+another\n")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := apply(diff, patches[0].edits); err != nil {
				b.Fatal(err)
			}
		}
	})
}
