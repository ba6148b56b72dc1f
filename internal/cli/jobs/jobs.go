// Package jobs has the commands for calls that run later: ken jobs and ken worker.
package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/run/queue"
)

// An App is what the commands need of the program once it is open.
type App struct {
	Queue queue.Queue
	By    capability.Principal // who calls the commands

	// Call reads what to run from arguments, as ken run does.
	Call func(ctx context.Context, given []string) (capability.Call, error)
	Add  func(context.Context, queue.Job) (queue.Job, error)

	// Record records what was done with a job.
	Record func(ctx context.Context, event string, j queue.Job) error
}

// Config is what the commands need before that.
type Config struct {
	Out     *output.Printer
	Err     io.Writer
	JSON    *bool // the flag --json, read when a command runs
	Session func() string

	// With opens the program for a command.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error

	// Work opens the program as a worker does.
	Work func(ctx context.Context, log *slog.Logger, run func(queue.WorkerConfig) error) error

	Usage     func(error) error // marks a mistake in how a command was called
	PrintJSON func(any) error
	Print     func(capability.Result) // a result, as ken run prints it
}

// ErrFailed ends a command with status 1 when everything was said.
var ErrFailed = errors.New("see above")

// Commands returns ken jobs and ken worker.
func Commands(c Config) []*cobra.Command {
	group := &cobra.Command{
		Use: "jobs", Short: "Add, list, show, cancel and retry calls that run later; list workers",
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) > 0 {
				return c.Usage(fmt.Errorf("ken jobs has no command %q; see ken jobs --help", given[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(c.add(), c.list(), c.show(), c.cancel(), c.retry(), c.workers())
	return []*cobra.Command{group, c.worker()}
}

// one takes exactly one id.
func (c Config) one(cmd *cobra.Command, given []string) error {
	if len(given) != 1 {
		return c.Usage(fmt.Errorf("%s takes one job id; ken jobs list shows the ids", cmd.CommandPath()))
	}
	return nil
}

func (c Config) add() *cobra.Command {
	var j queue.Job
	var at, every, cron string
	cmd := &cobra.Command{
		Use: `add "/command action arguments"`, Short: "Add a call that a worker runs, now or later",
		Long: "Add a slash command, or a capability by its id with its arguments as JSON. Ken prints\n" +
			"the id of the job at once; ken worker runs the job. Ken checks rules, grants and approvals\n" +
			"when the job starts, for you and in this session.",
		Example: "  ken jobs add \"/backup run\"\n  ken jobs add --at 22:30 tool:write_file '{\"path\":\"a.txt\",\"content\":\"x\"}'\n" +
			"  ken jobs add --every 1h --priority 5 \"/mail fetch\"\n  ken jobs add --cron \"0 3 * * 1-5\" \"/report build\"",
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) == 0 {
				return c.Usage(errors.New(`nothing to run; write a command, as in ken jobs add "/list-files", or an id with its arguments; see ken jobs add --help`))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := j.When(at, every, cron, time.Now()); err != nil {
				return c.Usage(err)
			}
			return c.With(cmd, func(ctx context.Context, a App) error { return c.enqueue(ctx, a, j, given) })
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the command is its own
	cmd.Flags().StringVar(&at, "at", "", "run at this `time`: 22:30, 2026-01-31T12:00, or a duration from now such as 2h; with --every, the first time")
	cmd.Flags().StringVar(&every, "every", "", "run again and again after this `duration`, such as 90m")
	cmd.Flags().StringVar(&cron, "cron", "", "run by these five `fields`: minute, hour, day, month, weekday, in local time")
	cmd.Flags().IntVar(&j.Priority, "priority", 0, "`number` from -100 to 100; jobs with a higher one run first")
	cmd.Flags().IntVar(&j.Retries, "retries", 0, "`number` of further attempts after a failure, if repeating is safe")
	cmd.Flags().StringVar(&j.Call.Session, "session", "", "`name` of the session for approvals and results (default: this terminal)")
	cmd.Flags().StringVar(&j.Call.Mode, "mode", "", "`mode` to run in (policy.modes)")
	return cmd
}

func (c Config) enqueue(ctx context.Context, a App, j queue.Job, given []string) error {
	call, err := a.Call(ctx, given)
	if err != nil {
		return err
	}
	call.Principal, call.Session, call.Mode = a.By, j.Call.Session, j.Call.Mode
	if call.Session == "" {
		call.Session = c.Session()
	}
	j.Call, j.Surface = call, "run"
	j, err = a.Add(ctx, j)
	if err != nil {
		return err
	}
	if *c.JSON {
		err = c.PrintJSON(view{Job: j})
	} else {
		c.Out.Linef("%s  %s", c.Out.Style(output.Bold, j.ID), output.Line(state(j)))
	}
	members, merr := a.Queue.Members(ctx)
	if merr == nil && len(members) == 0 {
		fmt.Fprintln(c.Err, "ken: no worker is running, so the job waits; start one with ken worker")
	}
	return err
}

// state says in a few words where a job stands.
func state(j queue.Job) string {
	switch {
	case j.State == queue.Scheduled && j.Schedule != "":
		return fmt.Sprintf("%s: %s, next at %s", j.State, j.Schedule, j.At.Local().Format(time.DateTime))
	case j.State == queue.Scheduled:
		return fmt.Sprintf("%s for %s", j.State, j.At.Local().Format(time.DateTime))
	}
	return string(j.State)
}

func (c Config) list() *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, the oldest first",
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) > 0 {
				return c.Usage(fmt.Errorf("ken jobs list takes no argument %q; see ken jobs list --help", given[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			var f queue.Filter
			for _, s := range states {
				if !slices.Contains(queue.States(), queue.State(s)) {
					return c.Usage(fmt.Errorf("--state %s: want one of %s", s, strings.Join(words(queue.States()), ", ")))
				}
				f.States = append(f.States, queue.State(s))
			}
			return c.With(cmd, func(ctx context.Context, a App) error { return c.printList(ctx, a, f) })
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only jobs in this `state` (repeatable)")
	return cmd
}

func words(list []queue.State) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

func (c Config) printList(ctx context.Context, a App, f queue.Filter) error {
	jobs, err := a.Queue.List(ctx, f)
	live, merr := a.Queue.Members(ctx)
	err = errors.Join(err, merr)
	for i, j := range jobs {
		jobs[i].Why = cmp.Or(queue.Blocked(j, live), j.Why)
	}
	if *c.JSON {
		if jobs == nil {
			jobs = []queue.Job{}
		}
		return errors.Join(c.PrintJSON(map[string]any{"jobs": jobs}), err)
	}
	var rows [][]string
	for _, j := range jobs {
		rows = append(rows, []string{j.ID, string(j.State), fmt.Sprintf("%+d", j.Priority), when(j), call(j), j.Why})
	}
	c.Out.Table([]output.Column{{Head: "job", Style: output.Bold}, {Head: "state", Styles: map[string]string{
		"done": output.Green, "failed": output.Red, "unknown": output.Red, "waiting": output.Yellow, "running": output.Yellow,
	}}, {Head: "priority", Style: output.Dim}, {Head: "time", Style: output.Dim}, {Head: "call", Grow: true}, {Head: "why", Style: output.Dim}}, rows)
	if len(jobs) == 0 && err == nil {
		why := "there are no jobs; ken jobs add adds one"
		if len(f.States) > 0 {
			why = "no job is " + strings.Join(words(f.States), " or ")
		}
		fmt.Fprintln(c.Err, "ken:", why)
	}
	return err
}

// when says the time that matters most of a job.
// call returns what a job calls, with its arguments where there are any.
func call(j queue.Job) string {
	text := string(j.Call.Target)
	if args := strings.TrimSpace(string(j.Call.Arguments)); args != "" && args != "{}" && args != "null" {
		text += " " + args
	}
	return text
}

func when(j queue.Job) string {
	at, what := j.Added, "added"
	switch {
	case j.State == queue.Scheduled:
		at, what = j.At, "at"
	case j.State == queue.Running:
		at, what = j.Started, "since"
	case !j.Ended.IsZero():
		at, what = j.Ended, "ended"
	}
	text := what + " " + at.Local().Format(time.DateTime)
	if j.Schedule != "" {
		text += ", " + j.Schedule
	}
	return text
}

// A view is a job with what belongs to it, for --json.
type view struct {
	Job      queue.Job          `json:"job"`
	Progress *queue.Progress    `json:"progress,omitempty"`
	Result   *capability.Result `json:"result,omitempty"`
}

func (c Config) show() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a job, its progress and its result",
		Long: "Show a job, its progress and its result. With --wait, wait until the job has ended.\n" +
			"The exit status is then 0 if it is done, 1 if not, and 4 if it waits for approval.",
		Args: c.one,
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error { return c.print(ctx, a, given[0], wait) })
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the job has ended or waits for approval")
	return cmd
}

// waitEvery is how often ken jobs show --wait looks.
const waitEvery = 100 * time.Millisecond

func (c Config) print(ctx context.Context, a App, id string, wait bool) error {
	j, err := a.Queue.Get(ctx, id)
	for err == nil && wait && !j.State.Final() && j.State != queue.Waiting {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitEvery):
		}
		j, err = a.Queue.Get(ctx, id)
	}
	if err != nil {
		return err
	}
	live, err := a.Queue.Members(ctx)
	if err != nil {
		return err
	}
	j.Why = cmp.Or(queue.Blocked(j, live), j.Why)
	v := view{Job: j}
	if p, ok, err := a.Queue.Progress(ctx, id); err == nil && ok {
		v.Progress = &p
	}
	if res, ok, err := a.Queue.Result(ctx, id); err == nil && ok {
		v.Result = &res
	}
	end := error(nil)
	switch {
	case wait && j.State == queue.Waiting:
		end = &capability.Error{Kind: capability.Unapproved, Op: "job", Target: id, Err: errors.New("it waits for approval"), Fix: "ken approve grant " + j.Ticket}
	case wait && j.State != queue.Done:
		end = ErrFailed
	}
	if *c.JSON {
		return errors.Join(c.PrintJSON(v), end)
	}
	c.printFacts(v)
	if v.Result != nil {
		c.Print(*v.Result)
	}
	return end
}

// printFacts prints what is known of a job but for its result. Where there is a
// result it goes to standard error, so that the output is the result alone.
func (c Config) printFacts(v view) {
	j := v.Job
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	facts := [][2]string{
		{"job", j.ID}, {"state", state(j)}, {"why", j.Why}, {"call", strings.TrimSpace(string(j.Call.Target) + " " + j.Call.Action + " " + string(j.Call.Arguments))},
		{"for", j.Call.Principal.ID}, {"session", j.Call.Session}, {"folder", j.Folder}, {"priority", fmt.Sprint(j.Priority)},
		{"schedule", j.Schedule}, {"run of", j.Parent}, {"runs", runs(j)}, {"last run", j.Last},
		{"added", stamp(j.Added)}, {"started", stamp(j.Started)}, {"ended", stamp(j.Ended)}, {"attempt", attempt(j)},
		{"effect", j.Effect},
	}
	if v.Result != nil {
		facts = append(facts, [2]string{"record", v.Result.Meta["record"]})
	}
	if p := v.Progress; p != nil {
		facts = append(facts, [2]string{"progress", progress(*p)}, [2]string{"output", strings.TrimSpace(p.Output)})
	}
	w := io.Writer(c.Out)
	if v.Result != nil {
		w = c.Err
	}
	for _, f := range facts {
		if f[1] != "" {
			fmt.Fprintf(w, "%-9s %s\n", f[0], output.Line(f[1]))
		}
	}
}

func runs(j queue.Job) string {
	switch {
	case j.Schedule == "":
		return ""
	case j.Skipped > 0:
		return fmt.Sprintf("%d, and %d left out because the one before had not ended", j.Runs, j.Skipped)
	}
	return fmt.Sprint(j.Runs)
}

func attempt(j queue.Job) string {
	if j.Attempt == 0 && j.Retries == 0 {
		return ""
	}
	return fmt.Sprintf("%d, at most %d by itself", j.Attempt+1, j.Retries+1)
}

func progress(p queue.Progress) string {
	switch {
	case p.Total > 0:
		return strings.TrimSpace(fmt.Sprintf("%.0f%% %s", 100*p.Done/p.Total, p.Message))
	case p.Done > 0:
		return strings.TrimSpace(fmt.Sprintf("%g %s", p.Done, p.Message))
	}
	return p.Message
}

func (c Config) cancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Cancel a job or a schedule; a running call is stopped", Args: c.one,
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error {
				j, err := a.Queue.Cancel(ctx, given[0], a.By.ID)
				if err == nil {
					err = a.Record(ctx, "job_cancelled", j)
				}
				if err != nil {
					return err
				}
				if *c.JSON {
					return c.PrintJSON(view{Job: j})
				}
				if j.State == queue.Running {
					c.Out.Linef("%s is being stopped; ken jobs show --wait %s says how it ended", j.ID, j.ID)
					return nil
				}
				c.Out.Linef("%s  %s", c.Out.Style(output.Bold, j.ID), j.State)
				return nil
			})
		},
	}
}

