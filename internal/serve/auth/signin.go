package auth

import (
	"errors"
	"mime"
	"net/http"
)

// doorway serves the paths by which people come in and go out.
func (g *guard) doorway(w http.ResponseWriter, r *http.Request) (served bool) {
	switch at := r.Method + " " + r.URL.Path; {
	case entering(r):
		g.enter(w, r, r.URL.Query()[tokenParam], "/")
	case at == "POST "+SignInPath:
		g.signIn(w, r)
	case at == "POST "+LogoutPath:
		g.logout(w, r)
	case at == "GET "+LoginPath && g.issuer != nil:
		g.login(w, r)
	case at == "GET "+CallbackPath && g.issuer != nil:
		g.callback(w, r)
	default:
		return false
	}
	return true
}

// entering reports whether the page's address has a token in it.
func entering(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has(tokenParam)
}

// enter sends the owner's browser its cookie, and redirects it to next, a path of
// ours without the token. An agent's token is refused: the agent would count as a
// person.
func (g *guard) enter(w http.ResponseWriter, r *http.Request, tokens []string, next string) {
	w.Header().Set("Cache-Control", "no-store")
	var by bearer
	if len(tokens) == 1 {
		by = g.Tokens.right(tokens[0])
	}
	switch {
	case by.agent:
		g.refuse(w, r, errAgentToken, true)
		return
	case !by.owner:
		g.refuse(w, r, errWrongToken, true)
		return
	}
	t := newTicket()
	t.Owner = true
	if err := g.jar.set(w, t, g.secure(r)); err != nil {
		answer(w, http.StatusInternalServerError, "internal", "the cookie cannot be made")
		return
	}
	if visit(r) {
		land(w, next, "You are signed in") // the cookie would not come with a redirect
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// nextParam is the field of the form with the path that the person asked for.
const nextParam = "next"

const longestForm = 8 << 10

// signIn takes the form of the sign-in page.
func (g *guard) signIn(w http.ResponseWriter, r *http.Request) {
	if !fromOurs(r) {
		g.forbid(w, r, "wrong-origin", "the form is sent from the sign-in page; a program sends Authorization: Bearer and needs no cookie")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		answer(w, http.StatusUnsupportedMediaType, "not-a-form", "send the field token as application/x-www-form-urlencoded")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		answer(w, http.StatusBadRequest, "invalid", "the form cannot be read; it has one field, token, of 43 characters")
		return
	}
	g.enter(w, r, r.PostForm[tokenParam], local(r.PostForm.Get(nextParam)))
}

// logout takes the cookie away, and voids copies of it.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	if !fromOurs(r) {
		g.forbid(w, r, "wrong-origin", "a page of ours signs out, with Origin or Sec-Fetch-Site")
		return
	}
	secure := g.secure(r)
	var unkept error
	for _, c := range r.CookiesNamed(g.jar.name("", secure)) {
		if t, err := g.jar.open(c.Value); err == nil {
			unkept = errors.Join(unkept, g.jar.void(r.Context(), t.Serial))
		}
	}
	g.jar.clear(w, "", secure)
	w.Header().Set("Cache-Control", "no-store")
	if unkept != nil {
		g.Log.Error("a sign-out holds only until this server ends: it cannot be kept", "why", unkept)
		answer(w, http.StatusServiceUnavailable, "unavailable", "this browser is signed out, but that cannot be kept: after a restart a copy of its cookie is good until it ends; remove the file token in Ken's state folder and start again to be certain")
		return
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
