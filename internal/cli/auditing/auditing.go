// Package auditing has the commands of ken audit, which read and verify the audit
// log.
package auditing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/cli/output"
	"ken/internal/duration"
	"ken/internal/govern/audit"
)

// A Config is what the commands need of the program.
type Config struct {
	Out       *output.Printer
	Err       io.Writer
	JSON      *bool // the flag --json, read when a command runs
	PrintJSON func(any) error

	Usage func(error) error // marks a mistake in how a command was called

	// Args makes what a check of arguments refuses an error of usage.
	Args func(check cobra.PositionalArgs) cobra.PositionalArgs

	// Moment reads the value of a flag that is a time, or how long ago one was.
	Moment func(flag, text string, now time.Time) (time.Time, error)

	// With runs a command with the audit log of the open program.
	With func(cmd *cobra.Command, run func(context.Context, Log) error) error
}

// A Log is the audit log of this machine, and where there are others, of all.
type Log struct {
	audit.Archive
	All All // nil: there are no others
}

// All is the audit logs of all machines.
type All interface {
	View(ctx context.Context) (dir string, err error)
	Follow(ctx context.Context, f audit.Filter) iter.Seq2[audit.Entry, error] // the other machines
	Verify(ctx context.Context, elsewhere ...[]byte) (audit.Report, error)
}

// dir returns the folder of all chains.
func (l Log) dir(ctx context.Context) (string, error) {
	if l.All == nil {
		return l.Dir, nil
	}
	return l.All.View(ctx)
}

func (l Log) verify(ctx context.Context, elsewhere ...[]byte) (audit.Report, error) {
	if l.All == nil {
		return l.Verify(ctx, elsewhere...)
	}
	return l.All.Verify(ctx, elsewhere...)
}

// ErrChanged says that the audit log does not verify. Why is printed by then.
var ErrChanged = errors.New("the audit log failed verification")

// Commands returns what belongs under ken audit.
func Commands(c Config) []*cobra.Command {
	return []*cobra.Command{c.query(), c.tail(), c.verify(), c.prove()}
}

// with returns a function for cobra that calls run with the audit log.
func (c Config) with(run func(ctx context.Context, log Log, given []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		return c.With(cmd, func(ctx context.Context, log Log) error { return run(ctx, log, given) })
	}
}

// A filter is what the flags of query and tail say.
type filter struct {
	extension, event, session, since, until string
}

func (f *filter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.extension, "ext", "", "only this `extension`, as in tools.git")
	flags.StringVar(&f.event, "event", "", "only this `event`: "+strings.Join(audit.EventNames(), ", "))
	flags.StringVar(&f.session, "session", "", "only this `session`")
	flags.StringVar(&f.since, "since", "", "only records since this `time`: a duration such as 24h, or 2026-01-31T12:00:00Z")
}

func (f filter) read(c Config, now time.Time) (audit.Filter, error) {
	if names := audit.EventNames(); f.event != "" && !slices.Contains(names, f.event) {
		return audit.Filter{}, c.Usage(fmt.Errorf("--event %s: unknown event; want one of %s", output.Line(f.event), strings.Join(names, ", ")))
	}
	since, err := c.Moment("--since", f.since, now)
	if err != nil {
		return audit.Filter{}, err
	}
	until, err := c.Moment("--until", f.until, now)
	return audit.Filter{Extension: f.extension, Event: f.event, Session: f.session, Since: since, Until: until}, err
}

func (c Config) query() *cobra.Command {
	var f filter
	var all bool
	cmd := &cobra.Command{
		Use: "query", Short: "List the records of calls", Args: c.Args(cobra.NoArgs),
		Example: "  ken audit query --event security_violation --since 48h\n  ken audit query --ext tools.git --json",
		RunE: c.with(func(ctx context.Context, log Log, _ []string) error {
			chosen, err := f.read(c, time.Now())
			if err != nil {
				return err
			}
			dir, err := log.dir(ctx)
			if err != nil {
				return err
			}
			records, printed := []json.RawMessage{}, false
			for e, err := range audit.Query(dir, chosen) {
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err != nil:
					fmt.Fprintln(c.Err, "ken:", output.Line(err.Error()))
				case *c.JSON:
					records = append(records, recordJSON(e))
				case all || f.event != "" || e.Record.Event != audit.Opened:
					c.printRecord(e)
					printed = true
				}
			}
			if *c.JSON {
				return c.PrintJSON(map[string]any{"records": records})
			}
			if !printed {
				fmt.Fprintln(c.Err, "ken: no records found")
			}
			return nil
		}),
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "include the first record of each chain (one chain per process)")
	cmd.Flags().StringVar(&f.until, "until", "", "only records up to this `time`")
	return cmd
}

