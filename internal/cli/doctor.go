package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
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
		doctor.Good: p.style(green, "good"), doctor.Warn: p.style(yellow, "warn"), doctor.Bad: p.style(red, "bad "),
	}
	for _, ch := range checks {
		mark := marks[ch.Grade]
		if ch.Note {
			mark = p.style(dim, "note")
		}
		for i, line := range strings.Split(untrusted.Terminal(ch.Message), "\n") {
			if i == 0 {
				p.linef("%s  %s: %s", mark, p.style(bold, ch.Name), line)
			} else {
				p.linef("      %s", line)
			}
		}
		if ch.Fix != "" {
			p.linef("      %s", p.style(dim, foreign(ch.Fix)))
		}
	}
}
