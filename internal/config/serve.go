package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	hosts "ken/internal/address"
	"ken/internal/yamldoc"
)

// Serve says where `ken serve` listens, and whom it lets in.
type Serve struct {
	// Addr is host:port. Default 127.0.0.1:7777; empty means the same, port 0
	// any free one.
	Addr string

	// Auth says whether a token is asked for. Default on; the zero value means
	// the same.
	Auth Auth

	// Hosts are names under which the server may be asked for besides those of
	// this machine, Origins the sites whose pages may use it. Default none.
	Hosts   []string
	Origins []string

	// OIDC lets in the people of an issuer. The zero value, which is the
	// default, none.
	OIDC OIDC

	// Rate is how often one principal may ask, and how much at once.
	Rate ServeRate

	// TenantRate is how often all of one tenant may ask together. Open is not used.
	TenantRate ServeRate

	// StopDelay is how long the server accepts requests after it was asked to
	// stop, while /readyz reports it; default 250 ms, and 5 s if other machines
	// can reach the server. Drain is how long calls may take after that before
	// they are cancelled; default 30 s.
	StopDelay, Drain time.Duration
}

// Auth says whether requests must carry a token.
type Auth string

const (
	AuthOn  Auth = "on"
	AuthOff Auth = "off"
)

// OIDC names an OpenID Connect issuer, and says how its tokens are read. An
// empty Issuer is none. What is empty besides has its default where it is used.
type OIDC struct {
	Issuer   string // as it names itself; https, but on this machine
	ClientID string

	// ClientSecret is the name of a secret, or of a variable. Empty: there is
	// none.
	ClientSecret string

	Audience    []string // of bearer tokens; default ClientID
	UserClaim   string   // default sub
	TenantClaim string   // default none: all are of the user's tenant
	RolesClaim  string   // default groups
	NameClaim   string   // default name
	Operators   []string // roles of those who run this Ken; default none
	Admit       []string // roles that are let in; default all
	Scopes      []string // default openid, profile and email
	Name        string   // of the issuer, for people; default its host
}

// A ServeRate is how often one principal may ask, and how much at once.
type ServeRate struct {
	Requests int // a second; zero is no limit; default 50
	Burst    int // in quick succession, after a pause; zero is as many as in a second; default 200
	Open     int // at the same time, streams with them; zero is no limit; default 1000
}

func defaultServe() Serve {
	return Serve{Addr: "127.0.0.1:7777", Auth: AuthOn, Rate: ServeRate{Requests: 50, Burst: 200, Open: 1000}, StopDelay: 250 * time.Millisecond, Drain: 30 * time.Second}
}

func serveSettings() []setting[Config] {
	return []setting[Config]{
		entry("serve.addr", "Where ken serve listens, as host:port.",
			func(c *Config) *string { return &c.Serve.Addr }, text(checkAddr).fixed()),
		entry("serve.auth", "Whether a token is required: on, or off (only with an address of this machine).",
			func(c *Config) *Auth { return &c.Serve.Auth }, word(AuthOn, AuthOff)),
		entry("serve.hosts", "Names by which clients reach ken serve, in addition to those of this machine, as in [ken.example.com].",
			func(c *Config) *[]string { return &c.Serve.Hosts }, texts("names", subset, nil)),
		entry("serve.origins", "Sites whose pages may use ken serve from a browser, with the token, as in [https://tools.example.com].",
			func(c *Config) *[]string { return &c.Serve.Origins }, texts("sites", subset, nil)),
		entry("serve.oidc", "The identity provider of other people who may sign in, as in {issuer: https://id.example, clientID: ken, admit: [ken-users], operators: [ken-admins]}.",
			func(c *Config) *OIDC { return &c.Serve.OIDC }, parts(OIDC{}, "{issuer: https://id.example, clientID: ken}", oidcSettings(), checkOIDC).fixed()),
		entry("serve.rate", "Limits per principal: requests per second, requests in a burst after a pause, and open requests, including streams. 0 for requests or open means no limit. A request over the rate waits up to 5 seconds. With PostgreSQL, requests and burst count over all replicas. MCP on a loopback address is limited only if this key is set.",
			func(c *Config) *ServeRate { return &c.Serve.Rate }, serveRate()),
		entry("serve.tenantRate", "Limits for all principals of one tenant together: requests per second, and requests in a burst after a pause. 0 for requests means no limit. A request over the rate waits up to 5 seconds. With PostgreSQL, it counts over all replicas. Requests that can approve calls are counted separately from those of agents.",
			func(c *Config) *ServeRate { return &c.Serve.TenantRate }, rateOf(ServeRate{}, "{requests: 500, burst: 1000}")),
		entry("serve.stopDelay", "How long ken serve accepts requests after it is asked to stop, while /readyz reports that it is stopping. The default is 5s if other machines can reach it.",
			func(c *Config) *time.Duration { return &c.Serve.StopDelay }, duration(0, time.Minute, identical)),
		entry("serve.drain", "How long running calls may take after serve.stopDelay, before they are cancelled.",
			func(c *Config) *time.Duration { return &c.Serve.Drain }, duration(time.Millisecond, time.Hour, identical)),
	}
}

