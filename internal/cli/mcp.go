package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/memory"
	"ken/internal/serve/auth"
	"ken/internal/serve/mcpserver"
	"ken/internal/serve/shim"
)

// mcpCommand is ken mcp: it serves MCP over standard input and output.
type mcpCommand struct{ *environment }

func newMCP(env *environment) *cobra.Command {
	c := &mcpCommand{env}
	var alone, stop bool
	var client, surface string
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP over standard input and output; a client starts this", Args: args(cobra.NoArgs),
		Long: "Serve MCP over standard input and output. All ken mcp processes of a user share one daemon,\n" +
			"so all windows use the same set of servers. The first process starts the daemon.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stop {
				return c.stopDaemon()
			}
			if err := auth.CheckAgent(client); client != "" && err != nil {
				return usageError{err}
			}
			if surface != "" && surface != "direct" && surface != "bridge" {
				return usageError{errors.New("--surface is direct or bridge")}
			}
			if !alone && shim.Supported {
				// Flags before the command led here; see shim.Mine.
				if shim.Main(c.flags(client, surface)) != 0 {
					return errSilent
				}
				return nil
			}
			c.serving, c.stays = true, true
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return c.mcpAlone(ctx, a, client, surface)
			})(cmd, nil)
		},
	}
	cmd.Flags().BoolVar(&alone, "standalone", false, "serve without a daemon, with servers of its own")
	cmd.Flags().BoolVar(&stop, "stop", false, "stop the daemon after its current clients; the next ken mcp starts a new one")
	cmd.Flags().StringVar(&client, "client", "", "the `name` of the client that starts this, as in ken connect; rules with agents apply to it")
	cmd.Flags().StringVar(&surface, "surface", "", "the `surface` for this client, direct or bridge, where mcp.surface and mcp.surfaces leave it open")
	cmd.MarkFlagsMutuallyExclusive("standalone", "stop")
	return cmd
}

// stopDaemon asks the daemon to make room.
func (c *mcpCommand) stopDaemon() error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot find the working directory: %w; change to a folder that exists", err)
	}
	place, err := shim.Where(os.Getenv, cwd)
	if err != nil {
		return err
	}
	was, err := shim.Ask(place)
	if errors.Is(err, shim.ErrAbsent) {
		if c.json {
			return c.printJSON(map[string]any{"running": false})
		}
		c.out.Linef("No daemon runs at %s", output.Line(place.Socket))
		return nil
	}
	if err == nil {
		err = shim.Retire(place)
	}
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"running": true, "pid": was.PID, "clients": was.Clients})
	}
	if was.Stays {
		c.out.Linef("ken serve, process %d, takes no more clients of ken mcp. It goes on serving over HTTP. The next ken mcp starts a daemon.", was.PID)
		return nil
	}
	when := "it ends now"
	if was.Clients > 0 {
		when = "it ends after its " + output.Plural(was.Clients, "client")
	}
	c.out.Linef("The daemon, process %d, takes no more clients: %s. The next ken mcp starts a new one.", was.PID, when)
	return nil
}

// flags are those that the daemon must know.
func (c *mcpCommand) flags(client, surface string) []string {
	var out []string
	if client != "" {
		out = append(out, "--client="+client)
	}
	if surface != "" {
		out = append(out, "--surface="+surface)
	}
	if c.configFile != "" {
		out = append(out, "--config="+c.configFile)
	}
	for _, path := range c.catalogs {
		out = append(out, "--catalog="+path)
	}
	return out
}

// mcpAlone serves one client from this process.
func (c *mcpCommand) mcpAlone(ctx context.Context, a *app.App, client, surface string) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- a.Watch(watching) }()
	go memory.Trim(watching)
	who := a.Principal
	who.Agent = client
	err := a.MCP().Serve(ctx, who, stdio{shim.Input(c.in), c.out}, mcpserver.Hello{Surface: surface})
	stop()
	return errors.Join(err, <-watched)
}

// stdio is a client on standard input and output.
type stdio struct {
	io.Reader
	io.Writer
}

// Close ends the reading, where that can be ended.
func (s stdio) Close() error {
	if f, ok := s.Reader.(*os.File); ok {
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
	return nil
}
