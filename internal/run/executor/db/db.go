// Package db makes the databases that ken.yaml names capabilities: inspect
// describes the tables, query reads rows, explain shows a plan, and execute
// changes something where the connection allows it.
//
// What may only read is held by the database itself, and not by looking at the
// text of a statement: SQLite opens the file for reading and asks an authorizer
// about each part of a statement, PostgreSQL runs it in a transaction that can
// only read, and MySQL too, after it has agreed to explain the statement as a
// query. A call is one statement; its values are parameters. Rows, bytes
// and time are bounded, and a query whose time is over is stopped in the
// database. So many statements run at once, and the others wait.
package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/jsonappend"
	"ken/internal/run/executor"
)

// The engines that there are.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	MySQL    = "mysql" // and MariaDB
)

// A Connection is a database that the user named.
type Connection struct {
	Name   string
	Engine string

	Path string // of SQLite: the file, absolute
	URL  string // of servers: postgres://user@host:5432/database or mysql://user@host:3306/database, without a password

	// Password is a reference such as secret:NAME; empty means none.
	Password string

	// Write lets execute change the database. Query, explain and inspect only
	// read even then.
	Write bool

	Description string // for the model: what is in it

	Rows    int           // most rows of one answer
	Bytes   int           // most bytes of one answer
	Timeout time.Duration // of one call
}

// Config says what an Executor needs.
type Config struct {
	// Connections returns those that there are now. It is asked at every call.
	Connections func() []Connection

	// Lookup finds the capability that a call means.
	Lookup executor.Lookup

	// Secret returns the value that a reference stands for.
	Secret func(reference string) (string, error)
}

// Bounds of every call.
const (
	mostSQL        = 256 << 10
	mostParameters = 1000

	rowsDefault    = 1000
	bytesDefault   = 1 << 20
	timeoutDefault = 30 * time.Second

	mostChecked = 10 * time.Second // for the doctor
)

// An Executor asks databases. It holds no connection between calls, so that
// nothing of one call is left for the next. It is safe for concurrent use.
type Executor struct {
	cfg   Config
	queue queue
}

// New makes an Executor.
func New(cfg Config) (*Executor, error) {
	if cfg.Connections == nil || cfg.Lookup == nil || cfg.Secret == nil {
		return nil, errors.New("make db executor: Connections, Lookup and Secret are required")
	}
	return &Executor{cfg: cfg}, nil
}

// An engine is an open database. The sheet takes the rows.
type engine interface {
	query(ctx context.Context, sql string, values []any, into *sheet) error
	explain(ctx context.Context, sql string, values []any, into *sheet) error
	execute(ctx context.Context, sql string, values []any, into *sheet) (changed int64, err error)
	inspect(ctx context.Context, table string) (outline, error)
	close()
}

func open(ctx context.Context, c Connection, verb string, secret func(reference string) (string, error)) (engine, error) {
	switch c.Engine {
	case SQLite:
		return newSQLite(ctx, c, verb == verbExecute)
	case Postgres, MySQL:
		password := ""
		if c.Password != "" {
			var err error
			if password, err = secret(c.Password); err != nil {
				return nil, err
			}
		}
		if c.Engine == MySQL {
			return newMySQL(ctx, c, password)
		}
		return newPostgres(ctx, c, password, verb == verbExecute)
	}
	return nil, fmt.Errorf("unknown engine %q", c.Engine)
}

// Facts checks the arguments and says what the call needs: the file or the
// network, and which host.
func (e *Executor) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	p, err := e.plan(ctx, call, c)
	if err != nil {
		return executor.Facts{}, err
	}
	facts := executor.Facts{
		Line: p.sql, Args: len(p.values), Destructive: p.verb == verbExecute,
		Required: permissions(p.connection, p.verb),
	}
	if host := p.connection.host(); host != "" {
		facts.Hosts = []string{host}
	}
	return facts, nil
}

// permissions are what a call needs.
func permissions(c Connection, verb string) []string {
	switch {
	case c.Engine != SQLite:
		return []string{executor.PermNetwork}
	case verb == verbExecute:
		return []string{executor.PermRead, executor.PermWrite}
	}
	return []string{executor.PermRead}
}

