package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkPrepare is a person with ten servers, three hundred projects and
// five megabytes of history in one file.
func BenchmarkPrepare(b *testing.B) {
	var s strings.Builder
	s.WriteString("{\n  \"mcpServers\": {\n")
	for i := range 10 {
		fmt.Fprintf(&s, "    \"s%d\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {\"A_TOKEN\": \"s3cr3t-%d-s3cr3t\"}},\n", i, i)
	}
	s.WriteString("    \"last\": {\"command\": \"x\"}\n  },\n  \"projects\": {\n")
	for i := range 300 {
		fmt.Fprintf(&s, "    \"/p%d\": {\"mcpServers\": {}, \"history\": [%q]},\n", i, strings.Repeat("some text of a person ", 750))
	}
	s.WriteString("    \"/q\": {\"mcpServers\": {\"one\": {\"command\": \"x\"}}}\n  }\n}\n")
	home := b.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".claude.json"), []byte(s.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	o := Options{Where: Where{Client: "claude", Home: home}, Entry: Entry{Command: "/ken"}}
	b.SetBytes(int64(s.Len()))
	for b.Loop() {
		p, err := Prepare(o)
		if err != nil || len(p.Servers) != 12 {
			b.Fatalf("Prepare() = %v", err)
		}
		if p.Diff() == "" {
			b.Fatal("nothing is shown")
		}
	}
}
