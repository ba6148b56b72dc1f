package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/run/executor"
)

var _ executor.Previewer = (*Executor)(nil)

// Preview returns the statement of a call, its parameters, and the tables that it
// names.
func (e *Executor) Preview(ctx context.Context, call capability.Call, c *capability.Capability) ([]executor.Shown, error) {
	p, err := e.plan(ctx, call, c)
	if err != nil {
		return nil, err
	}
	out := []executor.Shown{{Name: "database", Text: p.connection.Name}}
	if p.verb == verbInspect {
		return append(out, executor.Shown{Name: "tables", Text: "describes " + orAll(p.table)}), nil
	}
	words := sqlWords(p.sql, p.connection.Engine)
	out = append(out, executor.Shown{Name: "statement", Text: p.sql, Marks: everyRow(words)})
	if len(p.values) > 0 {
		out = append(out, executor.Shown{Name: "parameters", Text: valuesText(p.values)})
	}
	return append(out, executor.Shown{Name: "tables", Text: tables(words, p.verb)}), nil
}

// valuesText lists the values of parameters, one in a line. Texts are quoted, so
// that none looks like another value, or like a second one.
func valuesText(values []any) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch v := v.(type) {
		case nil:
			fmt.Fprintf(&b, "%d: NULL", i+1)
		case []byte:
			fmt.Fprintf(&b, "%d: %d bytes", i+1, len(v))
		case string:
			fmt.Fprintf(&b, "%d: %q", i+1, v)
		default:
			fmt.Fprintf(&b, "%d: %v", i+1, v)
		}
	}
	return b.String()
}

func orAll(table string) string {
	if table == "" {
		return "all tables"
	}
	return table
}

// A sqlWord is a word, a quoted name or a sign of a statement, without comments
// and texts.
type sqlWord struct {
	text     string // of a keyword as in the statement, of a quoted name without its quotes
	name     bool   // it can name a table
	quoted   bool   // it is a name, whatever it reads like
	from, to int
}

func (w sqlWord) is(keywords ...string) bool {
	return !w.quoted && slices.ContainsFunc(keywords, func(k string) bool { return strings.EqualFold(k, w.text) })
}

