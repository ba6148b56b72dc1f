package mcpservers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/secret"
)

// login returns the login of a principal at a remote server, or nil if the
// server needs none.
func (s *Servers) login(def mcpgateway.Server, who capability.Principal) mcpgateway.Login {
	for name := range def.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil // it has its own
		}
	}
	if who.ID == "" {
		who = s.cfg.Operator
	}
	h, err := s.newLogin(def, who, nil)
	if err != nil {
		s.cfg.Log.Warn("a server cannot be logged in to", "server", def.Name, "error", err)
		return nil
	}
	return h
}

func (s *Servers) newLogin(def mcpgateway.Server, who capability.Principal, ask func(ctx context.Context, address string) error) (*oauth.Handler, error) {
	cfg := oauth.Config{Server: def.Name, URL: def.URL, Principal: who, Keep: oauth.Sealed(s.cfg.Secrets), Ask: ask}
	if def.OAuth != nil {
		cfg.ClientID, cfg.Scopes = def.OAuth.ClientID, def.OAuth.Scopes
		if ref := def.OAuth.ClientSecret; ref != "" {
			text, err := s.cfg.Secrets.Expand(ref)
			if err != nil {
				return nil, err
			}
			cfg.ClientSecret = text.Reveal()
		}
		if err := s.machine(&cfg, def.OAuth); err != nil {
			return nil, err
		}
	}
	return oauth.New(cfg)
}

// machine sets how to get a token without a person.
func (s *Servers) machine(cfg *oauth.Config, o *mcpgateway.OAuth) error {
	if o.Grant == "" {
		return nil
	}
	m := oauth.Machine{Grant: oauth.Grant(o.Grant), Issuer: o.Issuer, Provider: o.Provider, ProviderClient: o.ProviderClient}
	if o.Key != "" {
		key, err := s.cfg.Secrets.Expand(o.Key)
		if err != nil {
			return err
		}
		m.Key = key.Reveal()
	}
	if o.Token != "" {
		m.Token = func(context.Context) (string, error) {
			token, err := s.cfg.Secrets.Expand(o.Token)
			return strings.TrimSpace(token.Reveal()), err
		}
	}
	cfg.Machine = m
	return nil
}

// Login asks the operator to agree that Ken uses a remote server for them. ask
// receives the address that they must open.
func (s *Servers) Login(ctx context.Context, name string, ask func(ctx context.Context, address string) error) error {
	list := s.Definitions()
	i := slices.IndexFunc(list, func(def mcpgateway.Server) bool { return def.Name == name })
	switch {
	case i < 0:
		return &capability.Error{Kind: capability.NotFound, Op: "log in to", Target: name, Err: errors.New("MCP server not found"), Fix: "ken extension list shows all servers"}
	case list[i].URL == "":
		return &capability.Error{Kind: capability.Invalid, Op: "log in to", Target: name, Err: errors.New("the server is started by a command and has no login"), Fix: "pass its credentials with ken secret set and env in its definition"}
	}
	h, err := s.newLogin(list[i], s.cfg.Operator, ask)
	if err != nil {
		return err
	}
	return loginError(list[i], h.Login(ctx))
}

// Logout removes the logins of all users to a server that is no longer defined,
// with their tokens and client registrations, and reports whether there were any.
// If another definition has the name, its logins stay, and used says where it is.
func (s *Servers) Logout(name string) (removed bool, used string, err error) {
	logins, err := oauth.Logins(s.cfg.Secrets, name, s.cfg.Operator)
	if err != nil || len(logins) == 0 {
		return false, "", err
	}
	for _, def := range s.Definitions() {
		if def.Name == name && def.URL != "" {
			return false, def.Origin.String(), nil
		}
	}
	for _, login := range logins {
		if err := s.cfg.Secrets.Remove(login); err != nil && capability.KindOf(err) != capability.NotFound {
			return false, "", err
		}
	}
	return true, "", nil
}

// SecretsOf returns the names of the secrets that the definition of a server
// refers to.
func SecretsOf(def mcpgateway.Server) []string {
	texts := slices.Concat(def.Args, slices.Collect(maps.Values(def.Env)), slices.Collect(maps.Values(def.Headers)), []string{def.URL})
	if o := def.OAuth; o != nil {
		texts = append(texts, o.ClientSecret, o.Key, o.Token)
	}
	var out []string
	for _, text := range texts {
		out = append(out, secret.Names(text)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// loginError removes the advice to run ken login from an error of ken login.
func loginError(s mcpgateway.Server, err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || !oauth.AdvisesLogin(err) {
		return err
	}
	out := *e
	out.Fix = "check with ken doctor whether it needs a login at all"
	if unreached, is := errors.AsType[*url.Error](err); is {
		where := "it"
		if u, perr := url.Parse(unreached.URL); perr == nil && u.Host != "" {
			where = u.Scheme + "://" + u.Host
		}
		out.Err = fmt.Errorf("%s cannot be reached: %w", where, unreached.Err)
		out.Fix = "check that the server runs, and that the address in " + s.Origin.String() + " is right"
	}
	return &out
}
