// Package auth says who may use Ken over HTTP: one bearer token for the page,
// the API, /mcp and /v1, and the checks that keep other sites' pages away from
// a server on this machine.
package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/secret"
)

const (
	fileName   = "token"
	tokenBytes = 32
)

// Tokens knows the token of one principal, and the browsers that were let in
// by it. It may be used by many goroutines. It holds no more than bounded
// numbers of codes and browsers, in memory only: a restart forgets them.
type Tokens struct {
	path  string
	token secret.Value
	sum   [sha256.Size]byte
	who   capability.Principal

	browsers browsers
	failures bucket
}

// Open reads the token in the folder dir, which exists, or makes one: of
// processes that do so at once all get the same. It refuses a file that
// others can read or could have written.
func Open(dir string, who capability.Principal) (*Tokens, error) {
	path := filepath.Join(dir, fileName)
	token, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err == nil {
			token, err = read(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Tokens{path: path, token: secret.Of(token), sum: sha256.Sum256([]byte(token)), who: who}, nil
}

// Token is for a client's configuration.
func (t *Tokens) Token() secret.Value { return t.token }

// Path is the file of the token.
func (t *Tokens) Path() string { return t.path }

func read(path string) (string, error) {
	bad := func(why, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: "read the access token", Target: path, Err: errors.New(why), Fix: fix}
	}
	const renew = "remove it, and a new one is made"
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", bad(err.Error(), renew)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", bad(err.Error(), renew)
	case !info.Mode().IsRegular():
		return "", bad("it is no file", renew)
	case !own(info):
		return "", bad("it belongs to another user", renew)
	case othersRead(info):
		return "", bad(fmt.Sprintf("its mode is %v: others may have read it", info.Mode().Perm()), renew)
	}
	b, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", bad(err.Error(), renew)
	}
	token := strings.TrimSuffix(string(b), "\n")
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(token); err != nil || len(raw) != tokenBytes {
		return "", bad(fmt.Sprintf("it does not hold %d bytes in base64url", tokenBytes), renew)
	}
	return token, nil
}

// create makes a token file whole or not at all, and leaves one that is there.
func create(path string) (err error) {
	defer func() {
		if err != nil {
			err = &capability.Error{Kind: capability.Unavailable, Op: "make the access token", Target: path, Err: err, Fix: "see that its folder can be written"}
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".token-") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(random(tokenBytes) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link, unlike a rename, does not replace what another process made.
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Errors of Check.
var (
	ErrNoToken    = errors.New("there is no token in the request")
	ErrWrongToken = errors.New("the token is not the right one")
)

// Check says on whose behalf a request is made. The token is in the header
// Authorization as Bearer, or in X-Api-Key or Api-Key, as clients of language
// models send it; a browser that was let in has a cookie. A token in the
// address is not looked at: addresses are logged.
//
// The error is [ErrNoToken] or [ErrWrongToken]. How long it takes does not
// depend on how wrong a token is.
func (t *Tokens) Check(r *http.Request) (capability.Principal, error) {
	given, shown := credentials(r.Header)
	ok := 0
	for _, token := range given {
		sum := sha256.Sum256([]byte(token))
		ok |= subtle.ConstantTimeCompare(sum[:], t.sum[:])
	}
	switch {
	case ok == 1:
		return t.who, nil
	case shown:
		return capability.Principal{}, ErrWrongToken
	}
	cookies := r.CookiesNamed(CookieName)
	for _, c := range cookies {
		if t.browsers.known(c.Value) {
			return t.who, nil
		}
	}
	if len(cookies) > 0 {
		return capability.Principal{}, ErrWrongToken
	}
	return capability.Principal{}, ErrNoToken
}

// credentials gives the tokens in a request's headers, and whether there was
// any attempt at one. A header that comes twice counts for none of its values:
// others on the way may have judged by the other one.
func credentials(h http.Header) (tokens []string, shown bool) {
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		values := h.Values(name)
		if len(values) == 0 {
			continue
		}
		shown = true
		if len(values) > 1 {
			continue
		}
		token := values[0]
		if name == "Authorization" {
			scheme, rest, ok := strings.Cut(token, " ")
			if !ok || !strings.EqualFold(scheme, "Bearer") {
				continue
			}
			token = strings.TrimLeft(rest, " ")
		}
		tokens = append(tokens, token)
	}
	return tokens, shown
}
