package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/jobs"
	"ken/internal/govern/audit"
	"ken/internal/run/queue"
)

// newJobs returns ken jobs and ken worker.
func newJobs(c *environment) []*cobra.Command {
	return jobs.Commands(jobs.Config{
		Out: c.out, Err: c.err, JSON: &c.json, Session: terminalSession, PrintJSON: c.printJSON,
		Usage: func(err error) error { return usageError{err} },
		Print: func(res capability.Result) { c.printParts(res, nil) },
		With: func(cmd *cobra.Command, run func(context.Context, jobs.App) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				q, err := a.Jobs()
				if err != nil {
					return err
				}
				err = run(ctx, jobs.App{
					Queue: q, By: a.Principal, Add: a.AddJob,
					Call: func(ctx context.Context, given []string) (capability.Call, error) {
						return (&runCommand{c}).callOf(ctx, a, given)
					},
					Record: func(ctx context.Context, event string, j queue.Job) error {
						return a.RecordJob(ctx, audit.Event(event), j, a.Principal)
					},
				})
				if errors.Is(err, jobs.ErrFailed) {
					return errSilent
				}
				return err
			})(cmd, nil)
		},
		Work: func(ctx context.Context, log *slog.Logger, run func(queue.WorkerConfig) error) error {
			return app.Work(ctx, app.Config{ConfigFile: c.configFile, Catalogs: c.catalogs, Log: log}, run)
		},
	})
}
