package cli

import (
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
	return &cobra.Command{
		Use: "doctor", Short: "Check this installation and say how to fix problems", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			facts, err := c.facts(cmd)
			if err != nil {
				return err
			}
			checks := doctor.Examine(facts)
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