func oidcSettings() []setting[OIDC] {
	list := func(name, of string, at func(*OIDC) *[]string) setting[OIDC] {
		return entry(name, "", at, texts(of, nil, nil))
	}
	one := func(name string, at func(*OIDC) *string) setting[OIDC] { return entry(name, "", at, text(nil)) }
	return []setting[OIDC]{
		entry("issuer", "", func(o *OIDC) *string { return &o.Issuer }, text(checkIssuer)),
		one("clientID", func(o *OIDC) *string { return &o.ClientID }),
		entry("clientSecret", "", func(o *OIDC) *string { return &o.ClientSecret }, secretName()),
		list("audience", "audiences", func(o *OIDC) *[]string { return &o.Audience }),
		one("userClaim", func(o *OIDC) *string { return &o.UserClaim }),
		one("tenantClaim", func(o *OIDC) *string { return &o.TenantClaim }),
		one("rolesClaim", func(o *OIDC) *string { return &o.RolesClaim }),
		one("nameClaim", func(o *OIDC) *string { return &o.NameClaim }),
		list("operators", "roles", func(o *OIDC) *[]string { return &o.Operators }),
		list("admit", "roles", func(o *OIDC) *[]string { return &o.Admit }),
		list("scopes", "scopes", func(o *OIDC) *[]string { return &o.Scopes }),
		one("name", func(o *OIDC) *string { return &o.Name }),
	}
}

func checkIssuer(s string) (fix string, err error) {
	const form = "write it as the issuer names itself, as in https://id.example"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		return form, errors.New("is not the address of an issuer")
	case hosts.Unprotected(u):
		return form, errors.New("is not https, and not on this machine")
	}
	return "", nil
}

// secretName is the name of a secret. What is not one is probably the secret
// itself, and not repeated.
func secretName() kind[string] {
	const longest = 128
	k := text(nil)
	plainly := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) (string, bool) {
		s, ok := plainly(r, at, v)
		if ok && (len(s) > longest || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "") {
			r.fault(at, "bad-value", "write the name that `ken secret set NAME` was given, or that of a variable", "%s is not the name of a secret", at.key)
			return "", false
		}
		return s, ok
	}
	return k
}

// checkOIDC refuses an issuer without a client, and the reverse.
func checkOIDC(r *reading, at spot, o OIDC) bool {
	for _, missing := range []struct{ key, value string }{{"issuer", o.Issuer}, {"clientID", o.ClientID}} {
		if missing.value == "" {
			r.fault(at, "no-value", "write it, or remove "+at.key, "%s.%s is missing", at.key, missing.key)
			return false
		}
	}
	return true
}

// serveRate is a rate with what may be open at once.
func serveRate() kind[ServeRate] {
	return rateOf(defaultServe().Rate, "{requests: 50, burst: 200, open: 1000}",
		entry("open", "", func(s *ServeRate) *int { return &s.Open }, whole(0, 100_000)))
}

// rateOf is narrower where no number is larger.
func rateOf(usual ServeRate, example string, more ...setting[ServeRate]) kind[ServeRate] {
	k := parts(usual, example, append([]setting[ServeRate]{
		entry("requests", "", func(s *ServeRate) *int { return &s.Requests }, whole(0, 100_000)),
		entry("burst", "", func(s *ServeRate) *int { return &s.Burst }, whole(0, 100_000)),
	}, more...), nil)
	k.noWider = func(a, b ServeRate) bool {
		return (b.Requests == 0 || a.Requests != 0 && a.Requests <= b.Requests && a.burst() <= b.burst()) &&
			(b.Open == 0 || a.Open != 0 && a.Open <= b.Open)
	}
	return k
}

func (s ServeRate) burst() int {
	if s.Burst == 0 {
		return s.Requests
	}
	return s.Burst
}

// parts is a map of settings. What it does not say is as in usual. Empty texts
// and lists are not written, and check, where there is one, looks at the whole of
// a map that says something.
func parts[T any](usual T, example string, table []setting[T], check func(r *reading, at spot, v T) bool) kind[T] {
	return kind[T]{
		empty: true,
		form:  tableForm(table),
		parse: func(r *reading, at spot, v yamldoc.Value) (out T, ok bool) {
			out = usual
			if v.Any == nil {
				return out, true
			}
			m, isMap := v.Any.(*yamldoc.Map)
			if !isMap {
				r.mistyped(at, v, "a map, as in "+example)
				return out, false
			}
			before := len(r.problems)
			decode(r, at.key+".", m, table, &out)
			if len(r.problems) > before {
				return out, false
			}
			return out, len(m.Fields) == 0 || check == nil || check(r, at, out)
		},
		show: func(from T) any {
			out := &yamldoc.Map{}
			for _, s := range table {
				v := s.show(&from)
				if list, isList := v.([]yamldoc.Value); v == "" || isList && len(list) == 0 {
					continue
				}
				out.Fields = append(out.Fields, yamldoc.Field{Key: s.name, Value: yamldoc.Value{Any: v}})
			}
			return out
		},
	}
}
