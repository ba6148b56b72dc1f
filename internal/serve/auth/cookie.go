package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/store"
)

const (
	// cookiePrefix begins the names of all our cookies. What follows is of the
	// token file: a browser sends the cookies of a host to all of its ports, so
	// two Kens on one machine would else take each other's away.
	cookiePrefix = "ken_"
	hostPrefix   = "__Host-"

	browserLife = 12 * time.Hour
	longestLife = 30 * 24 * time.Hour // of one that is renewed
	mostVoid    = 4096

	// longestCookie is what browsers keep, less the name and the attributes.
	longestCookie = 3800

	// cookieUse and loginUse are what servers of a group sign.
	cookieUse = "cookie"
	loginUse  = "login"
)

// A ticket is what a cookie says: who signed in. That of the operator
// says only so: who that is may change with a restart.
type ticket struct {
	Owner  bool     `json:"o,omitempty"`
	ID     string   `json:"i,omitempty"`
	Tenant string   `json:"t,omitempty"`
	Roles  []string `json:"r,omitempty"`
	Name   string   `json:"n,omitempty"`
	Serial string   `json:"s"`
	Began  int64    `json:"b"` // seconds since 1970: when they signed in,
	Given  int64    `json:"g"` // when this cookie was made,
	Until  int64    `json:"u"` // and when it ends
}

func newTicket() ticket {
	now := time.Now()
	return ticket{Serial: random(16), Began: now.Unix(), Given: now.Unix(), Until: now.Add(browserLife).Unix()}
}

// renewed returns a ticket that ends later, where it is time for one. What an
// issuer said of a person is never older than one life: they sign in again.
func (t ticket) renewed(now time.Time) (ticket, bool) {
	left := time.Unix(t.Until, 0).Sub(now)
	last := time.Unix(t.Began, 0).Add(longestLife)
	if !t.Owner || left >= browserLife/2 || !now.Add(left).Before(last) {
		return t, false
	}
	t.Given, t.Until = now.Unix(), min(now.Add(browserLife).Unix(), last.Unix())
	return t, true
}

// A jar seals and opens cookies. It keeps none: a restart signs no one out. It
// remembers only those that were signed out; see signout.go. A new token file
// voids all at once, from the next start on: the file is read when the server
// starts, and removing it changes nothing before.
type jar struct {
	key    []byte
	suffix string
	gone   voids
	keep   func() (*store.Store, error) // of what is gone; nil: nothing keeps it
	group  Group                        // nil: this server is alone
}

func newJar(t *Tokens) *jar {
	if t.group != nil {
		return &jar{group: t.group, suffix: t.group.Name()[:8]}
	}
	name := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(t.key("cookie name")[:5])
	return &jar{key: t.key("cookie"), suffix: strings.ToLower(name)}
}

// name of the cookie of a kind. Over TLS browsers hold it to this host and to
// TLS by its name.
func (j *jar) name(kind string, secure bool) string {
	name := cookiePrefix + kind + j.suffix
	if secure {
		return hostPrefix + name
	}
	return name
}

func (j *jar) sign(text string) []byte {
	if j.group != nil {
		return j.group.Sign(cookieUse, text)
	}
	mac := hmac.New(sha256.New, j.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (j *jar) signed(text string, given []byte) bool {
	if j.group != nil {
		return j.group.Verify(cookieUse, text, given)
	}
	return subtle.ConstantTimeCompare(given, j.sign(text)) == 1
}

func (j *jar) seal(t ticket) (string, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("write a cookie: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(b)
	value := text + "." + base64.RawURLEncoding.EncodeToString(j.sign(text))
	if len(value) > longestCookie {
		return "", fmt.Errorf("identity takes %d bytes, more than the %d of a cookie", len(value), longestCookie)
	}
	return value, nil
}

// open reads a cookie's value. The error is errWrongToken or errExpired.
func (j *jar) open(value string) (ticket, error) {
	text, mac, ok := strings.Cut(value, ".")
	if !ok || len(value) > longestCookie {
		return ticket{}, errWrongToken
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || !j.signed(text, given) {
		return ticket{}, errWrongToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return ticket{}, errWrongToken
	}
	var t ticket
	if err := json.Unmarshal(b, &t); err != nil || t.Owner == (t.ID != "") || t.Serial == "" {
		return ticket{}, errWrongToken
	}
	if err := j.holds(t); err != nil {
		return ticket{}, err
	}
	return t, nil
}

// holds reports whether a ticket has neither ended nor been signed out.
func (j *jar) holds(t ticket) error {
	switch now := time.Now(); {
	case now.Unix() >= t.Until:
		return errExpired
	case j.gone.has(t.Serial, t.Given, now):
		return errWrongToken
	}
	return nil
}

// set sends a browser the cookie of a ticket. Browsers send it back only from
// this site's own pages (SameSite=Strict). That works with an issuer too: the
// pages that lead back from there make the last step themselves, so that it comes
// from this site. See land.
func (j *jar) set(w http.ResponseWriter, t ticket, secure bool) error {
	value, err := j.seal(t)
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: j.name("", secure), Value: value, Path: "/", MaxAge: int(t.Until - time.Now().Unix()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
	})
	return nil
}

func (j *jar) clear(w http.ResponseWriter, kind string, secure bool) {
	http.SetCookie(w, &http.Cookie{
		Name: j.name(kind, secure), Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
	})
}

// identity says who a ticket is. It is judged by what holds now: the roles are
// the issuer's, but what they may do is the configuration's.
func (g *guard) identity(t ticket) (Identity, error) {
	if t.Owner {
		who := g.Owner
		who.SignedIn, who.Owner, who.Began = true, true, time.Unix(t.Began, 0)
		return who, nil
	}
	if g.issuer == nil || !strings.HasPrefix(t.ID, g.issuer.prefix) {
		return Identity{}, errWrongToken // of an issuer that is no longer ours
	}
	who, err := g.issuer.judge(capability.Principal{ID: t.ID, Tenant: t.Tenant, Roles: t.Roles}, t.Name)
	who.SignedIn, who.Began = err == nil, time.Unix(t.Began, 0)
	return who, err
}

// Why a caller is not let in.
var (
	errNoToken    = errors.New("missing token")
	errWrongToken = errors.New("the token is not the right one")
	errExpired    = errors.New("the token or the browser's cookie has ended")
	errAgentToken = errors.New("an agent's token cannot sign in a browser")
	errTooMany    = errors.New("too many attempts")
	errBehind     = errors.New("this server cannot know what others have revoked")
)
