package db

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/untrusted"
)

// SQLite is a library in the process that calls it. It can be interrupted only
// between two of its own steps, and as it is built here it does not count its
// memory. A single step can take days (instr and replace compare every place of
// one text with all of another), and a statement with 26 nested WITH clauses
// takes gigabytes before its first step. So each call has a process of its own,
// with a limit on its memory, that is ended when the call is over.

// childName is the first argument of such a process. It is this program.
const childName = "ken-sqlite"

// Most of what a child may take.
const (
	childMemory = 1 << 30
	childReply  = 512 << 20       // bytes of an answer; a sheet has 64 MiB, and JSON and gob add to it
	childGrace  = time.Second     // between the interrupt and its end
	childKill   = 5 * time.Second // between the interrupt and the signal that ends it in any case
)

// The exit statuses of a child that has no answer.
const (
	childStopped = 3 // it was told to stop and could not be interrupted; nothing was changed
	childBroken  = 4 // the order cannot be read
)

// passed is set by [Child]. Without it no child is started: its main would do
// the program's own work a second time.
var passed atomic.Bool

// Child carries out one statement in a process that was started for that, and
// does not return there. In any other process it returns at once. It must be
// called at the start of main in a program that uses SQLite files.
func Child() {
	if len(os.Args) == 1 && os.Args[0] == childName {
		os.Exit(serveChild(os.Stdin, os.Stdout))
	}
	passed.Store(true)
}

// An order is what a child does: one statement on one file.
type order struct {
	Path, Name, Description  string
	Verb, SQL, Table, Format string
	Values                   []any
	Rows, Bytes              int
	Write                    bool
}

// A reply is what came of it. Opening and Refused say of which kind Err is.
type reply struct {
	Result           capability.Result
	Err              string
	Opening, Refused bool
}

// serveChild carries out one order. It is told to stop by the end of its input,
// which also comes when its parent dies.
func serveChild(in io.Reader, out io.Writer) int {
	var o order
	if err := gob.NewDecoder(in).Decode(&o); err != nil {
		return childBroken
	}
	limitMemory(childMemory)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var committing atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end as well
		cancel()
		time.Sleep(childGrace)
		if committing.CompareAndSwap(false, true) {
			os.Exit(childStopped)
		}
	}()
	p := plan{
		connection: Connection{Name: o.Name, Description: o.Description, Engine: SQLite, Path: o.Path, Write: o.Write, Bytes: o.Bytes},
		verb:       o.Verb, sql: o.SQL, values: o.Values, table: o.Table, format: o.Format, rows: o.Rows,
	}
	var answer reply
	x, err := newSQLite(ctx, p.connection, p.verb == verbExecute)
	if err != nil {
		answer.Err, answer.Opening = err.Error(), true
	} else {
		x.commits = func() bool { return committing.CompareAndSwap(false, true) }
		answer.Result, err = p.ask(ctx, x)
		x.close()
	}
	if err != nil {
		answer.Err, answer.Result = err.Error(), capability.Result{}
		_, answer.Refused = errors.AsType[*readOnlyError](err)
	}
	if err := gob.NewEncoder(out).Encode(answer); err != nil {
		return childBroken // nobody reads it any more
	}
	return 0
}

// A memoryError is a statement that needs more memory than a child may have.
type memoryError struct{}

func (*memoryError) Error() string {
	return fmt.Sprintf("the statement needs more than %d MiB of memory. Read less data, or use fewer tables, views and subqueries", childMemory>>20)
}

// inChild carries out a plan for an SQLite file in a process of its own.
func inChild(ctx context.Context, p plan) (capability.Result, error) {
	if !passed.Load() {
		return capability.Result{}, &openError{errors.New("start a process for SQLite: this program does not call ken.Helper. Make ken.Helper the first statement of main")}
	}
	var in bytes.Buffer
	c := p.connection
	if err := gob.NewEncoder(&in).Encode(order{c.Path, c.Name, c.Description, p.verb, p.sql, p.table, p.format, p.values, p.rows, c.Bytes, c.Write}); err != nil {
		return capability.Result{}, err
	}
	var out limitedBuffer
	var said firstWords
	cmd := exec.CommandContext(ctx, self())
	cmd.Args = []string{childName}
	cmd.Env = childEnv()
	cmd.Stdout, cmd.Stderr = &out, &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return capability.Result{}, err
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, childKill
	if err := cmd.Start(); err != nil {
		stdin.Close()
		return capability.Result{}, &openError{fmt.Errorf("start a process for SQLite: %w", err)}
	}
	_, _ = stdin.Write(in.Bytes()) // a child that ended already says why
	ended := cmd.Wait()
	stdin.Close()
	return p.childEnded(ctx, &out, &said, cmd.ProcessState.ExitCode(), ended)
}

// childEnded says what came of a child.
func (p plan) childEnded(ctx context.Context, out *limitedBuffer, said *firstWords, status int, ended error) (capability.Result, error) {
	var answer reply
	switch err := gob.NewDecoder(&out.b).Decode(&answer); {
	case err == nil && answer.Err == "":
		return answer.Result, nil
	case err == nil && answer.Opening:
		return capability.Result{}, &openError{errors.New(answer.Err)}
	case err == nil && answer.Refused:
		return capability.Result{}, &readOnlyError{answer.Err}
	case err == nil:
		return capability.Result{}, errors.New(answer.Err)
	}
	switch {
	case status == childStopped && ctx.Err() != nil:
		return capability.Result{}, ctx.Err()
	case said.outOfMemory():
		return capability.Result{}, &memoryError{}
	case p.verb == verbExecute: // it may have ended while it committed
		return capability.Result{}, &uncertainError{fmt.Errorf("the process that ran the statement ended (%v)", ended)}
	case ctx.Err() != nil:
		return capability.Result{}, ctx.Err()
	}
	return capability.Result{}, fmt.Errorf("the process that ran the statement ended without an answer (%v): %s", ended, untrusted.Line(said.b.String(), 200))
}

// childEnv is where SQLite puts its temporary files, and how the race detector of
// a test behaves; nothing else: a child needs no secret of its parent's. One
// processor is enough for one statement, and starting others takes time.
func childEnv() []string {
	env := []string{"GOTRACEBACK=none", "GOMAXPROCS=1"}
	for _, name := range []string{"SQLITE_TMPDIR", "TMPDIR", "TMP", "TEMP", "SystemRoot", "GORACE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// A limitedBuffer takes an answer. One that is longer is none. The buffer is not
// embedded, because its ReadFrom would pass the limit.
type limitedBuffer struct{ b bytes.Buffer }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > childReply {
		return 0, errors.New("the answer is too long")
	}
	return l.b.Write(p)
}

// A firstWords keeps the beginning of what a child prints when it dies.
type firstWords struct{ b bytes.Buffer }

func (t *firstWords) Write(p []byte) (int, error) {
	t.b.Write(p[:min(len(p), max(0, 4096-t.b.Len()))])
	return len(p), nil
}

// outOfMemory reports whether a child died of its limit: Go says "out of memory"
// or "cannot allocate memory", or that it could not create a thread, whose stack
// is memory too; SQLite's C library says "OOM", and the race detector its name.
func (t *firstWords) outOfMemory() bool {
	text := t.b.String()
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "failed to create new OS thread", "newosproc", "pthread_create failed", "OOM", "ThreadSanitizer"},
		func(words string) bool { return strings.Contains(text, words) })
}
