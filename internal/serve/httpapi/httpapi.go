// Package httpapi serves Ken over HTTP: the page, the JSON API that it uses, and
// MCP. What each part of the API does is in the folders below; package wire is
// how they speak.
package httpapi

import (
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// Config says what to serve.
type Config struct {
	Routes []wire.Route
	Page   fs.FS        // with the folder dist; nil: there is no page
	Docs   fs.FS        // the documentation, at /docs; nil: there is none
	MCP    auth.Handler // at /mcp; nil: there is none
	Card   http.Handler // of the MCP server; nil: there is none
	Info   wire.Info    // of the description
	Log    *slog.Logger // nil: nothing is logged

	// Answered, when not nil, is told of every request that was answered.
	Answered func(route *wire.Route, status int, took time.Duration)
}

// New makes the handler for all paths. Who may ask is decided before it.
func New(cfg Config) (auth.Handler, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	other := auth.Handler(auth.HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ auth.Identity) { wire.NoSuchPath(w, r) }))
	if cfg.Page != nil {
		page, err := newPage(cfg.Page, cfg.Docs)
		if err != nil {
			return nil, err
		}
		other = page
	}
	mux := wire.NewMux(cfg.Log, other, described(cfg)...)
	mux.Answered = cfg.Answered
	if cfg.MCP == nil {
		return mux, nil
	}
	return auth.HandlerFunc(func(w http.ResponseWriter, r *http.Request, who auth.Identity) {
		if auth.IsMCP(r) {
			cfg.MCP.ServeAs(w, r, who)
			return
		}
		if cfg.Card != nil && auth.IsCard(r) {
			cfg.Card.ServeHTTP(w, r)
			return
		}
		mux.ServeAs(w, r, who)
	}), nil
}

// described adds the route that describes all routes, itself among them. The
// description is made when it is first asked for: a start need not wait for it.
func described(cfg Config) []wire.Route {
	routes := append([]wire.Route{}, cfg.Routes...)
	document := sync.OnceValues(func() ([]byte, error) {
		list := make([]*wire.Route, len(routes))
		for i := range routes {
			list[i] = &routes[i]
		}
		return wire.Describe(list, cfg.Info)
	})
	routes = append(routes, wire.Route{
		Method: http.MethodGet, Path: "/api/v1/openapi.json", Name: "describe", Group: "system", Summary: "This description (OpenAPI 3.1)", Answer: map[string]any{},
		Serve: func(*wire.Request) (any, error) {
			body, err := document()
			return wire.Raw{Type: "application/json", Body: body}, err
		},
	})
	return routes
}

// NewServer makes an http.Server with bounded patience for h. Streams and long
// calls extend it for themselves.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}
