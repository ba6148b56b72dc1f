package auth

import (
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"ken/internal/address"
)

const longestAnswer = 1 << 20

// stay lets redirects go on within one host.
func stay(r *http.Request, via []*http.Request) error {
	const most = 5
	switch first := via[0].URL; {
	case len(via) > most:
		return errors.New("too many redirects")
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return errors.New("redirect to another host, " + r.URL.Host)
	}
	return nil
}

func newTransport() http.RoundTripper {
	return &bounded{next: http.DefaultTransport.(*http.Transport).Clone()}
}

// bounded reads no more than the first bytes of an answer; what is longer is an
// error to its parser.
type bounded struct{ next http.RoundTripper }

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, longestAnswer), resp.Body}
	return resp, nil
}

// sparing asks an issuer for its keys every two seconds at most, in the long
// run: each token with a wrong signature makes the library ask again.
type sparing struct {
	next  http.RoundTripper
	asked *rate.Limiter
}

func newSparing(next http.RoundTripper) *sparing {
	return &sparing{next, rate.NewLimiter(rate.Every(2*time.Second), 10)}
}

func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.asked.Allow() {
		return nil, errors.New("keys were requested too often; the next request is in two seconds")
	}
	return s.next.RoundTrip(r)
}

// loopback reports whether a name is this machine.
func loopback(name string) bool { return address.Loopback(name) }
