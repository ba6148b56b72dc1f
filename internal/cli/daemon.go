package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"ken/internal/app"
	"ken/internal/memory"
	"ken/internal/serve/auth"
	"ken/internal/serve/daemon"
	"ken/internal/serve/mcpserver"
	"ken/internal/serve/shim"
)

// serveDaemon serves the clients that shims connect, until there was none for a
// while.
func serveDaemon(ctx context.Context, stderr io.Writer) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
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
		return nil // the running daemon serves the shim that started this one
	}
	if err != nil {
		return err
	}
	return hostDaemon(ctx, l, daemon.Config{Version: app.Version(), Log: log, Refuse: daemon.NotOwn}, log)
}

// hostDaemon serves clients of a socket.
func hostDaemon(ctx context.Context, l *daemon.Listener, cfg daemon.Config, log *slog.Logger) error {
	pool := app.NewPool(context.WithoutCancel(ctx), workspaceIdle)
	go memory.Trim(ctx)
	err := l.Serve(ctx, cfg, daemonClients(pool, log))
	return errors.Join(err, pool.Close())
}

// daemonClients serves each client by the App of its folder.
func daemonClients(pool *app.Pool, log *slog.Logger) daemon.Handler {
	return func(ctx context.Context, hello shim.Hello, conn net.Conn) error {
		settings, client, surface, err := fromHello(hello, log)
		if err != nil {
			return err
		}
		a, done, err := pool.Enter(ctx, settings)
		if err != nil {
			return err
		}
		defer done()
		who := a.Principal
		who.Agent = client
		if err := a.MCP().Serve(ctx, who, conn, mcpserver.Hello{Surface: surface}); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// fromHello reads what a client was started with: its name where it has one, and
// the surface that it asks for.
func fromHello(h shim.Hello, log *slog.Logger) (cfg app.Config, client, surface string, err error) {
	cfg = app.Config{Dir: h.Dir, Log: log, Getenv: func(name string) string {
		if v, ok := h.Env[name]; ok || name == "HOME" || name == "PATH" || strings.HasPrefix(name, "KEN_") || strings.HasPrefix(name, "XDG_") {
			return v // a client that has none has none
		}
		return os.Getenv(name) // what the first client of the daemon had
	}}
	flags := pflag.NewFlagSet("mcp", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&cfg.ConfigFile, "config", "", "")
	flags.StringArrayVar(&cfg.Catalogs, "catalog", nil, "")
	flags.StringVar(&client, "client", "", "")
	flags.StringVar(&surface, "surface", "", "")
	if err := flags.Parse(h.Args); err != nil {
		return cfg, "", "", fmt.Errorf("read the flags of ken mcp: %w", err)
	}
	if client != "" {
		err = auth.CheckAgent(client)
	}
	return cfg, client, surface, err
}
