package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/lazy"
	"ken/internal/run/runner"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/demo"
)

// DemoConfig says how to open the demo. The zero value answers without a pause.
type DemoConfig struct {
	Log     *slog.Logger
	Observe func(runner.Transition)
	Pace    time.Duration // after each word of the model
}

// OpenDemo opens a Ken that is new and has nothing configured, with the scripted
// model of package demo. Its home and its practice folder are removed when it is
// closed. It reads nothing of the user's: no settings, no keys, no other programs.
func OpenDemo(ctx context.Context, cfg DemoConfig) (*App, error) {
	dir, err := os.MkdirTemp("", "ken-demo-")
	if err != nil {
		return nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	practice := filepath.Join(dir, "practice")
	err = os.Mkdir(practice, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(practice, demo.File), []byte(demo.Content), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return Open(ctx, Config{
		Home: filepath.Join(dir, "home"), Dir: practice, Model: &demo.Model{Pace: cfg.Pace}, Log: cfg.Log, Observe: cfg.Observe,
		Getenv: demoEnv(dir), principal: capability.Principal{ID: demo.Principal}, closed: remove,
	})
}

// demoEnv returns the environment of the demo: what programs need to run, and
// a home directory without anything in it.
func demoEnv(dir string) func(string) string {
	return func(name string) string {
		switch {
		case name == "HOME" || name == "USERPROFILE":
			return dir
		case slices.Contains([]string{"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "SystemRoot"}, name):
			return os.Getenv(name)
		}
		return ""
	}
}

// demoAPI is where the API of the demo is; the page has it at /demo.
const demoAPI = "/api/demo/"

// demoPace is the pause after each word that a person reads on the page.
const demoPace = 40 * time.Millisecond

// A demoSite serves the demo beside the Site of the user. It is opened by the first
// request.
type demoSite struct{ site lazy.Value[*Site] }

// newDemoSite prepares the demo. It is closed with a.
func newDemoSite(waiting context.Context, a *App, log *slog.Logger) *demoSite {
	d := &demoSite{}
	d.site.Build = func() (*Site, error) {
		played, err := OpenDemo(waiting, DemoConfig{Log: log, Pace: demoPace})
		if err != nil {
			return nil, err
		}
		a.closers.Add(played.Close)
		return newSite(waiting, played, log)
	}
	return d
}

// ServeAs answers a request to the demo's API. The demo is for the person who runs
// Ken: its tools run on this machine.
func (d *demoSite) ServeAs(w http.ResponseWriter, r *http.Request, who auth.Identity) {
	if !who.Operator || !who.Decides {
		(&wire.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "the demo is only for the person who runs this Ken"}).Write(w)
		return
	}
	site, err := d.site.Get()
	if err != nil {
		(&wire.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "open the demo: " + err.Error()}).Write(w)
		return
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = "/api/"+strings.TrimPrefix(r.URL.Path, demoAPI), strings.Replace(r.URL.RawPath, demoAPI, "/api/", 1)
	who.Principal = site.app.Principal
	site.ServeAs(w, r, who)
}

// drain begins no more turns of the demo and waits for those that run.
func (d *demoSite) drain(ctx context.Context) error {
	if site, made := d.site.Peek(); made {
		return site.Drain(ctx)
	}
	return nil
}

// playsDemo reports whether an App is the demo.
func playsDemo(a *App) bool { return a.Principal.ID == demo.Principal }
