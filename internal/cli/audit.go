package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/auditing"
)

func newAudit(c *environment) *cobra.Command {
	return group("audit", "Read and verify the audit log", auditing.Commands(auditing.Config{
		Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Args: args, Moment: moment,
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

// moment reads a time: so long ago, a day, or an instant.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{fmt.Errorf("%s is %q; write a duration, as in 24h, or a time, as in 2026-01-31T12:00:00Z", flag, text)}
}
