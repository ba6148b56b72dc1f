package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"ken/internal/address"
	"ken/internal/know/source/safefs"
)

const (
	maxRemoteBytes = 32 << 20
	maxRedirects   = 3
)

// A fetched is an answer of a remote address.
type fetched struct {
	data        []byte
	contentType string
	etag        string
	modified    string // the server's Last-Modified, as it wrote it
	unchanged   bool   // what we have is still what the server has
}

// remoteClient completes a client. Whatever it was given, redirects are few
// and looked at, no cookie is kept, and nothing waits for ever. Without a
// transport of its own it gets one that reaches public addresses only.
func remoteClient(given *http.Client, from *url.URL, timeout time.Duration) *http.Client {
	c := &http.Client{Timeout: timeout, CheckRedirect: redirectCheck(from)}
	if given != nil {
		c.Transport = given.Transport
	}
	if c.Transport == nil {
		c.Transport = guardedTransport(address.Loopback(from.Hostname()), nil)
	}
	return c
}

// guardedTransport refuses, at the moment of dialling, addresses that are not
// public: names and redirects cannot get around a check of the address itself.
// Proxies from the environment are not used, since they would do the dialling.
func guardedTransport(loopback bool, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		Control: func(network, dialled string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(dialled)
			if err != nil || !strings.HasPrefix(network, "tcp") {
				return fmt.Errorf("%s address %s is not one that a source may reach", network, dialled)
			}
			ip := at.Addr().Unmap()
			if loopback && ip.IsLoopback() || address.Public(ip) {
				return nil
			}
			return &privateAddressError{ip}
		},
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true, // the next question is minutes away
	}
}

type privateAddressError struct{ addr netip.Addr }

func (e *privateAddressError) Error() string {
	return fmt.Sprintf("%s is not a public address", e.addr)
}

// checkAddress refuses what no source may be read from: anything but https,
// or http to this machine.
func checkAddress(u *url.URL) error {
	switch {
	case u.Hostname() == "":
		return errors.New("the address has no host")
	case u.Scheme == "https":
	case u.Scheme == "http" && address.Loopback(u.Hostname()):
	default:
		return fmt.Errorf("%s is not https", showURL(u))
	}
	return nil
}

// redirectCheck looks at every step of a redirect as at the first address.
func redirectCheck(first *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if err := checkAddress(next.URL); err != nil {
			return fmt.Errorf("redirect: %w", err)
		}
		if address.Loopback(next.URL.Hostname()) && !address.Loopback(first.Hostname()) {
			return fmt.Errorf("redirect to %s: it is this machine", showURL(next.URL))
		}
		if next.URL.User != nil {
			return fmt.Errorf("redirect to %s: it carries a name and password", showURL(next.URL))
		}
		next.Header.Del("Referer") // it would show the query of our address
		return nil
	}
}

// showURL returns an address without what may be secret in it.
func showURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	s := shown.String()
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

// fetch asks the address for its content, or whether what we have still holds.
func (r *Remote) fetch(ctx context.Context, have *remoteHeader) (fetched, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		return fetched{}, errors.New("the address does not make a request") // the cause would repeat the query
	}
	req.Header.Set("Accept", "application/json, application/yaml, application/x-ndjson, text/markdown, text/plain, */*;q=0.5")
	if have != nil && have.ETag != "" {
		req.Header.Set("If-None-Match", have.ETag)
	}
	if have != nil && have.Modified != "" {
		req.Header.Set("If-Modified-Since", have.Modified)
	}
	return r.do(req, have != nil)
}

// do makes a request and reads its answer. conditional says that the answer may be
// that nothing changed.
func (r *Remote) do(req *http.Request, conditional bool) (fetched, error) {
	req.Header.Set("User-Agent", "ken")
	resp, err := r.client.Do(req)
	if err != nil {
		return fetched{}, plainFetchError(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return fetched{unchanged: true}, nil
	case resp.StatusCode != http.StatusOK:
		return fetched{}, &StatusError{resp.StatusCode}
	case resp.Header.Get("Content-Encoding") != "":
		return fetched{}, fmt.Errorf("the server sent it encoded as %q", resp.Header.Get("Content-Encoding"))
	case resp.ContentLength > r.limit:
		return fetched{}, safefs.TooLarge(resp.ContentLength, r.limit)
	}
	// The cap is on what comes out of decompression, if there was any.
	data, err := io.ReadAll(io.LimitReader(resp.Body, r.limit+1))
	if err != nil {
		return fetched{}, plainFetchError(err)
	}
	if int64(len(data)) > r.limit {
		return fetched{}, &safefs.Error{
			Code: "too-large", Message: fmt.Sprintf("the content has more than the %d bytes that are read", r.limit), Fix: "split it",
		}
	}
	return fetched{
		data: data, contentType: resp.Header.Get("Content-Type"),
		etag: shortHeader(resp.Header.Get("ETag")), modified: shortHeader(resp.Header.Get("Last-Modified")),
	}, nil
}

// shortHeader returns s, or "" if it is too long to be sent back with the next
// request.
func shortHeader(s string) string {
	if len(s) > 1024 {
		return ""
	}
	return s
}

// plainFetchError drops the address from an error: its query may hold a key.
func plainFetchError(err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return errors.New("the server took too long")
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if pe, ok := errors.AsType[*privateAddressError](err); ok {
		return pe
	}
	return err
}

// A StatusError is an answer that says that a request failed.
type StatusError struct{ Status int }

// HTTPStatus returns the status.
func (e *StatusError) HTTPStatus() int { return e.Status }

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
}

// Ask posts a JSON text to an address and returns the answer, with the limits of
// [Fetch]. No redirect is followed: the headers may be credentials.
func Ask(ctx context.Context, address string, header http.Header, body []byte) (data []byte, shown string, err error) {
	r, err := New(Config{URL: address})
	if err != nil {
		return nil, "", err
	}
	r.client.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		return fmt.Errorf("it redirects to %s, which is not followed; name that address", showURL(next.URL))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, r.shown, errors.New("the address does not make a request") // the cause would repeat the query
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json, application/json;q=0.9")
	got, err := r.do(req, false)
	if err != nil {
		refused := r.refusal(err)
		refused.Op = "fetch"
		return nil, r.shown, refused
	}
	return got.data, r.shown, nil
}

// Fetch reads the content of an address once, as a [Remote] does: over https, or
// http on this machine, from public addresses only, and with a limit. shown is
// the address without what may be secret in it.
func Fetch(ctx context.Context, address string) (data []byte, shown string, err error) {
	r, err := New(Config{URL: address})
	if err != nil {
		return nil, "", err
	}
	got, err := r.fetch(ctx, nil)
	if err != nil {
		refused := r.refusal(err)
		refused.Op = "fetch"
		return nil, r.shown, refused
	}
	return got.data, r.shown, nil
}
