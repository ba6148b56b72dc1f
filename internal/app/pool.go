package app

import (
	"context"
	"os"
	"strings"
	"time"

	"ken/internal/serve/daemon"
)

// A Pool keeps an App open for each folder and set of flags. Those with equal
// flags share their MCP servers.
type Pool struct{ apps *daemon.Pool[*App] }

// NewPool returns a Pool whose Apps are watched until ctx ends. One that had no
// users for the time idle is closed; zero keeps all.
func NewPool(ctx context.Context, idle time.Duration) *Pool {
	return &Pool{daemon.NewPool(ctx, idle, func(a *App, message string, err error) { a.log.Warn(message, "error", err) })}
}

// Enter returns the App of a configuration, and opens it for the first user. The
// caller must call done when it is finished.
func (p *Pool) Enter(ctx context.Context, cfg Config) (a *App, done func(), err error) {
	key := daemon.Key{Folder: cfg.Dir, Flags: cfg.ConfigFile + "\x00" + strings.Join(cfg.Catalogs, "\x00")}
	return p.apps.Enter(ctx, key, func(ctx context.Context, owner *App) (*App, error) {
		if cfg.environment == nil {
			cfg.environment = os.Environ
		}
		if owner != nil {
			cfg.gateway = owner.gateway
		}
		cfg.Stays = true
		return Open(ctx, cfg)
	})
}

// Close closes every App. There may be no users any more.
func (p *Pool) Close() error { return p.apps.Close() }