// Invoke carries a call out.
func (e *Executor) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, err := e.plan(ctx, call, nil)
	if err != nil {
		return capability.Result{}, err
	}
	begun := time.Now()
	leave, err := e.queue.enter(ctx, p.connection)
	if err != nil {
		return p.settle(ctx, ctx, call, err)
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, p.connection.Timeout)
	defer cancel()
	r, err := e.carry(limited, p)
	if err != nil {
		r, err = p.settle(ctx, limited, call, err)
	}
	if err != nil {
		return capability.Result{}, err
	}
	if r.Meta == nil {
		r.Meta = map[string]string{}
	}
	if r.Meta["truncated"] == "" {
		r.Meta["truncated"] = "false"
	}
	r.Meta["tool"], r.Meta["database"] = "db."+p.verb, p.connection.Name
	r.Meta["duration_ms"] = fmt.Sprint(time.Since(begun).Milliseconds())
	r.Meta["isolation"] = isolation(p.connection)
	return r, nil
}

// isolation says where a statement ran: an SQLite file in a process of its own,
// with limits, and everything else in Ken's.
func isolation(c Connection) string {
	if c.Engine == SQLite {
		return `{"profile":"none"}`
	}
	return `{"profile":"in-process"}`
}

func (e *Executor) carry(ctx context.Context, p plan) (capability.Result, error) {
	if err := ctx.Err(); err != nil {
		return capability.Result{}, err
	}
	if p.connection.Engine == SQLite {
		return inChild(ctx, p)
	}
	x, err := open(ctx, p.connection, p.verb, e.cfg.Secret)
	if err != nil {
		return capability.Result{}, &openError{err}
	}
	defer x.close()
	return p.ask(ctx, x)
}

// ask carries out a plan with an open database.
func (p plan) ask(ctx context.Context, x engine) (capability.Result, error) {
	s := &sheet{name: p.connection.Name, format: p.format, mostRows: p.rows, most: p.connection.Bytes}
	switch p.verb {
	case verbInspect:
		o, err := x.inspect(ctx, p.table)
		if err != nil {
			return capability.Result{}, err
		}
		return o.result(p.connection, p.table), nil
	case verbExplain:
		s.format = formatLines
		err := x.explain(ctx, p.sql, p.values, s)
		return s.result(-1), err
	case verbExecute:
		changed, err := x.execute(ctx, p.sql, p.values, s)
		return s.result(changed), err
	}
	err := x.query(ctx, p.sql, p.values, s)
	return s.result(-1), err
}

// Check opens a database for reading and closes it again. It returns what its user
// may do beyond reading, in sentences, for an operator. The function secret returns
// the value that a reference stands for.
func Check(ctx context.Context, c Connection, secret func(reference string) (string, error)) (rights []string, err error) {
	c = c.filled()
	ctx, cancel := context.WithTimeout(ctx, min(c.Timeout, mostChecked))
	defer cancel()
	x, err := open(ctx, c, verbInspect, secret)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if p, ok := x.(*postgres); ok {
		return p.rights(ctx)
	}
	return nil, nil
}

// An openError is a database that could not be reached.
type openError struct{ err error }

func (o *openError) Error() string { return o.err.Error() }

func (o *openError) Unwrap() error { return o.err }

// A readOnlyError is a statement that the database refused, since it would do
// more than read, or more than any call may.
type readOnlyError struct{ text string }

func (r *readOnlyError) Error() string { return r.text }

// An uncertainError is a change of which nobody knows whether it was made.
type uncertainError struct{ err error }

func (u *uncertainError) Error() string {
	return u.err.Error() + ", and the statement may or may not have taken effect"
}

func (u *uncertainError) Unwrap() error { return u.err }

