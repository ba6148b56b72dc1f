package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/serve/httpapi"
)

func (c *command) serveCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the catalog over HTTP on this machine", Args: args(cobra.NoArgs),
		RunE: c.with(func(ctx context.Context, a *app.App, _ []string) error {
			if addr == "" {
				addr = a.Settings.Serve.Addr
			}
			return c.serve(ctx, a, addr)
		}),
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen on this `address` (port 0: any free one); ken.yaml: serve.addr")
	return cmd
}

// grace is how long requests may take to finish when the server is asked to
// stop.
const grace = 10 * time.Second

func (c *command) serve(ctx context.Context, a *app.App, addr string) error {
	if err := loopback(addr); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another with --addr, as in --addr 127.0.0.1:0", addr, err)
	}
	log := slog.New(slog.NewTextHandler(c.err, nil))
	srv := httpapi.NewServer(httpapi.New(httpapi.Config{
		Door: a.Door, Principal: a.Principal, Version: app.Version(), Log: log, Waiting: ctx,
	}))
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched := make(chan error, 1)
	go func() { watched <- a.Watch(watching) }()
	go c.follow(watching, a)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	c.announce("http://"+l.Addr().String(), a.View().Stats())
	select {
	case err = <-served:
	case <-ctx.Done():
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		err = srv.Shutdown(bye)
		cancel()
	}
	stopWatching()
	if werr := <-watched; werr != nil {
		log.Warn("watching the catalog ended", "err", werr)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// follow says what changes while the server runs.
func (c *command) follow(ctx context.Context, a *app.App) {
	version := a.View().Stats().Version
	for {
		news, err := a.Door.Next(ctx, a.Principal, version)
		if err != nil {
			return // ctx ended
		}
		s := news.View.Stats()
		version = s.Version
		line := fmt.Sprintf("catalog %d: %s", version, summary(news))
		if s.Errors > 0 {
			line += "; " + plural(s.Errors, "error") + ", see ken catalog lint"
		}
		fmt.Fprintln(c.err, line)
	}
}

// summary tells changes in a line: the first few by name.
func summary(news door.Changes) string {
	const most = 3
	var parts []string
	for _, ch := range news.Changes[:min(most, len(news.Changes))] {
		part := foreign(string(ch.ID)) + " " + ch.What
		if ch.Note != "" {
			part += " (" + foreign(ch.Note) + ")"
		}
		parts = append(parts, part)
	}
	if more := len(news.Changes) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if len(parts) == 0 {
		return "nothing that is listed changed"
	}
	return strings.Join(parts, ", ")
}

func (c *command) announce(url string, s door.Stats) {
	if c.json {
		_ = c.printJSON(map[string]any{"url": url, "catalog": s}) // nobody reads it: serve all the same
		return
	}
	c.out.linef("ken serves %s on %s (%s/api/v1/catalog); Ctrl-C stops it", plural(s.Capabilities, "capability"), url, url)
}

// loopback refuses to listen where others could reach what has no
// authentication.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("address %q: %w; write host:port, as in 127.0.0.1:7777", addr, err)}
	}
	if config.Loopback(host) {
		return nil
	}
	return usageError{fmt.Errorf("address %q is reachable from other machines, and the server has no authentication yet; use 127.0.0.1", addr)}
}
