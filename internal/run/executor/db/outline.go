package db

import (
	"fmt"
	"strings"

	"ken/capability"
)

const (
	mostDescribed = 100  // tables with their columns, where no table is named
	mostListed    = 5000 // tables, and columns of all of them
	longestWord   = 4000 // bytes of a name, a comment or a definition
)

// An outline describes a database.
type outline struct {
	engine string
	tables []tableOutline
}

type tableOutline struct {
	name, kind, comment string
	rows                string // as a text: "12 rows", "about 40000 rows"
	columns             []columnOutline
	indexes             []indexOutline
	definition          string
}

type columnOutline struct {
	name, kind, fallback, comment string
	key, required, unique         bool
	to                            string // the column that it refers to
}

type indexOutline struct {
	name, columns string
	unique        bool
}

// result writes an outline in few words.
func (o outline) result(c Connection, table string) capability.Result {
	if len(o.tables) == 0 && table != "" {
		return capability.Result{Failed: true, Parts: []capability.Part{{Text: fmt.Sprintf("table %.200s not found; inspect without the argument table lists all tables", table)}}}
	}
	var b strings.Builder
	access := "may be read"
	if c.Write {
		access = "may be read and changed"
	}
	fmt.Fprintf(&b, "Database %s (%s), %d tables and views, %s.\n", c.Name, o.engine, len(o.tables), access)
	if c.Description != "" {
		b.WriteString(c.Description + "\n")
	}
	truncated := false
	for i, t := range o.tables {
		if b.Len() > c.Bytes {
			fmt.Fprintf(&b, "\n%d more tables are not shown: this is over %d bytes. Changed by: databases.%s.bytes\n", len(o.tables)-i, c.Bytes, c.Name)
			truncated = true
			break
		}
		t.write(&b)
	}
	if len(o.tables) > mostDescribed {
		fmt.Fprintf(&b, "\nOnly the first %d tables are shown with their columns. Name one with the argument table to see it.\n", mostDescribed)
		truncated = true
	}
	return capability.Result{Parts: []capability.Part{{Text: b.String()}}, Meta: map[string]string{"truncated": fmt.Sprint(truncated)}}
}

func (t tableOutline) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s %s", t.kind, t.name)
	if t.rows != "" {
		b.WriteString(", " + t.rows)
	}
	if t.comment != "" {
		b.WriteString(": " + oneLine(t.comment))
	}
	b.WriteByte('\n')
	for _, c := range t.columns {
		b.WriteString("  " + c.name)
		for _, word := range []string{c.kind, c.words()} {
			if word != "" {
				b.WriteString(" " + word)
			}
		}
		if c.comment != "" {
			b.WriteString(": " + oneLine(c.comment))
		}
		b.WriteByte('\n')
	}
	for _, x := range t.indexes {
		unique := ""
		if x.unique {
			unique = "unique "
		}
		fmt.Fprintf(b, "  %sindex %s (%s)\n", unique, x.name, oneLine(x.columns))
	}
	if t.definition != "" {
		b.WriteString("\n" + t.definition + "\n")
	}
}

func (c columnOutline) words() string {
	var out []string
	if c.key {
		out = append(out, "primary key")
	}
	if c.required && !c.key {
		out = append(out, "not null")
	}
	if c.unique && !c.key {
		out = append(out, "unique")
	}
	if c.fallback != "" {
		out = append(out, "default "+oneLine(c.fallback))
	}
	if c.to != "" {
		out = append(out, "-> "+c.to)
	}
	return strings.Join(out, " ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
