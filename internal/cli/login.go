package cli

import (
	"context"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
)

// loginCommand is ken login: it logs in to a remote MCP server.
type loginCommand struct{ *environment }

func newLogin(env *environment) *cobra.Command {
	c := &loginCommand{env}
	return &cobra.Command{
		Use: "login SERVER", Short: "Log in to a remote MCP server", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			c.serving = true // a server that wants a login cannot be listed before it
			return c.withApp(c.login)(cmd, given)
		},
	}
}

func (c *loginCommand) login(ctx context.Context, a *app.App, given []string) error {
	err := a.Servers.Login(ctx, given[0], func(_ context.Context, address string) error {
		c.out.Linef("Open this address and agree; Ken waits here:\n\n  %s\n", output.Line(address))
		openInBrowser(address)
		return nil
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"server": given[0], "loggedIn": true})
	}
	c.out.Linef("Ken is logged in to %s; the token is sealed in secrets.age", output.Line(given[0]))
	return nil
}

// openInBrowser opens an address in the person's browser where that is
// possible, and reports whether it could be tried. No shell reads the address. It
// is a convenience: the address is on the screen.
func openInBrowser(address string) bool {
	opener := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		opener = "open"
	case "linux":
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return false
		}
	default:
		return false
	}
	cmd := exec.Command(opener, address)
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }()
	return true
}
