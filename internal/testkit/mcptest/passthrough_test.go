package mcptest

import (
	"bytes"
	"cmp"
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

// cut is why a large result does not arrive in one piece.
const cut = "results of more than 20,000 characters are cut and kept, so that one result does not fill the model's context; read_result returns the rest, and `limits.inline` raises the limit"

// exceptions are the features that Ken does not pass on, by surface, with the
// reason.
var exceptions = map[string]map[string]string{
	"Ken direct": {"tools/call, result of 50 kB, whole": cut},
	"Ken bridge": {"tools/call, result of 50 kB, whole": cut},
}

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
				c.check(t)
			}
			if protocol == "" {
				compareTable(t, columns)
			}
		})
	}
}

// A column is what the program prints of one way to the server.
type column struct {
	Name string
	Rows []struct {
		Part, Feature string
		OK            bool
		Why, Bridge   string
	}
}

// check fails for every feature that is missing without a reason, and for a
// reason that is no longer true.
func (c *column) check(t *testing.T) {
	t.Helper()
	known := exceptions[c.Name]
	if known == nil && c.Name != "direct" {
		return // another gateway
	}
	for _, r := range c.Rows {
		why := known[r.Part+", "+r.Feature]
		switch {
		case !r.OK && why == "" && r.Bridge == "":
			t.Errorf("%s: %s, %s: %s", c.Name, r.Part, r.Feature, r.Why)
		case r.OK && why != "":
			t.Errorf("%s: %s, %s arrives; the exception is out of date", c.Name, r.Part, r.Feature)
		}
	}
}

const tableFile = "../../../docs/mcp-table.md"

// compareTable checks docs/mcp-table.md, or writes it.
func compareTable(t *testing.T, columns []column) {
	t.Helper()
	var b strings.Builder
	b.WriteString(tableIntro)
	b.WriteString("| request | feature |")
	for _, c := range columns {
		b.WriteString(" " + c.Name + " |")
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(columns)+2) + "\n")
	var notes []string
	passed := make([]int, len(columns))
	for i, first := range columns[0].Rows {
		fmt.Fprintf(&b, "| %s | %s |", first.Part, first.Feature)
		for n, c := range columns {
			r := c.Rows[i]
			if r.OK {
				passed[n]++
				b.WriteString(" yes |")
				continue
			}
			why := cmp.Or(exceptions[c.Name][r.Part+", "+r.Feature], r.Bridge, r.Why)
			at := 0
			for at < len(notes) && notes[at] != why {
				at++
			}
			if at == len(notes) {
				notes = append(notes, why)
			}
			fmt.Fprintf(&b, " no (%d) |", at+1)
		}
		b.WriteByte('\n')
	}
	b.WriteString("| **all** | |")
	for n := range columns {
		fmt.Fprintf(&b, " **%d of %d** |", passed[n], len(columns[0].Rows))
	}
	b.WriteString("\n\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s.\n", i+1, strings.ToUpper(note[:1])+note[1:])
	}
	if os.Getenv("KEN_GATEWAYS") != "" {
		t.Log("\n" + b.String())
		return
	}
	if *update {
		if err := os.WriteFile(tableFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("docs/mcp-table.md is out of date: run make mcp-table\n%s", b.String())
	}
}

const tableIntro = `# What survives behind Ken

A server with something of everything is used directly, and behind ` + "`ken mcp`" + ` with both surfaces. Each row is one
feature that a client may rely on: "yes" means that exactly what the server sent arrived. ` + "`make mcp-table`" + ` makes
this table, with the newest protocol; the test behind it also runs with protocol 2025-06-18, and fails if a feature gets
lost. ` + "`make mcp-table GATEWAYS='NAME=COMMAND'`" + ` prints another gateway beside it (` + "`$SITE`" + ` is the command of the
server, to be configured under the name ` + "`site`" + `).

Hints arrive as the server sent them only if ` + "`mcp.trustHints`" + ` names the server; see [mcp.md](mcp.md#hints).

`