// recordJSON is the record as it is stored, with its id.
func recordJSON(e audit.Entry) json.RawMessage {
	id, _ := json.Marshal(e.ID) // a string
	return json.RawMessage(`{"id":` + string(id) + "," + strings.TrimPrefix(string(e.Line), "{"))
}

func (c Config) printRecord(e audit.Entry) {
	r := e.Record
	what := r.Target
	if what == "" {
		what = string(r.Command)
	}
	took := ""
	if r.DurationMS != nil {
		took = duration.Text(time.Duration(*r.DurationMS) * time.Millisecond)
	}
	who := r.UserID
	if r.Agent != "" {
		who += " by " + r.Agent
	}
	decided := r.Decision
	if r.Event == audit.Approval {
		decided = strings.TrimSpace(r.Metadata.Notes["answer"] + " " + r.Metadata.Notes["scope"])
	}
	if r.Rule != "" {
		decided = strings.TrimSpace(decided + " " + r.Rule)
	}
	why := r.CommandLine
	if r.Event == audit.Changed {
		why = changed(r)
	}
	if r.Error != nil {
		why = *r.Error
	}
	c.Out.Table([]output.Column{{Style: output.Dim}, {Styles: levelStyles}, {Style: output.Dim}, {Style: output.Bold}, {}, {Style: output.Cyan}, {Style: output.Dim}, {Grow: true}, {Style: output.Dim}}, [][]string{{
		r.Timestamp.Local().Format("2006-01-02 15:04:05"), r.Level, who, string(r.Event), what, decided, took, why, string(e.ID),
	}})
}

// changed returns what was done to an extension or a server, in a few words.
func changed(r audit.Record) string {
	text := r.Action
	if n := r.Metadata.Notes["tool_count"]; n != "" {
		text += ", tools: " + n
	}
	if from := r.Metadata.Notes["from"]; from != "" {
		text += " from " + from
	}
	if r.Status == audit.Running {
		text += " (begins)"
	}
	return text
}

var levelStyles = map[string]string{"DEBUG": output.Dim, "INFO": output.Green, "WARNING": output.Yellow, "ERROR": output.Red}

func (c Config) tail() *cobra.Command {
	var f filter
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use: "tail", Short: "Show the newest records; -f follows new ones", Args: c.Args(cobra.NoArgs),
		RunE: c.with(func(ctx context.Context, log Log, _ []string) error {
			chosen, err := f.read(c, time.Now())
			if err != nil {
				return err
			}
			print := func(e audit.Entry) error {
				if *c.JSON {
					_, err := fmt.Fprintf(c.Out, "%s\n", recordJSON(e))
					return err
				}
				c.printRecord(e)
				return nil
			}
			dir, err := log.dir(ctx)
			if err != nil {
				return err
			}
			if !follow || chosen.Since.IsZero() {
				if err := lastRecords(ctx, dir, chosen, lines, print); err != nil || !follow {
					return err
				}
			}
			return c.follow(ctx, log, chosen, print)
		}),
	}
	f.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow new records until interrupted")
	cmd.Flags().IntVarP(&lines, "lines", "n", 20, "`number` of records")
	return cmd
}