func (c Config) retry() *cobra.Command {
	var again bool
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Run a job again that failed, was cancelled or has an unknown outcome", Args: c.one,
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error {
				j, err := a.Queue.Retry(ctx, given[0], again)
				if err == nil {
					err = a.Record(ctx, "job_retried", j)
				}
				if err != nil {
					return err
				}
				if *c.JSON {
					return c.PrintJSON(view{Job: j})
				}
				c.Out.Linef("%s  %s", c.Out.Style(output.Bold, j.ID), j.State)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&again, "again", false, "run an unknown job again, even though it may have had its effect")
	return cmd
}

func (c Config) workers() *cobra.Command {
	return &cobra.Command{
		Use: "workers", Short: "List the workers that run jobs now",
		Long: "List the workers that run jobs now: their machine, how many jobs they run and can run, the\n" +
			"strongest sandbox profile there, and what waiting jobs need and they lack.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.With(cmd, func(ctx context.Context, a App) error {
				live, err := a.Queue.Members(ctx)
				if err != nil {
					return err
				}
				if *c.JSON {
					return c.PrintJSON(map[string]any{"workers": append([]queue.Member{}, live...)})
				}
				var rows [][]string
				for _, m := range live {
					lacks, held := "", ""
					if m.Sandbox != "" {
						held = "sandbox profile " + m.Sandbox
					}
					if len(m.Lacks) > 0 {
						lacks = "has no " + strings.Join(m.Lacks, ", no ")
					}
					rows = append(rows, []string{m.ID, m.Host, m.Platform, fmt.Sprintf("runs %d of %d", m.Running, m.Most), held, lacks})
				}
				c.Out.Table([]output.Column{{Style: output.Bold}, {}, {Style: output.Dim}, {}, {Style: output.Dim}, {Style: output.Yellow}}, rows)
				if len(live) == 0 {
					fmt.Fprintln(c.Err, "ken: no worker is running; start one with ken worker, or ken serve")
				}
				return nil
			})
		},
	}
}

