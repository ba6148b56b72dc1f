package mcptest

import (
	"cmp"
	"fmt"
	"strings"
)

// cut is why a large result does not arrive in one piece.
const cut = "results of more than 20,000 characters are cut and kept, so that one result does not fill the model's context; read_result returns the rest, and `limits.inline` raises the limit"

// exceptions are the features that Ken does not pass on, by surface, with the
// reason.
var exceptions = map[string]map[string]string{
	"Ken direct": {"tools/call, result of 50 kB, whole": cut},
	"Ken bridge": {"tools/call, result of 50 kB, whole": cut},
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

// wrong names every feature that is missing without a reason, and every reason that
// is no longer true.
func (c *column) wrong() (out []string) {
	known := exceptions[c.Name]
	if known == nil && c.Name != "direct" {
		return nil // another gateway
	}
	for _, r := range c.Rows {
		why := known[r.Part+", "+r.Feature]
		switch {
		case !r.OK && why == "" && r.Bridge == "":
			out = append(out, fmt.Sprintf("%s: %s, %s: %s", c.Name, r.Part, r.Feature, r.Why))
		case r.OK && why != "":
			out = append(out, fmt.Sprintf("%s: %s, %s arrives; the exception is out of date", c.Name, r.Part, r.Feature))
		}
	}
	return out
}

// passTable writes the table of docs/mcp-table.md.
func passTable(columns []column) string {
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
	return b.String()
}

const tableIntro = `# What survives behind Ken

A server with something of everything is used directly, and behind ` + "`ken mcp`" + ` with both surfaces. Each row is one
feature that a client may rely on: "yes" means that exactly what the server sent arrived. ` + "`make mcp-table`" + ` makes
this table, with the newest protocol; the test behind it also runs with protocol 2025-06-18, and fails if a feature gets
lost. ` + "`make mcp-table GATEWAYS='NAME=COMMAND'`" + ` prints another gateway beside it (` + "`$SITE`" + ` is the command of the
server, to be configured under the name ` + "`site`" + `).

Hints arrive as the server sent them only if ` + "`mcp.trustHints`" + ` names the server; see [mcp.md](mcp.md#hints).

`
