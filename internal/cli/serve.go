package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/memory"
	"ken/internal/run/queue"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/daemon"
	"ken/internal/serve/httpapi"
	"ken/internal/serve/shim"
)

// serveCommand is ken serve: it serves the page, the API and MCP.
type serveCommand struct{ *environment }

func newServe(env *environment) *cobra.Command {
	c := &serveCommand{env}
	var addr string
	var background, browser bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the page, the HTTP API and MCP", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if background {
				return serveDaemon(cmd.Context(), c.err)
			}
			return c.serveAll(cmd, addr, browser)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "listen on this `address` (port 0: any free port); default: serve.addr in ken.yaml")
	cmd.Flags().BoolVar(&browser, "open", false, "open the page in the browser")
	cmd.Flags().BoolVar(&background, "daemon", false, "run as the daemon that ken mcp starts: on a socket only, until no client is left")
	return cmd
}

// serveAll serves over HTTP, and what ken mcp starts besides, where no daemon
// does: then all share one set of servers.
func (c *serveCommand) serveAll(cmd *cobra.Command, addr string, browser bool) error {
	ctx := cmd.Context()
	log := slog.New(slog.NewTextHandler(c.err, nil))
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot find the working directory: %w; change to a folder that exists", err)
	}
	var l *daemon.Listener
	if place, err := shim.Where(os.Getenv, dir); err == nil && shim.Supported {
		switch l, err = daemon.Listen(place); {
		case errors.Is(err, daemon.ErrRunning):
			log.Info("another Ken already serves ken mcp; this one serves HTTP only", "process", shim.Running(place))
		case err != nil:
			log.Warn("ken mcp is not served here: its socket cannot be made", "why", err)
		}
	}
	go memory.Trim(ctx)
	pool := app.NewPool(context.WithoutCancel(ctx), workspaceIdle)
	cfg := app.Config{ConfigFile: c.configFile, Catalogs: c.catalogs, Dir: dir, Log: log, Observe: c.progress.Observe, Getenv: os.Getenv}
	a, done, err := pool.Enter(ctx, cfg)
	if err != nil {
		if l != nil {
			l.Close()
		}
		return errors.Join(err, pool.Close())
	}
	c.mention(cmd, a)
	if addr == "" {
		addr = a.Settings.Serve.Addr
	}
	inner, stop := context.WithCancel(ctx)
	hosted := make(chan error, 1)
	if l == nil {
		hosted <- nil
	} else {
		go func() {
			hosted <- l.Serve(inner, daemon.Config{Version: app.Version(), Idle: -1, Log: log, Refuse: notOwn}, daemonClients(pool, log))
		}()
	}
	err = c.serve(ctx, a, addr, browser, func(ctx context.Context) { runJobs(ctx, a, pool, cfg) })
	stop()
	err = errors.Join(err, <-hosted)
	done()
	return errors.Join(err, pool.Close())
}

// notOwn is [daemon.NotOwn] but for this process itself, whose doctor asks as any
// other does.
func notOwn(pid int) error {
	if pid == os.Getpid() {
		return nil
	}
	return daemon.NotOwn(pid)
}

// grace is how long turns and requests may take to finish when the server is
// asked to stop; asked a second time it stops at once.
const grace = time.Minute

// workspaceIdle is how long what was read of a folder is kept once its last client has
// gone.
const workspaceIdle = 10 * time.Minute

// runJobs runs jobs until ctx ends, and waits for those that run, unless jobs.serve
// is false. A queue that cannot be read does not keep Ken from serving.
func runJobs(ctx context.Context, a *app.App, pool *app.Pool, cfg app.Config) {
	if !a.Settings.Limits.Jobs.Serve {
		return
	}
	how, err := a.Worker(pool, cfg)
	if err == nil {
		var w *queue.Worker
		if w, err = queue.NewWorker(how); err == nil {
			err = w.Run(ctx, nil)
		}
	}
	if err != nil && ctx.Err() == nil {
		cfg.Log.Warn("jobs are not run here", "error", err)
	}
}

