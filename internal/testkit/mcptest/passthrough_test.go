package mcptest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ken/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/mcp-table.md")

// TestPassThrough compares what a client has of a server directly and behind
// Ken. KEN_GATEWAYS adds columns: NAME=COMMAND on each line, with the
// command of the server in $SITE.
func TestPassThrough(t *testing.T) {
	testkit.CI(t, "starts Ken and a server")
	t.Parallel()
	site := build(t, "ken/internal/testkit/mcptest/passthrough")
	for _, protocol := range []string{"", "2025-06-18"} {
		t.Run("protocol "+protocol, func(t *testing.T) {
			t.Parallel()
			args := []string{"-protocol", protocol}
			for _, surface := range []string{"direct", "bridge"} {
				p := newPlace(t, allowAll+"mcp: {surface: "+surface+", trustHints: [site]}\n", map[string]definition{
					"site": {Command: site, Args: []string{"-serve", "-protocol", protocol}}})
				p.prepare("mcp:site/book_visit")
				args = append(args, fmt.Sprintf("Ken %s=cd '%s' && exec env '%s' '%s' mcp --standalone", surface, p.work, strings.Join(p.env(), "' '"), ken(t)))
			}
			args = append(args, strings.FieldsFunc(os.Getenv("KEN_GATEWAYS"), func(r rune) bool { return r == '\n' })...)
			cmd := exec.CommandContext(t.Context(), site, args...)
			cmd.Env = append(os.Environ(), "SITE="+site+" -serve")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			var columns []column
			if err := json.Unmarshal(out, &columns); err != nil {
				t.Fatal(err)
			}
			for _, c := range columns {
				for _, wrong := range c.wrong() {
					t.Error(wrong)
				}
			}
			if protocol == "" {
				compareTable(t, columns)
			}
		})
	}
}

const tableFile = "../../../docs/mcp-table.md"

// compareTable checks docs/mcp-table.md, or writes it.
func compareTable(t *testing.T, columns []column) {
	t.Helper()
	text := passTable(columns)
	if os.Getenv("KEN_GATEWAYS") != "" {
		t.Log("\n" + text)
		return
	}
	if *update {
		if err := os.WriteFile(tableFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("docs/mcp-table.md is out of date: run make mcp-table\n%s", text)
	}
}