// follow prints new records, of this machine and of all others, until ctx ends.
func (c Config) follow(ctx context.Context, log Log, chosen audit.Filter, print func(audit.Entry) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sources := []iter.Seq2[audit.Entry, error]{audit.Tail(ctx, log.Dir, chosen)}
	if log.All != nil {
		sources = append(sources, log.All.Follow(ctx, chosen))
	}
	var mu sync.Mutex // one record at a time
	var failed error
	var all sync.WaitGroup
	for _, source := range sources {
		all.Go(func() {
			for e, err := range source {
				mu.Lock()
				if err != nil {
					fmt.Fprintln(c.Err, "ken:", output.Line(err.Error()))
				} else if err := print(e); err != nil {
					failed = err
					stop()
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return failed
}

// lastRecords prints the newest few records that a filter chooses, the oldest
// of them first. What cannot be read is for query and verify to tell.
func lastRecords(ctx context.Context, dir string, f audit.Filter, n int, print func(audit.Entry) error) error {
	if n <= 0 {
		return nil
	}
	page, err := audit.Newest(ctx, dir, audit.Search{Filter: f, Chains: true}, "", n)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(page.Entries) {
		if err := print(e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c Config) verify() *cobra.Command {
	var head string
	var all bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify that no record was changed, removed or truncated", Args: c.Args(cobra.NoArgs),
		RunE: c.with(func(ctx context.Context, log Log, _ []string) error {
			var elsewhere [][]byte
			if head != "" {
				data, err := os.ReadFile(head)
				if err != nil {
					return err
				}
				elsewhere = append(elsewhere, data)
			}
			report, err := log.verify(ctx, elsewhere...)
			if err != nil {
				return err
			}
			if *c.JSON {
				err = c.PrintJSON(map[string]any{"ok": report.OK(), "chains": append([]audit.ChainReport{}, report.Chains...), "strays": append([]string{}, report.Strays...)})
			} else {
				c.printTrail(report, all)
			}
			if err == nil && !report.OK() {
				return ErrChanged
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include valid chains in the output")
	cmd.Flags().StringVar(&head, "head", "", "also compare with a signed head that you kept elsewhere, in this `file`")
	return cmd
}

func (c Config) printTrail(r audit.Report, all bool) {
	p, records := c.Out, int64(0)
	for _, chain := range r.Chains {
		records += chain.Records
		if chain.State == audit.Whole && !all {
			continue
		}
		style := output.Red
		if chain.State.OK() {
			style = output.Green
		}
		p.Linef("%s  %s  %d records, %d of them signed", p.Style(style, fmt.Sprintf("%-8s", chain.State)), output.Line(chain.Chain), chain.Records, chain.Signed)
		if !chain.State.OK() {
			p.Linef("          %s: record %d at byte %d of %s", output.Line(chain.Problem), chain.Seq, chain.Offset, output.Line(filepath.Base(chain.File)))
		}
		for _, note := range chain.Notes {
			p.Linef("          %s", p.Style(output.Dim, output.Line(note)))
		}
	}
	for _, stray := range r.Strays {
		p.Linef("%s  %s is not part of the audit log", p.Style(output.Yellow, "stray   "), output.Line(stray))
	}
	verdict := p.Style(output.Green, "The audit log is complete and unchanged.")
	switch {
	case len(r.Chains) == 0:
		verdict = "There are no records yet."
	case !r.OK():
		verdict = p.Style(output.Red, "The audit log is not complete, or it was changed.")
	}
	p.Linef("%s %s, %s", verdict, output.Plural(len(r.Chains), "chain"), output.Plural(int(records), "record"))
}

func (c Config) prove() *cobra.Command {
	return &cobra.Command{
		Use: "prove ID", Short: "Print a proof of one record that anyone with the public key can check", Args: c.Args(cobra.ExactArgs(1)),
		RunE: c.with(func(_ context.Context, log Log, given []string) error {
			proof, key, err := log.Prove(audit.ID(given[0]))
			if err != nil {
				return err
			}
			if err := audit.CheckProof(proof, key); err != nil {
				return err
			}
			if *c.JSON {
				return c.PrintJSON(map[string]any{"proof": proof, "publicKey": key})
			}
			c.Out.Linef("%s\n\n%s hashes lead from this record to the head that was signed:\n\n%s\nPublic key: %s",
				output.Text(proof.Line), fmt.Sprint(len(proof.Hashes)), output.Text(proof.Head), output.Line(key))
			return nil
		}),
	}
}
