package cli

import (
	"github.com/spf13/cobra"

	"ken/internal/cli/output"
	"ken/internal/config/sample"
	"ken/internal/dirs"
)

// initCommand is ken init: it writes a first ken.yaml.
type initCommand struct{ *environment }

func newInit(env *environment) *cobra.Command {
	c := &initCommand{env}
	return &cobra.Command{
		Use: "init", Short: "Write a commented ken.yaml and a small sample catalog", Args: args(cobra.NoArgs),
		Long: "Write a commented ken.yaml and a small sample catalog into your Ken directory (~/.ken).\n" +
			"Existing files are not changed.",
		RunE: func(*cobra.Command, []string) error {
			places, err := dirs.Here()
			if err != nil {
				return err
			}
			dir := places.Home
			written, kept, err := sample.Write(dir)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"dir": dir, "written": listOf(written), "kept": listOf(kept)})
			}
			for _, f := range written {
				c.out.Linef("%s %s", c.out.Style(output.Green, "wrote"), output.Line(f))
			}
			for _, f := range kept {
				c.out.Linef("%s %s, which was there already", c.out.Style(output.Dim, "kept "), output.Line(f))
			}
			c.out.Linef("\nThe starter catalog stays beside what you have, until ken config set catalog.starter off.")
			c.out.Linef("\nNext: ken catalog list, ken discover \"a message\", ken doctor")
			return nil
		},
	}
}