// sqlWords takes a statement apart, as its engine does. It is for people who decide:
// what a statement does is decided by the database, and what may be done by its
// engine.
func sqlWords(sql, engine string) []sqlWord {
	var out []sqlWord
	for i := 0; i < len(sql); {
		c := rune(sql[i])
		from := i
		switch {
		case strings.HasPrefix(sql[i:], "--"):
			i = after(sql, i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = commentEnd(sql, i, engine == Postgres)
		case c == '\'':
			last := sqlWord{}
			if len(out) > 0 {
				last = out[len(out)-1]
			}
			i = textEnd(sql, i, engine == Postgres && last.to == from && last.is("E"))
		case c == '$' && engine == Postgres && dollarQuote(sql[i:]) != "":
			tag := dollarQuote(sql[i:])
			i = after(sql, i+len(tag), tag)
		case c == '"' || c == '`' || c == '[' && engine != Postgres:
			end := string(c)
			if c == '[' {
				end = "]"
			}
			i = after(sql, i+1, end)
			out = append(out, sqlWord{strings.TrimSuffix(sql[from+1:i], end), true, true, from, i})
		case wordByte(sql[i]) && !unicode.IsDigit(c) && c != '$':
			for i < len(sql) && wordByte(sql[i]) {
				i++
			}
			out = append(out, sqlWord{sql[from:i], true, false, from, i})
		default:
			if i++; !unicode.IsSpace(c) {
				out = append(out, sqlWord{string(c), false, false, from, i})
			}
		}
	}
	return out
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// after returns the place behind the next end, or that of the end of the text.
func after(sql string, from int, end string) int {
	if i := strings.Index(sql[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(sql)
}

// commentEnd returns where a comment ends. Those of PostgreSQL may hold others.
func commentEnd(sql string, from int, nested bool) int {
	if !nested {
		return after(sql, from+2, "*/")
	}
	depth := 1
	for i := from + 2; i < len(sql); {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(sql[i:], "*/"):
			if depth--; depth == 0 {
				return i + 2
			}
			i += 2
		default:
			i++
		}
	}
	return len(sql)
}

// textEnd returns where a text ends, in which a backslash may stand before a quote.
func textEnd(sql string, from int, escapes bool) int {
	for i := from + 1; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && escapes:
			i++
		case sql[i] == '\'':
			return i + 1
		}
	}
	return len(sql)
}

// dollarQuote returns the quote that a text of PostgreSQL begins with, as in $body$,
// or "".
func dollarQuote(sql string) string {
	for i := 1; i < len(sql); i++ {
		switch c := sql[i]; {
		case c == '$':
			return sql[:i+1]
		case !wordByte(c) || i == 1 && '0' <= c && c <= '9':
			return ""
		}
	}
	return ""
}

// everyRow marks a statement that changes all rows of a table, or removes tables.
func everyRow(words []sqlWord) []executor.Mark {
	var out []executor.Mark
	bounded := conditions(words)
	for i, w := range words {
		why, next := "", sqlWord{}
		if i+1 < len(words) {
			next = words[i+1]
		}
		begins := i == 0 || words[i-1].is(";", "(", ")", "EXPLAIN", "ANALYZE", "VERBOSE", "BEGIN", "INSTEAD")
		switch {
		case w.is("DROP") && (begins || next.is("COLUMN")):
			why = "removes it with everything in it"
		case w.is("TRUNCATE") && begins:
			why = "removes every row"
		case w.is("DELETE") && (begins || next.is("FROM")) && !bounded[i]:
			why = "removes every row, because there is no WHERE that names a column"
		case w.is("UPDATE") && begins && !bounded[i]:
			why = "changes every row, because there is no WHERE that names a column"
		}
		if why != "" {
			out = append(out, executor.Mark{From: w.from, To: w.to, Why: why})
		}
	}
	return out
}

// conditions reports for each word whether the statement behind it says which rows
// it is about: by a LIMIT, or a WHERE with a name in it. The condition of a subquery
// does not count for the statement around it.
func conditions(words []sqlWord) []bool {
	type level struct{ bounded, named bool }
	out := make([]bool, len(words))
	levels := []level{{}} // of the brackets, read from the end
	for i, w := range slices.Backward(words) {
		at := &levels[len(levels)-1]
		out[i] = at.bounded
		label := i > 0 && words[i-1].is("AS", ".") // a name that reads like a keyword
		switch {
		case w.is(")"):
			levels = append(levels, level{})
		case w.is("("):
			if levels = levels[:len(levels)-1]; len(levels) == 0 {
				levels = append(levels, level{}) // it is not closed
			}
			outer := &levels[len(levels)-1]
			outer.named = outer.named || at.named
		case w.is(";", "RETURNING") && !label:
			*at = level{}
		case w.is("LIMIT") && !label:
			*at = level{bounded: true}
		case w.is("WHERE") && !label:
			*at = level{bounded: at.bounded || at.named}
		case w.is("ORDER", "GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT") && !label:
			at.named = false
		case w.name && !w.is("TRUE", "FALSE", "NULL", "NOT", "AND", "OR", "IS", "IN", "BETWEEN", "LIKE"):
			at.named = true
		}
	}
	return out
}

// tables names the tables that a statement changes, and those that it reads.
func tables(words []sqlWord, verb string) string {
	changed, read := &names{}, &names{}
	lists := []*names{nil} // by brackets: what a name behind a comma belongs to
	for i, w := range words {
		prev := sqlWord{}
		if i > 0 {
			prev = words[i-1]
		}
		list := &lists[len(lists)-1]
		switch {
		case w.is("("):
			lists = append(lists, nil)
		case w.is(")"):
			if lists = lists[:len(lists)-1]; len(lists) == 0 {
				lists = append(lists, nil)
			}
		case w.is(",") && *list != nil:
			(*list).add(words, i+1)
		case w.is("INTO") && prev.is("INSERT", "REPLACE", "MERGE", "IGNORE", "ABORT", "FAIL", "ROLLBACK"):
			changed.add(words, i+1)
		case w.is("UPDATE") && !prev.is("DO", "FOR", "ON"):
			changed.add(words, i+1)
		case w.is("TRUNCATE"):
			changed.add(words, i+1)
			*list = changed
		case w.is("FROM") && prev.is("DELETE"):
			changed.add(words, i+1)
		case w.is("TABLE", "VIEW", "INDEX", "TRIGGER") && prev.is("CREATE", "DROP", "ALTER", "TEMP", "TEMPORARY", "UNIQUE", "TRUNCATE", "VIRTUAL"):
			changed.add(words, i+1)
			if prev.is("DROP") {
				*list = changed
			}
		case w.is("FROM", "USING"):
			read.add(words, i+1)
			*list = read
		case w.is("JOIN"):
			read.add(words, i+1)
		case w.is("WHERE", "SET", "SELECT", "VALUES", "RETURNING", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "FETCH", "FOR", ";"):
			*list = nil
		}
	}
	read.list = slices.DeleteFunc(read.list, func(name string) bool { return changed.known[name] })
	var out []string
	if len(changed.list) > 0 {
		out = append(out, "changes "+strings.Join(changed.list, ", "))
	}
	if len(read.list) > 0 {
		out = append(out, "reads "+strings.Join(read.list, ", "))
	}
	switch {
	case len(changed.list) == 0 && verb == verbExecute:
		return strings.Join(append(out, "Ken cannot tell which tables the statement changes"), "; ")
	case len(out) == 0:
		return "reads no table that the statement names"
	}
	return strings.Join(out, "; ")
}

// names are those of tables, each once.
type names struct {
	list  []string
	known map[string]bool
}

// add adds the table at a place of a statement, if there is one.
func (n *names) add(words []sqlWord, at int) {
	name, ok := tableAt(words, at)
	if !ok || n.known[name] {
		return
	}
	if n.known == nil {
		n.known = map[string]bool{}
	}
	n.known[name] = true
	n.list = append(n.list, name)
}

// tableAt returns the name at a place of a statement, with its schema.
func tableAt(words []sqlWord, at int) (string, bool) {
	for at < len(words) && words[at].is("IF", "NOT", "EXISTS", "ONLY", "TABLE", "OR", "REPLACE", "IGNORE", "ROLLBACK", "ABORT", "FAIL", "LOW_PRIORITY", "LATERAL") {
		at++
	}
	if at >= len(words) || !words[at].name {
		return "", false // a subquery
	}
	name := words[at].text
	for at+2 < len(words) && words[at+1].is(".") && words[at+2].name {
		at += 2
		name += "." + words[at].text
	}
	return name, true
}
