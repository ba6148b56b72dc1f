package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"ken/internal/address"
	"ken/internal/untrusted"
)

// A callback waits on this machine for the browser to come back.
type callback struct {
	listener net.Listener
	server   *http.Server
	state    string
	answer   chan url.Values // takes one
	ended    chan struct{}
}

// listen opens the address. It must be closed.
func listen(ctx context.Context, address, state string) (*callback, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	c := &callback{listener: l, state: state, answer: make(chan url.Values, 1), ended: make(chan struct{})}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() {
		defer close(c.ended)
		c.server.Serve(l) // ends with close
	}()
	return c, nil
}

func (c *callback) close() {
	// The page that says that all is well is still being sent: a moment for it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
	<-c.ended
}

const callbackPath = "/callback"

// redirect is where the authorization server sends the browser.
func (c *callback) redirect() string { return "http://" + c.listener.Addr().String() + callbackPath }

// ServeHTTP takes the first answer that has our state. Others, that any page in
// the browser may send, change nothing.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Type", "text/plain; charset=utf-8")
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	q := r.URL.Query()
	switch {
	case !address.Loopback(host):
		http.Error(w, "This address is for this machine only.", http.StatusForbidden)
	case r.URL.Path != callbackPath || r.Method != http.MethodGet:
		http.NotFound(w, r)
	case len(q["state"]) != 1 || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1:
		http.Error(w, "This is no answer to the login that waits here.", http.StatusBadRequest)
	default:
		select {
		case c.answer <- q:
			fmt.Fprintln(w, "You may close this page and go back to Ken.")
		default:
			http.Error(w, "There was an answer already.", http.StatusConflict)
		}
	}
}

// wait returns the code of the answer, checked.
func (c *callback) wait(ctx context.Context, issuer string, issuerPromised bool) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case q := <-c.answer:
		return code(q, issuer, issuerPromised)
	}
}

// code checks who answered before what was said, RFC 9207: the names of issuers
// are compared letter by letter.
func code(q url.Values, issuer string, promised bool) (string, error) {
	if len(q["iss"]) > 1 || len(q["code"]) > 1 {
		return "", errors.New("the response contains a parameter twice")
	}
	if iss := q.Get("iss"); iss != "" && iss != issuer || iss == "" && promised {
		return "", fmt.Errorf("the response is from %q, expected %q", untrusted.Line(iss, 200), issuer)
	}
	if problem := q.Get("error"); problem != "" {
		return "", fmt.Errorf("the authorization server returned the error %s", untrusted.Line(problem+" "+q.Get("error_description"), 300))
	}
	if q.Get("code") == "" {
		return "", errors.New("the response has no code")
	}
	return q.Get("code"), nil
}
