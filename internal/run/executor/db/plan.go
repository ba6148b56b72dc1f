package db

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/run/executor"
)

// What can be done with a database.
const (
	verbInspect = "inspect"
	verbQuery   = "query"
	verbExplain = "explain"
	verbExecute = "execute"
)

// Verbs are the names of the runners, after "db.".
func Verbs() []string { return []string{verbInspect, verbQuery, verbExplain, verbExecute} }

// Chosen is the first element of a recipe's Argv where the call names the
// connection in its argument "connection".
const Chosen = "{connection}"

// A plan is what a call comes to.
type plan struct {
	connection Connection
	verb       string
	sql        string
	values     []any
	table      string
	format     string
	rows       int
}

// arguments are those of the tools that Ken makes for a connection.
type arguments struct {
	Connection string            `json:"connection"`
	SQL        string            `json:"sql"`
	Parameters []json.RawMessage `json:"parameters"`
	Table      string            `json:"table"`
	Format     string            `json:"format"`
	Rows       int               `json:"rows"`
}

// plan reads a call. c may be nil.
func (e *Executor) plan(ctx context.Context, call capability.Call, c *capability.Capability) (plan, error) {
	if c == nil {
		var err error
		if c, _, err = e.cfg.Lookup(ctx, call.Target); err != nil {
			return plan{}, err
		}
	}
	if c.Run == nil {
		return plan{}, &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: errors.New("missing recipe")}
	}
	p := plan{format: formatMarkdown}
	family := ""
	family, p.verb, _ = strings.Cut(c.Run.Runner, ".")
	if family != "db" || !slices.Contains(Verbs(), p.verb) {
		return plan{}, &capability.Error{
			Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: fmt.Errorf("nothing can run %s", c.Run.Runner),
			Fix: "the runners are db." + strings.Join(Verbs(), ", db."),
		}
	}
	argv := c.Run.Argv
	if len(argv) == 0 {
		return plan{}, &capability.Error{
			Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: errors.New("the recipe names no database"),
			Fix: `add argv to it, as in argv: [shop, "SELECT …"]`,
		}
	}
	name, err := argv[0], error(nil)
	if len(argv) > 1 {
		err = p.fromRecipe(call, argv[1:])
	} else {
		name, err = p.fromArguments(call, name)
	}
	if err != nil {
		return plan{}, err
	}
	if p.connection, err = e.connection(call, name); err != nil {
		return plan{}, err
	}
	return p, p.check(call)
}

// fromArguments reads a call that brings its own statement.
func (p *plan) fromArguments(call capability.Call, name string) (string, error) {
	in, err := executor.Decode[arguments](call)
	if err != nil {
		return "", err
	}
	bad := func(text, fix string) (string, error) { return "", executor.BadArguments(call, errors.New(text), fix) }
	switch {
	case name == Chosen && in.Connection == "":
		return bad("there is no argument connection", "name one of the databases of ken.yaml")
	case name == Chosen:
		name = in.Connection
	case in.Connection != "":
		return bad("the argument connection is not allowed here", "this tool is for one database")
	}
	if p.verb == verbInspect {
		if in.SQL != "" || in.Parameters != nil || in.Format != "" || in.Rows != 0 {
			return bad("inspect has the argument table alone", "")
		}
		p.table = in.Table
		return name, nil
	}
	switch {
	case in.Table != "":
		return bad("the argument table is not allowed here", "name the table in sql")
	case in.Rows < 0:
		return bad("rows is below zero", "use a number of at least 1, or omit it")
	case in.Format != "":
		p.format = in.Format
	}
	p.sql, p.rows = in.SQL, in.Rows
	if len(in.Parameters) > mostParameters {
		return bad(fmt.Sprintf("there are more than %d parameters", mostParameters), "give fewer")
	}
	for i, raw := range in.Parameters {
		v, err := parameter(raw)
		if err != nil {
			return bad(fmt.Sprintf("parameter %d %v", i+1, err), "")
		}
		p.values = append(p.values, v)
	}
	return name, nil
}

