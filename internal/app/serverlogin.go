package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/oauth"
)

// serverAuth returns what a remote server is shown of a person's consent.
func (a *App) serverAuth(s mcpgateway.Server, who capability.Principal) mcpgateway.Login {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil // it has its own
		}
	}
	if who.ID == "" {
		who = a.Principal
	}
	h, err := a.newLogin(s, who, nil)
	if err != nil {
		a.log.Warn("a server cannot be logged in to", "server", s.Name, "error", err)
		return nil
	}
	return h
}

func (a *App) newLogin(s mcpgateway.Server, who capability.Principal, ask func(ctx context.Context, address string) error) (*oauth.Handler, error) {
	cfg := oauth.Config{Server: s.Name, URL: s.URL, Principal: who, Keep: oauth.Sealed(a.secrets), Ask: ask}
	if s.OAuth != nil {
		cfg.ClientID, cfg.Scopes = s.OAuth.ClientID, s.OAuth.Scopes
		if ref := s.OAuth.ClientSecret; ref != "" {
			text, err := a.secrets.Expand(ref)
			if err != nil {
				return nil, err
			}
			cfg.ClientSecret = text.Reveal()
		}
	}
	return oauth.New(cfg)
}

// Login has a person agree that Ken uses a remote server on his behalf. ask is
// given the address that he must open.
func (a *App) Login(ctx context.Context, name string, ask func(ctx context.Context, address string) error) error {
	list := a.servers()
	i := slices.IndexFunc(list, func(s mcpgateway.Server) bool { return s.Name == name })
	switch {
	case i < 0:
		return &capability.Error{Kind: capability.NotFound, Op: "log in to", Target: name, Err: errors.New("there is no MCP server of this name"), Fix: "ken extension list names those there are"}
	case list[i].URL == "":
		return &capability.Error{Kind: capability.Invalid, Op: "log in to", Target: name, Err: errors.New("it is started by a command, and knows no login"), Fix: "give it what it needs with ken secret set, and env in its definition"}
	}
	h, err := a.newLogin(list[i], a.Principal, ask)
	if err != nil {
		return err
	}
	return loginError(list[i], h.Login(ctx))
}

// loginError is what a person is told who has just tried to log in: not to do
// that again.
func loginError(s mcpgateway.Server, err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || !strings.Contains(e.Fix, "ken login") {
		return err
	}
	out := *e
	out.Fix = "see whether it needs a login at all: ken doctor says how it stands"
	if unreached, is := errors.AsType[*url.Error](err); is {
		where := "it"
		if u, perr := url.Parse(unreached.URL); perr == nil && u.Host != "" {
			where = u.Scheme + "://" + u.Host
		}
		out.Err = fmt.Errorf("%s cannot be reached: %w", where, unreached.Err)
		out.Fix = "see that it runs, and that the address in " + s.Origin.String() + " is right"
	}
	return &out
}
