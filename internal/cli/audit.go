package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/auditing"
	"ken/internal/cli/moment"
)

func newAudit(c *environment) *cobra.Command {
	return group("audit", "Read and verify the audit log", auditing.Commands(auditing.Config{
		Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Args: args, Moment: parseMoment,
		Usage: func(err error) error { return usageError{err} },
		With: func(cmd *cobra.Command, run func(context.Context, auditing.Log) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				log := auditing.Log{Archive: a.Archive}
				if all := a.Replicas.Audit(); all != nil {
					log.All = all
				}
				err := run(ctx, log)
				if errors.Is(err, auditing.ErrChanged) {
					return errSilent
				}
				return err
			})(cmd, nil)
		},
	})...)
}

// parseMoment is [moment.Parse] whose errors are those of a wrong use.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	t, err := moment.Parse(flag, text, now)
	if err != nil {
		return t, usageError{err}
	}
	return t, nil
}