// serve serves until ctx ends. jobs runs beside it, from when it listens.
func (c *serveCommand) serve(ctx context.Context, a *app.App, addr string, browser bool, jobs func(context.Context)) error {
	log := slog.New(slog.NewTextHandler(c.err, nil))
	// Those who only wait for news are let go first, so that stopping does not
	// wait for them.
	waiting, letGo := context.WithCancel(ctx)
	defer letGo()
	site, handler, tokens, err := c.site(waiting, a, addr, log)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return listenFault(ctx, addr, err)
	}
	srv := httpapi.NewServer(handler)
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	working, stopWorking := context.WithCancel(ctx)
	worked := make(chan struct{})
	go func() { defer close(worked); jobs(working) }()
	defer func() { stopWorking(); <-worked }()

	url := reached(l.Addr(), a.Settings.Serve.Hosts)
	known := a.OperatorView()
	c.announce(url, known, tokens)
	go c.follow(following, a, known.Stats().Version, known.Stats().Errors)
	if browser {
		defer c.openPage(a.Places.State, url, tokens)()
	}
	select {
	case err = <-served:
	case <-ctx.Done():
		err = c.stop(context.WithoutCancel(ctx), a, addr, site, srv, worked)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop shuts the server down. /readyz reports it already, and load balancers
// get a moment to notice. Then turns, jobs and calls end, each with its result,
// while requests about them are still answered. worked is closed when the jobs
// have ended. The port is closed last.
func (c *serveCommand) stop(ctx context.Context, a *app.App, addr string, site *app.Site, srv *http.Server, worked <-chan struct{}) error {
	delay := a.Settings.Serve.StopDelay
	if host, _, err := net.SplitHostPort(addr); err == nil && !config.Loopback(host) && !a.Settings.Said("serve.stopDelay") {
		delay = remoteStopDelay
	}
	time.Sleep(delay) // a second signal ends the process
	over := time.Now().Add(grace)
	bye, cancel := context.WithDeadline(ctx, over)
	defer cancel()
	err := site.Drain(bye)
	<-worked // the worker has its own time limit, which is serve.drain too
	err = errors.Join(err, site.EndCalls(ctx))
	last, cancelLast := context.WithTimeout(ctx, max(time.Until(over), lastAnswers))
	defer cancelLast()
	return errors.Join(err, srv.Shutdown(last), srv.Close()) // Close ends the connections that are left
}

// remoteStopDelay is the default of serve.stopDelay if other machines can reach
// the server. lastAnswers is the minimum time for writing the last answers.
const (
	remoteStopDelay = 5 * time.Second
	lastAnswers     = 10 * time.Second
)

// follow prints what changes in the catalog after the announced version.
func (c *serveCommand) follow(ctx context.Context, a *app.App, version uint64, faults int) {
	for {
		news, err := a.Door.Next(ctx, a.Principal, version)
		if err != nil {
			return // ctx ended
		}
		s := news.View.Stats()
		parts := summary(news)
		if s.Errors != faults {
			parts = append(parts, output.Plural(s.Errors, "error")+", see ken catalog lint")
		}
		version, faults = s.Version, s.Errors
		if len(parts) > 0 {
			fmt.Fprintln(c.err, "catalog: "+strings.Join(parts, "; "))
		}
	}
}

// summary returns what was added, updated and removed, each with its number and
// the first few names. It is empty if no listed capability changed.
func summary(news door.Changes) []string {
	const most = 3
	if !news.Complete {
		return []string{"too many changes to list; see ken catalog list"}
	}
	var parts []string
	for _, what := range []string{"added", "updated", "removed"} {
		var names []string
		for _, ch := range news.Changes {
			if ch.What == what {
				names = append(names, strings.TrimSuffix(output.Line(string(ch.ID))+": "+output.Line(ch.Note), ": "))
			}
		}
		n := len(names)
		if n > most {
			names = append(names[:most], fmt.Sprintf("and %d more", n-most))
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, strings.Join(names, ", ")))
		}
	}
	return parts
}

