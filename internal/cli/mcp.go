package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/internal/app"
	"ken/internal/serve/daemon"
	"ken/internal/serve/mcpserver"
	"ken/internal/serve/shim"
)

func (c *command) mcpCommand() *cobra.Command {
	var alone, stop bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP over standard input and output; a client starts this", Args: args(cobra.NoArgs),
		Long: "Serve MCP over standard input and output. All that a user starts join one daemon, which is\n" +
			"started with the first of them, so that five windows share one set of servers.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stop {
				return c.stopDaemon()
			}
			if !alone && shim.Supported {
				// Flags before the command led here; see shim.Mine.
				if shim.Main(c.flags()) != 0 {
					return errSilent
				}
				return nil
			}
			c.serving = true
			return c.with(c.mcpAlone)(cmd, nil)
		},
	}
	cmd.Flags().BoolVar(&alone, "standalone", false, "serve from this very process, and start the servers for it alone")
	cmd.Flags().BoolVar(&stop, "stop", false, "have the daemon end once its clients have; the next ken mcp starts a new one")
	cmd.MarkFlagsMutuallyExclusive("standalone", "stop")
	return cmd
}

// stopDaemon asks the daemon to make room.
func (c *command) stopDaemon() error {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w; change to another", err)
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
		c.out.linef("No daemon runs at %s", foreign(place.Socket))
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
	when := "it ends now"
	if was.Clients > 0 {
		when = "it ends after its " + plural(was.Clients, "client")
	}
	c.out.linef("The daemon, process %d, takes no more clients: %s. The next ken mcp starts a new one.", was.PID, when)
	return nil
}

// flags are those that the daemon must know.
func (c *command) flags() []string {
	var out []string
	if c.configFile != "" {
		out = append(out, "--config="+c.configFile)
	}
	for _, path := range c.catalogs {
		out = append(out, "--catalog="+path)
	}
	return out
}

// mcpAlone serves one client from this process.
func (c *command) mcpAlone(ctx context.Context, a *app.App, _ []string) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- a.Watch(watching) }()
	err := a.MCP().Serve(ctx, a.Principal, stdio{c.in, c.out}, mcpserver.Hello{})
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

// daemon serves the clients that shims bring, until nobody was there for a
// while.
func (c *command) daemon(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(c.err, nil))
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	place, err := shim.Where(os.Getenv, cwd)
	if err != nil {
		return err
	}
	l, err := daemon.Listen(place)
	if errors.Is(err, daemon.ErrRunning) {
		return nil // whoever started this one is served by that
	}
	if err != nil {
		return err
	}
	return c.host(ctx, l, daemon.Config{Version: app.Version(), Log: log, Refuse: daemon.NotOwn}, log)
}

// host serves clients of a socket.
func (c *command) host(ctx context.Context, l *daemon.Listener, cfg daemon.Config, log *slog.Logger) error {
	house := app.NewHouse(context.WithoutCancel(ctx), roomIdle)
	go calm(ctx)
	err := l.Serve(ctx, cfg, c.guests(house, log))
	return errors.Join(err, house.Close())
}

// guests serves each client by the App of its folder.
func (c *command) guests(house *app.House, log *slog.Logger) daemon.Handler {
	return func(ctx context.Context, hello shim.Hello, conn net.Conn) error {
		settings, err := fromHello(hello, log)
		if err != nil {
			return err
		}
		a, done, err := house.Enter(ctx, settings)
		if err != nil {
			return err
		}
		defer done()
		if err := a.MCP().Serve(ctx, a.Principal, conn, mcpserver.Hello{}); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// fromHello reads what a client was started with.
func fromHello(h shim.Hello, log *slog.Logger) (app.Config, error) {
	cfg := app.Config{Dir: h.Dir, Log: log, Getenv: func(name string) string {
		if v, ok := h.Env[name]; ok || name == "HOME" || name == "PATH" || strings.HasPrefix(name, "KEN_") || strings.HasPrefix(name, "XDG_") {
			return v // a client that has none has none
		}
		return os.Getenv(name) // what the first client of the daemon had
	}}
	flags := pflag.NewFlagSet("mcp", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.ConfigFile, "config", "", "")
	flags.StringArrayVar(&cfg.Catalogs, "catalog", nil, "")
	if err := flags.Parse(h.Args); err != nil {
		return cfg, fmt.Errorf("read the flags of ken mcp: %w", err)
	}
	return cfg, nil
}

func (c *command) loginCommand() *cobra.Command {
	return &cobra.Command{
		Use: "login SERVER", Short: "Let Ken use a remote MCP server on your behalf", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			c.serving = true // a server that wants a login cannot be listed before it
			return c.with(c.login)(cmd, given)
		},
	}
}

func (c *command) login(ctx context.Context, a *app.App, given []string) error {
	err := a.Login(ctx, given[0], func(_ context.Context, address string) error {
		c.out.linef("Open this address and agree; Ken waits here:\n\n  %s\n", foreign(address))
		openInBrowser(address)
		return nil
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"server": given[0], "loggedIn": true})
	}
	c.out.linef("Ken is logged in to %s; the token is sealed in secrets.age", foreign(given[0]))
	return nil
}

// openInBrowser opens an address in the person's browser where that is
// possible. No shell reads it. It is a convenience: the address is on the
// screen.
func openInBrowser(address string) {
	opener := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		opener = "open"
	case "linux":
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	default:
		return
	}
	if cmd := exec.Command(opener, address); cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