// settle turns what went wrong into a refusal, or into a failure that a model
// can read and mend.
func (p plan) settle(outer, limited context.Context, call capability.Call, err error) (capability.Result, error) {
	c := p.connection
	fail := func(kind capability.ErrorKind, rule string, cause error, fix string) (capability.Result, error) {
		return capability.Result{}, &capability.Error{Kind: kind, Op: p.verb, Target: string(call.Target), Rule: rule, Err: cause, Fix: fix}
	}
	if own, ok := errors.AsType[*capability.Error](err); ok {
		return capability.Result{}, own
	}
	if _, ok := errors.AsType[*uncertainError](err); ok { // however the call ended
		return fail(capability.Upstream, "", err, "check the rows that it changes before you run it again")
	}
	waited, isWait := errors.AsType[*queueError](err)
	switch {
	case errors.Is(outer.Err(), context.Canceled):
		return fail(capability.Unavailable, "", errors.New("cancelled"), "")
	case isWait && outer.Err() != nil:
		return fail(capability.Timeout, "", fmt.Errorf("database %s: %w", c.Name, waited), "try again, or raise limits.timeout")
	case isWait:
		return fail(capability.Timeout, "", fmt.Errorf("database %s: %w", c.Name, waited), "try again, or raise databases."+c.Name+".timeout")
	case outer.Err() != nil:
		return fail(capability.Timeout, "", errors.New("the time limit was reached, and Ken cancelled the statement"), "ask for less")
	case limited.Err() != nil:
		return fail(capability.Timeout, "", fmt.Errorf("took longer than %s, and Ken cancelled the statement", duration.Text(c.Timeout)),
			"ask for less, or raise databases."+c.Name+".timeout")
	}
	if _, ok := errors.AsType[*openError](err); ok {
		return fail(capability.Unavailable, "", fmt.Errorf("database %s: %w", c.Name, err), "check that databases."+c.Name+" in ken.yaml is right")
	}
	if _, ok := errors.AsType[*readOnlyError](err); ok {
		switch {
		case p.verb == verbExecute:
			return fail(capability.Denied, "db.execute", err, "send one statement that changes rows or tables of this database; nothing else is run")
		case c.Engine == MySQL:
			return fail(capability.Denied, "db."+p.verb, err, p.verb+" only reads; Ken does not change databases of MySQL and MariaDB")
		case !changesSomething(p.sql): // no setting helps
			return fail(capability.Denied, "db."+p.verb, err, p.verb+" only reads what this database holds")
		case c.Write:
			return fail(capability.Denied, "db."+p.verb, err, p.verb+" only reads; to change something, use execute")
		}
		return fail(capability.Denied, "databases."+c.Name+".access", err,
			p.verb+" only reads; for the tool execute, a person sets access: write for "+c.Name+" under databases in ken.yaml")
	}
	return capability.Result{Failed: true, Parts: []capability.Part{{Text: "the database says: " + executor.Clip(err.Error(), 2000)}}}, nil
}

// changesSomething reports whether a statement that was refused reads like one
// that execute would run. Only the advice depends on it.
func changesSomething(sql string) bool {
	words := strings.FieldsFunc(strings.ToUpper(sql), func(r rune) bool { return (r < 'A' || r > 'Z') && r != '_' })
	if len(words) == 0 || slices.Contains([]string{"ATTACH", "DETACH", "PRAGMA", "VACUUM"}, words[0]) {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP"}, w)
	})
}

// result makes a result of the rows. changed is how many rows a statement
// changed, or -1 where it only read.
func (s *sheet) result(changed int64) capability.Result {
	notes := s.notes(changed)
	r := capability.Result{Meta: map[string]string{"rows": fmt.Sprint(s.rows), "truncated": fmt.Sprint(s.full != "" || s.cut > 0)}}
	if s.format == formatJSON && s.text != nil {
		text := append(s.text, fmt.Sprintf(`],"row_count":%d`, s.rows)...)
		if changed >= 0 {
			text = fmt.Appendf(text, `,"changed":%d`, changed)
		}
		text = fmt.Appendf(text, `,"complete":%v`, s.full == "" && s.cut == 0)
		if len(notes) > 0 {
			text = jsonappend.String(append(text, `,"note":`...), strings.Join(notes, ". "))
		}
		r.Parts = []capability.Part{{JSON: append(text, '}'), MIME: "application/json"}}
		return r
	}
	if len(s.columns) > 0 {
		mime := "text/plain"
		switch s.format {
		case formatCSV:
			mime = "text/csv"
		case formatMarkdown:
			mime = "text/markdown"
			notes = append([]string{counted(s.rows)}, notes...)
		}
		r.Parts = append(r.Parts, capability.Part{Text: string(s.text), MIME: mime})
	}
	if len(notes) > 0 {
		r.Parts = append(r.Parts, capability.Part{Text: strings.Join(notes, ". ") + "."})
	}
	return r
}

// notes say what is not as asked.
func (s *sheet) notes(changed int64) []string {
	var out []string
	if changed >= 0 {
		out = append(out, counted(changed)+" changed")
	}
	if s.full != "" {
		out = append(out, s.full+". Ask for less: with LIMIT, fewer columns, or a condition. "+s.knob())
	}
	if s.cut > 0 {
		out = append(out, fmt.Sprintf("%d values are not shown whole", s.cut))
	}
	return out
}

// knob names the setting that a full sheet is due to.
func (s *sheet) knob() string {
	return "Changed by: the argument rows, databases." + s.name + ".rows and databases." + s.name + ".bytes"
}
