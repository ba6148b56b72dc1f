package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"ken/internal/app"
)

// versionCommand is ken version: it prints the version.
type versionCommand struct{ *environment }

func newVersion(env *environment) *cobra.Command {
	c := &versionCommand{env}
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.printJSON(map[string]string{"version": app.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			c.out.Linef("ken %s (%s, %s/%s)", app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
