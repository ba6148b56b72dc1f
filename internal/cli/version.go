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
			build := app.ThisBuild()
			if c.json {
				about := map[string]string{"version": build.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
				if build.Commit != "" {
					about["commit"], about["date"] = build.Commit, build.Date
				}
				return c.printJSON(about)
			}
			c.out.Linef("ken %s, %s, %s/%s", build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