// placeholder is an argument of the call in a recipe.
var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\{([A-Za-z_][A-Za-z0-9_.-]*)\}$`) })

// fromRecipe reads a call of an action that brings the statement: after it come
// the values of its parameters, each a text or "{name}".
func (p *plan) fromRecipe(call capability.Call, recipe []string) error {
	given := map[string]json.RawMessage{}
	if raw := bytes.TrimSpace(call.Arguments); len(raw) > 0 {
		if err := executor.Unique(raw); err != nil {
			return executor.BadArguments(call, err, "")
		}
		if json.Unmarshal(raw, &given) != nil {
			return executor.BadArguments(call, errors.New("the arguments are not a JSON object"), "")
		}
	}
	value := func(word string) (any, error) {
		m := placeholder().FindStringSubmatch(word)
		if m == nil {
			return word, nil
		}
		raw, there := given[m[1]]
		if !there {
			return nil, nil
		}
		v, err := parameter(raw)
		if err != nil {
			return nil, executor.BadArguments(call, fmt.Errorf("argument %s %w", m[1], err), "")
		}
		return v, nil
	}
	if p.verb == verbInspect {
		v, err := value(recipe[0])
		if text, ok := v.(string); ok {
			p.table = text
		}
		return err
	}
	p.sql = recipe[0]
	if placeholder().MatchString(p.sql) {
		return &capability.Error{
			Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: errors.New("the statement is a parameter"),
			Fix: "write the statement in argv, and its values after it",
		}
	}
	for _, word := range recipe[1:] {
		v, err := value(word)
		if err != nil {
			return err
		}
		p.values = append(p.values, v)
	}
	return nil
}

// parameter reads the value of one parameter.
func parameter(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	switch raw[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, errors.New("is not JSON")
		}
		return s, nil
	case '[':
		return string(raw), nil
	case '{':
		var in struct {
			Base64 *string `json:"base64"`
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if dec.Decode(&in) == nil && in.Base64 != nil {
			b, err := base64.StdEncoding.DecodeString(*in.Base64)
			if err != nil {
				return nil, errors.New("is not base64")
			}
			return b, nil
		}
		return string(raw), nil
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return nil, errors.New("is an integer of more than 64 bits; pass it as a string")
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errors.New("is too large a number; pass it as a string")
	}
	return x, nil
}

// connection finds the database that a call means, with its limits.
func (e *Executor) connection(call capability.Call, name string) (Connection, error) {
	var names []string
	for _, c := range e.cfg.Connections() {
		if c.Name != name {
			names = append(names, c.Name)
			continue
		}
		return c.filled(), nil
	}
	slices.Sort(names)
	fix := "add it to ken.yaml, under databases"
	if len(names) > 0 {
		fix += "; there are: " + strings.Join(names, ", ")
	}
	return Connection{}, &capability.Error{
		Kind: capability.NotFound, Op: "find", Target: string(call.Target), Err: fmt.Errorf("ken.yaml names no database %.64q", name), Fix: fix,
	}
}

// filled returns the connection with defaults where it has no limits.
func (c Connection) filled() Connection {
	if c.Rows <= 0 {
		c.Rows = rowsDefault
	}
	if c.Bytes <= 0 {
		c.Bytes = bytesDefault
	}
	if c.Timeout <= 0 {
		c.Timeout = timeoutDefault
	}
	return c
}

// check is for what every engine wants alike.
func (p *plan) check(call capability.Call) error {
	bad := func(text, fix string) error { return executor.BadArguments(call, errors.New(text), fix) }
	c := p.connection
	if p.verb == verbExecute && !c.Write {
		return &capability.Error{
			Kind: capability.Denied, Op: "execute", Target: string(call.Target), Rule: "databases." + c.Name + ".access",
			Err: errors.New("the database may only be read"), Fix: "a person sets access: write for " + c.Name + " under databases in ken.yaml",
		}
	}
	if p.verb == verbInspect {
		if len(p.table) > 512 {
			return bad("the name of the table is too long", "")
		}
		return nil
	}
	if p.rows == 0 || p.rows > c.Rows {
		p.rows = c.Rows
	}
	switch {
	case strings.TrimSpace(p.sql) == "":
		return bad("sql is empty", "give one statement")
	case len(p.sql) > mostSQL:
		return bad(fmt.Sprintf("sql has %d bytes, more than %d", len(p.sql), mostSQL), "make it shorter, or use parameters")
	case strings.ContainsRune(p.sql, 0):
		return bad("sql contains a zero byte", "")
	case !slices.Contains([]string{formatMarkdown, formatCSV, formatJSON}, p.format):
		return bad("format must be markdown, csv or json", "")
	}
	return nil
}

// wrongCount says that a statement has other parameters than values were given.
func wrongCount(want, have int) error {
	return fmt.Errorf("the statement has %d parameters, and %d values were given", want, have)
}
