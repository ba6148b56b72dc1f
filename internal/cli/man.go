package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/manual"
	"ken/internal/cli/output"
)

// manCommand is ken man: it writes the manual pages. Releases call it.
type manCommand struct{ *environment }

func newMan(env *environment) *cobra.Command {
	c := &manCommand{env}
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages into a directory", Args: args(cobra.ExactArgs(1)), Hidden: true,
		RunE: func(cmd *cobra.Command, given []string) error {
			dir := given[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make the directory for the pages: %w", err)
			}
			build := app.ThisBuild()
			pages := manual.Pages(cmd.Root(), build.Version, build.Day())
			for _, p := range pages {
				if err := os.WriteFile(filepath.Join(dir, p.Name), p.Text, 0o644); err != nil {
					return fmt.Errorf("write a manual page: %w", err)
				}
			}
			if c.json {
				return c.printJSON(map[string]any{"dir": dir, "pages": len(pages)})
			}
			c.out.Linef("%s: %s", output.Line(dir), output.Plural(len(pages), "page"))
			return nil
		},
	}
}
