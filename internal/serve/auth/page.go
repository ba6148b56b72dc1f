package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"strings"
)

// style is all that the pages have for looks; the colours are those of the page
// that they lead to (web/src/app.css). They have no script.
const style = `:root{color-scheme:light dark;--paper:#fbfaf7;--card:#fff;--ink:#1b2423;--soft:#54605d;--line:#83908c;--deed:#0f5f57;--on:#fff;--bad:#a3261f}
@media (prefers-color-scheme:dark){:root{--paper:#111514;--card:#191f1e;--ink:#e7ebe8;--soft:#a3b0ac;--line:#6b7975;--deed:#7fd1c4;--on:#06211e;--bad:#ff9a90}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:26rem}
h1{font-size:1.5rem;margin:0 0 .5rem}
p{color:var(--soft);margin:0 0 1rem}
.bad{color:var(--bad);font-weight:600}
label{display:block;font-weight:600;margin-bottom:.25rem}
input,button,.deed{width:100%;font:inherit;padding:.7rem .8rem;border-radius:.5rem;border:1px solid var(--line)}
input{background:var(--card);color:var(--ink);margin-bottom:.75rem}
button,.deed{display:block;background:var(--deed);color:var(--on);border-color:var(--deed);font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.deed{margin-bottom:1.25rem}
:focus-visible{outline:3px solid var(--deed);outline-offset:2px}`

// policyHeader lets the pages use their own style and send their own form, and
// nothing else.
func policyHeader() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

// signInPage asks a person to sign in. say is what went wrong before. It does
// not tell a stranger where on this machine the token is.
func (g *guard) signInPage(w http.ResponseWriter, r *http.Request, status int, say string) {
	// With no-referrer a browser would not say where the form comes from. Other
	// sites are told nothing all the same.
	w.Header().Set("Referrer-Policy", "same-origin")
	var b strings.Builder
	b.WriteString("<h1>Sign in to Ken</h1>\n")
	if say != "" {
		b.WriteString(`<p class="bad" role="alert">` + html.EscapeString(say) + "</p>\n")
	}
	next := wanted(r)
	if g.issuer != nil {
		to := LoginPath
		if next != "/" {
			to += "?next=" + url.QueryEscape(next)
		}
		b.WriteString(`<a class="deed" href="` + html.EscapeString(to) + `">Sign in with ` + html.EscapeString(g.issuer.Name) + "</a>\n")
	}
	b.WriteString(`<p id="how">Open the link that <code>ken serve</code> prints when it starts. It signs this browser in. Or paste a token: the one from that link, or the one in the file <code>token</code> in Ken's state folder.</p>
<form method="post" action="` + SignInPath + `">
<input type="hidden" name="` + nextParam + `" value="` + html.EscapeString(next) + `">
<label for="token">Token</label>
<input id="token" name="` + tokenParam + `" type="password" autocomplete="off" autocapitalize="none" spellcheck="false" required aria-describedby="how">
<button type="submit">Sign in</button>
</form>
`)
	page(w, status, "Sign in to Ken", "", b.String())
}

// wanted returns the path that a person asked for before they were asked to sign
// in.
func wanted(r *http.Request) string {
	switch {
	case r.Method == http.MethodPost:
		return local(r.PostForm.Get(nextParam))
	case entering(r) || r.Method != http.MethodGet:
		return "/"
	}
	return local(r.URL.RequestURI())
}

// land leads a browser on to a path of ours. Unlike a redirect, the next step
// begins at this site, so it comes with our cookie.
func land(w http.ResponseWriter, path, title string) {
	to := html.EscapeString(path)
	page(w, http.StatusOK, title, `<meta http-equiv="refresh" content="0;url=`+to+`">`,
		"<h1>"+html.EscapeString(title)+"</h1>\n<p><a href=\""+to+"\">Continue</a></p>\n")
}

func page(w http.ResponseWriter, status int, title, head, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policyHeader())
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + head + `<title>` + html.EscapeString(title) + `</title>
<style>` + style + `</style>
</head>
<body>
<main>
` + body + `</main>
</body>
</html>
`)) // the client is gone
}
