package auth

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// CookieName is the cookie of a browser that was let in.
	CookieName = "ken_browser"

	// ExchangePath is where a browser gives a code for its cookie, with POST
	// and a JSON object whose code it is. [Guard] serves it.
	ExchangePath = "/auth/exchange"

	codeLife    = 2 * time.Minute
	browserLife = 12 * time.Hour
	mostCodes   = 16
	mostLive    = 64
)

// browsers are one-time codes that may become cookies, and those cookies. It
// knows them by their hashes, so that looking one up tells nothing by its time.
type browsers struct {
	mu    sync.Mutex
	codes []known // in the order in which they end
	live  []known
}

type known struct {
	sum   [sha256.Size]byte
	until time.Time
}

// Link gives an address that lets one browser in, once, for two minutes. base
// is the page's own address, as in http://127.0.0.1:7777/. The code is in the
// fragment, which browsers keep to themselves: the page takes it from there,
// and posts it to [ExchangePath]. Only the last sixteen codes are valid.
func (t *Tokens) Link(base string) string {
	code := random(tokenBytes)
	t.browsers.mu.Lock()
	defer t.browsers.mu.Unlock()
	t.browsers.codes = add(t.browsers.codes, code, codeLife, mostCodes)
	base, _, _ = strings.Cut(base, "#")
	return base + "#code=" + code
}

// Exchange takes a code, which is void then, for a cookie.
//
// A browser sends the cookies of a host to all of its ports. So a server of
// another user on this machine, visited with the same browser, sees this one:
// where that matters, use a browser profile of its own.
func (t *Tokens) Exchange(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code string `json:"code"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
	if err := dec.Decode(&body); err != nil {
		problem(w, http.StatusBadRequest, "invalid", `write {"code":"…"}`)
		return
	}
	cookie, ok := t.browsers.exchange(body.Code)
	if !ok {
		t.refuse(w, "bad-code", "the link was used before, is older than two minutes, or is not one of ours; ask for a new one")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: CookieName, Value: cookie, Path: "/", MaxAge: int(browserLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	w.WriteHeader(http.StatusNoContent)
}

func (b *browsers) exchange(code string) (cookie string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := find(b.codes, code)
	if i < 0 {
		return "", false
	}
	b.codes = slices.Delete(b.codes, i, i+1)
	cookie = random(tokenBytes)
	b.live = add(b.live, cookie, browserLife, mostLive)
	return cookie, true
}

func (b *browsers) known(cookie string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return find(b.live, cookie) >= 0
}

func find(list []known, text string) int {
	sum, now := sha256.Sum256([]byte(text)), time.Now()
	return slices.IndexFunc(list, func(k known) bool { return k.sum == sum && now.Before(k.until) })
}

// add adds a text; the one that ends first makes room for it.
func add(list []known, text string, life time.Duration, most int) []known {
	if len(list) == most {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, known{sha256.Sum256([]byte(text)), time.Now().Add(life)})
}
