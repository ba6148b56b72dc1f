package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/serve/auth"
	"ken/internal/serve/daemon"
	"ken/internal/serve/httpapi"
	"ken/internal/serve/shim"
)

func (c *command) serveCommand() *cobra.Command {
	var addr string
	var background bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the HTTP API and MCP", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if background {
				return c.daemon(cmd.Context())
			}
			return c.serveHouse(cmd, addr)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen on this `address` (port 0: any free one); ken.yaml: serve.addr")
	cmd.Flags().BoolVar(&background, "daemon", false, "serve what ken mcp starts, over a socket alone, until nobody needs it")
	return cmd
}

// serveHouse serves over HTTP, and what ken mcp starts besides, where no daemon
// does: then all share one set of servers.
func (c *command) serveHouse(cmd *cobra.Command, addr string) error {
	ctx := cmd.Context()
	log := slog.New(slog.NewTextHandler(c.err, nil))
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working directory: %w; change to another", err)
	}
	var l *daemon.Listener
	if place, err := shim.Where(os.Getenv, dir); err == nil && shim.Supported {
		if l, err = daemon.Listen(place); err != nil {
			log.Info("ken mcp is served by another process", "why", err)
		}
	}
	house := app.NewHouse(context.WithoutCancel(ctx), roomIdle)
	a, done, err := house.Enter(ctx, app.Config{ConfigFile: c.configFile, Catalogs: c.catalogs, Dir: dir, Log: log, Observe: c.progress.observe, Getenv: os.Getenv})
	if err != nil {
		if l != nil {
			l.Close()
		}
		return errors.Join(err, house.Close())
	}
	c.mention(cmd, a)
	if addr == "" {
		addr = a.Settings.Serve.Addr
	}
	go calm(ctx)
	inner, stop := context.WithCancel(ctx)
	hosted := make(chan error, 1)
	if l == nil {
		hosted <- nil
	} else {
		go func() {
			hosted <- l.Serve(inner, daemon.Config{Version: app.Version(), Idle: -1, Log: log, Refuse: daemon.NotOwn}, c.guests(house, log))
		}()
	}
	err = c.serve(ctx, a, addr)
	stop()
	err = errors.Join(err, <-hosted)
	done()
	return errors.Join(err, house.Close())
}

// grace is how long requests may take to finish when the server is asked to
// stop.
// roomIdle is how long what was read of a folder is kept once its last client has
// gone.
const roomIdle = 10 * time.Minute

const grace = 10 * time.Second

func (c *command) serve(ctx context.Context, a *app.App, addr string) error {
	log := slog.New(slog.NewTextHandler(c.err, nil))
	handler, tokens, err := c.site(ctx, a, addr, log)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another with --addr, as in --addr 127.0.0.1:0", addr, err)
	}
	srv := httpapi.NewServer(handler)
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	go c.follow(following, a)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	c.announce("http://"+l.Addr().String(), a.View().Stats(), tokens)
	select {
	case err = <-served:
	case <-ctx.Done():
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		err = srv.Shutdown(bye)
		cancel()
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

func (c *command) announce(url string, s door.Stats, tokens *auth.Tokens) {
	if c.json {
		about := map[string]any{"url": url, "catalog": s}
		if tokens != nil {
			about["tokenFile"] = tokens.Path()
		}
		_ = c.printJSON(about) // nobody reads it: serve all the same
		return
	}
	c.out.linef("ken serves %s on %s (%s/api/v1/catalog, MCP at %s/mcp); Ctrl-C stops it", plural(s.Capabilities, "capability"), url, url, url)
	if tokens != nil {
		c.out.linef("whoever asks needs the token in %s, as in: curl -H \"Authorization: Bearer $(cat %s)\" %s/api/v1/catalog", tokens.Path(), tokens.Path(), url)
	}
}

// patient lets requests take their time: a call may, and a client may listen for
// news as long as it wants.
func patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})); err != nil {
			http.Error(w, "this connection cannot be kept open", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// site makes all that is served at an address, behind the one that says who may
// ask.
func (c *command) site(ctx context.Context, a *app.App, addr string, log *slog.Logger) (http.Handler, *auth.Tokens, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("address %q: %w; write host:port, as in 127.0.0.1:7777", addr, err)}
	}
	set := a.Settings.Serve
	guard := auth.Config{Off: set.Auth == config.AuthOff, Loopback: config.Loopback(host), Hosts: set.Hosts, Origins: set.Origins, Public: []string{"/healthz"}, Log: log}
	who := func(*http.Request) (capability.Principal, bool) { return a.Principal, true }
	if !guard.Off {
		if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
			return nil, nil, err
		}
		if guard.Tokens, err = auth.Open(a.Places.State, a.Principal); err != nil {
			return nil, nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", patient(a.MCP().Handler(who)))
	mux.Handle("/", httpapi.New(httpapi.Config{Door: a.Door, Principal: a.Principal, Version: app.Version(), Log: log, Waiting: ctx}))
	handler, err := auth.Guard(mux, guard)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return handler, guard.Tokens, nil
}