func (c Config) worker() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "worker", Short: "Run jobs until the worker is stopped",
		Long: "Run jobs, the highest priority first, until the worker is stopped with Ctrl-C or SIGTERM.\n" +
			"A stopped worker takes no new jobs and waits for the running ones (serve.drain). Any number\n" +
			"of workers may run. Each job runs in the folder where it was added. With --once, the worker ends when no job is due.",
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) > 0 {
				return c.Usage(fmt.Errorf("ken worker takes no argument %q; see ken worker --help", given[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewTextHandler(c.Err, nil))
			return c.Work(cmd.Context(), log, func(cfg queue.WorkerConfig) error {
				cfg.Once = once
				var printing sync.Mutex
				cfg.Record = func(j queue.Job) {
					printing.Lock()
					defer printing.Unlock()
					c.ended(j)
				}
				w, err := queue.NewWorker(cfg)
				if err != nil {
					return err
				}
				return w.Run(cmd.Context(), func() {
					fmt.Fprintf(c.Err, "ken: worker %s (process %d) runs up to %s at a time; Ctrl-C stops it\n", w.ID(), os.Getpid(), output.Plural(cfg.Concurrent(), "job"))
				})
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "end when no job is left to run now")
	return cmd
}

// ended prints what came of a job.
func (c Config) ended(j queue.Job) {
	if *c.JSON {
		_ = json.NewEncoder(c.Out).Encode(j) // the reader is gone; the job is kept
		return
	}
	c.Out.Linef("%s  %s  %s  %s", c.Out.Style(output.Bold, j.ID), output.Line(state(j)), output.Line(string(j.Call.Target)), output.Line(j.Why))
}