// reached returns the address by which this machine reaches the server, of those
// that it answers to: 127.0.0.1 where it listens everywhere, and where it listens
// on one other address, that or the first name of serve.hosts.
func reached(at net.Addr, hosts []string) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return "http://" + at.String()
	}
	name := "127.0.0.1"
	if own := tcp.IP.String(); slices.Contains(hosts, own) {
		name = own
	} else if !tcp.IP.IsUnspecified() && len(hosts) > 0 {
		name = hosts[0]
	}
	return "http://" + net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// announce says where the server is, and how many capabilities its page lists.
func (c *serveCommand) announce(url string, v door.View, tokens *auth.Tokens) {
	if c.json {
		about := map[string]any{"url": url, "catalog": v.Stats()}
		if tokens != nil {
			about["tokenFile"] = tokens.Path()
			about["agentTokenFile"] = tokens.AgentPath()
			about["page"] = tokens.Link(url + "/")
		}
		_ = c.printJSON(about) // if it cannot be written, serve all the same
		return
	}
	page := url + "/"
	if tokens != nil {
		page = tokens.Link(page)
	}
	c.out.Linef("%s", c.out.Style(output.Bold, page))
	c.out.Linef("Ken knows %s. That link opens the page and signs you in; Ctrl-C stops Ken, and the link with it.", output.Plural(v.Stats().Capabilities+v.Parts(), "capability"))
	c.out.Linef("%s", c.out.Style(output.Dim, "The API is at "+url+"/api/v1 (described by /api/v1/openapi.json), MCP at "+url+"/mcp."))
	if tokens != nil {
		c.out.Linef("%s", c.out.Style(output.Dim, fmt.Sprintf("Programs send a token that stays: curl -H \"Authorization: Bearer $(cat %s)\" %s/api/v1/catalog", tokens.Path(), url)))
		c.out.Linef("%s", c.out.Style(output.Dim, "Give agents the one in "+tokens.AgentPath()+": it acts as you, but cannot approve calls."))
	}
}

// site makes all that is served at an address, behind the one that says who may
// ask.
func (c *serveCommand) site(ctx context.Context, a *app.App, addr string, log *slog.Logger) (*app.Site, http.Handler, *auth.Tokens, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, nil, usageError{fmt.Errorf("--addr %q is not host:port; write 127.0.0.1:7777, for example", addr)}
	}
	set := a.Settings.Serve
	guard := auth.Config{
		Off: set.Auth == config.AuthOff, Owner: auth.Owner(a.Principal), Loopback: config.Loopback(host), Hosts: set.Hosts, Origins: set.Origins, Views: httpapi.Views(),
		OIDC: a.OIDC(), SignOuts: a.SignOuts, Rate: auth.Rate{Requests: float64(set.Rate.Requests), Burst: set.Rate.Burst, Open: set.Rate.Open},
		TenantRate: auth.Rate{Requests: float64(set.TenantRate.Requests), Burst: set.TenantRate.Burst}, Log: log,
	}
	// All agents of a person may run at once, so a server that only this
	// machine can reach has a limit only if the configuration sets one.
	guard.FreeMCP = !a.Settings.Said("serve.rate") && guard.Loopback && len(guard.Hosts) == 0
	if !guard.Off {
		if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
			return nil, nil, nil, err
		}
		if guard.Tokens, err = auth.Open(a.Places.State); err != nil {
			return nil, nil, nil, err
		}
		a.Redactor.HoldTokens(guard.Tokens.All())
		guard.Tokens.OnNew(func(v secret.Value) { a.Redactor.HoldTokens([]secret.Value{v}) })
	}
	if a.Replicas.Possible() {
		guard.Current, guard.Beside, guard.Paces = a.Replicas.Current, func(f func(context.Context)) { go f(ctx) }, a.Replicas.CallerPace
		if err := a.Replicas.Join(ctx, guard.Tokens); err != nil {
			return nil, nil, nil, err
		}
	}
	site, err := a.NewSite(ctx, log)
	if err != nil {
		return nil, nil, nil, err
	}
	handler, err := auth.Guard(site, guard)
	if err != nil {
		return nil, nil, nil, usageError{err}
	}
	return site, handler, guard.Tokens, nil
}
