package auth

import (
	"cmp"
	"net/http"
	"strings"
)

const challenge = `Bearer realm="ken"`

// who says on whose behalf a request is made. card is the cookie's where that
// is why. The error is errNoToken, errWrongToken, errExpired, errNotAdmitted,
// errBehind or a *downError.
func (g *guard) who(r *http.Request) (who Identity, card *ticket, err error) {
	given, shown, err := credentials(r.Header)
	if err != nil {
		return Identity{}, nil, err
	}
	var byOwner, byAgent bool
	name := ""
	for _, token := range given.all() {
		by := g.Tokens.right(token)
		if by.elsewhere && g.behind() {
			return Identity{}, nil, errBehind
		}
		byOwner, byAgent, name = byOwner || by.owner, byAgent || by.agent, cmp.Or(name, by.name)
	}
	switch {
	case byAgent: // whatever else is shown: what may less counts
		return g.agent(name), nil, nil
	case byOwner:
		return g.owner(), nil, nil
	case shown:
		if g.issuer == nil || given.bearer == "" {
			return Identity{}, nil, errWrongToken
		}
		who, err := g.issuer.bearer(r.Context(), given.bearer)
		return who, nil, err
	}
	cookies := r.CookiesNamed(g.jar.name("", g.secure(r)))
	if len(cookies) == 0 {
		return Identity{}, nil, errNoToken
	}
	if g.behind() {
		return Identity{}, nil, errBehind
	}
	for _, c := range cookies {
		var t ticket
		if t, err = g.jar.open(c.Value); err != nil {
			continue
		}
		if who, err = g.identity(t); err == nil {
			who.Person, who.Decides, who.Still = true, true, func() bool { return g.jar.holds(t) == nil }
			return who, &t, nil
		}
	}
	return Identity{}, nil, err
}

// behind reports whether this server cannot know what others of its group revoked.
func (g *guard) behind() bool { return g.Tokens.group != nil && g.Current != nil && g.Current() != nil }

// owner started Ken, and decides.
func (g *guard) owner() Identity {
	who := g.Owner
	who.Decides, who.Owner = true, true
	return who
}

// agent is one that works for the owner. What is hidden from models is hidden
// from it, so it is no operator. name is the name of its token, if it has its
// own.
func (g *guard) agent(name string) Identity {
	who := Identity{Principal: g.Owner.Principal, Name: g.Owner.Name}
	who.Principal.Agent = name
	return who
}

// A showing is what a request's headers have for tokens; empty where there is
// none.
type showing struct {
	bearer string
	keys   [2]string
}

func (s showing) all() [3]string { return [3]string{s.bearer, s.keys[0], s.keys[1]} }

// credentials returns the tokens in a request's headers, and whether there was
// any attempt at one. A request with a header that comes twice is not let in, whatever
// the others say: some on the way may have judged by the one value, some by the
// other. The error is errWrongToken.
func credentials(h http.Header) (given showing, shown bool, err error) {
	one := func(name string) string {
		values := h.Values(name)
		shown = shown || len(values) > 0
		if len(values) > 1 {
			err = errWrongToken
		}
		if len(values) != 1 {
			return ""
		}
		return values[0]
	}
	scheme, token, ok := strings.Cut(one("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		given.bearer = strings.TrimLeft(token, " ")
	}
	given.keys = [2]string{one("X-Api-Key"), one("Api-Key")}
	return given, shown, err
}

// refuse answers a caller that is not let in: with a page, or with a problem document.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error, page bool) {
	a := g.answer(r, err)
	if a.wait > 0 {
		retryAfter(w, a.wait)
	}
	if a.challenge != "" {
		w.Header().Set("WWW-Authenticate", a.challenge)
	}
	if page {
		g.signInPage(w, r, a.status, a.say)
		return
	}
	answer(w, a.status, a.code, a.detail)
}

// wantsPage reports whether a person looks at the answer.
func wantsPage(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && (mode == "" || mode == "navigate") &&
		r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" && r.Header.Get("Api-Key") == ""
}
