package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/serve/doctor"
	"ken/internal/untrusted"
)

// doctorCommand is ken doctor: it examines the installation.
type doctorCommand struct{ *environment }

func newDoctor(env *environment) *cobra.Command {
	c := &doctorCommand{env}
	var cluster, accept bool
	var migrate string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check this installation and say how to fix problems", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks, err := c.checks(cmd, cluster, accept, migrate)
			if err != nil {
				return err
			}
			worst := doctor.Worst(checks)
			if c.json {
				if err := c.printJSON(map[string]any{"worst": worst, "checks": checks}); err != nil {
					return err
				}
			} else {
				c.printChecks(checks)
			}
			if worst == doctor.Bad {
				return errSilent
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&cluster, "cluster", false, "check the replicas that have the same PostgreSQL as their store instead")
	cmd.Flags().BoolVar(&accept, "accept-restore", false, "with --cluster: go on with a store that was put back to an earlier state")
	cmd.Flags().StringVar(&migrate, "migrate", "", "with --cluster: only bring the tables of the store to this version, forward or back; latest: the newest that this program knows")
	return cmd
}

func (c *doctorCommand) checks(cmd *cobra.Command, cluster, accept bool, migrate string) (checks []doctor.Check, err error) {
	if (accept || migrate != "") && !cluster {
		return nil, usageError{errors.New("--accept-restore and --migrate are about all replicas: add --cluster")}
	}
	if !cluster {
		facts, err := c.facts(cmd)
		return doctor.Examine(facts), err
	}
	err = c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
		checks, err = a.Replicas.Doctor(ctx, accept, migrate)
		return err
	})(cmd, nil)
	return checks, err
}

func (c *doctorCommand) facts(cmd *cobra.Command) (doctor.Facts, error) {
	a, err := app.Open(cmd.Context(), app.Config{ConfigFile: c.configFile, Catalogs: c.catalogs})
	var refused *config.Error
	if errors.As(err, &refused) {
		return doctor.Facts{ConfigErr: refused}, nil
	}
	if err != nil {
		return doctor.Facts{}, err
	}
	defer a.Close()
	return a.Facts(cmd.Context()), nil
}

func (c *doctorCommand) printChecks(checks []doctor.Check) {
	p := c.out
	marks := map[doctor.Grade]string{
		doctor.Good: p.Style(output.Green, "good"), doctor.Warn: p.Style(output.Yellow, "warn"), doctor.Bad: p.Style(output.Red, "bad "),
	}
	for _, ch := range checks {
		mark := marks[ch.Grade]
		if ch.Note {
			mark = p.Style(output.Dim, "note")
		}
		for i, line := range strings.Split(untrusted.Terminal(ch.Message), "\n") {
			if i == 0 {
				p.Linef("%s  %s: %s", mark, p.Style(output.Bold, ch.Name), line)
			} else {
				p.Linef("      %s", line)
			}
		}
		if ch.Fix != "" {
			p.Linef("      %s", p.Style(output.Dim, output.Line(ch.Fix)))
		}
	}
}
