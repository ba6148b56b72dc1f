package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A keySet holds the keys that an issuer signs with. It is fetched if no known
// key verifies a token, and every hour, so that a key that the issuer has
// withdrawn ends. If the issuer is away then, the known keys hold. If many requests need it at once, one fetches it and
// the others wait. An attempt is cleared before its waiters continue, so a
// request after a failure starts a new one. (The key set of go-oidc releases
// the waiters first: for a moment it returns the old failure although the
// issuer answers again.)
type keySet struct {
	client *http.Client
	url    string

	mu     sync.Mutex
	known  []jose.JSONWebKey
	again  time.Time   // when they are fetched again
	asking *keyRequest // nil: no fetch is running
}

const (
	keysLife  = time.Hour
	keysRetry = time.Minute // after a failure
)

// A keyRequest is one attempt to read the keys. keys and err are set when done
// is closed.
type keyRequest struct {
	done chan struct{}
	keys []jose.JSONWebKey
	err  error
}

// VerifySignature returns the payload of a token that the issuer signed. The
// error is a *downError if the keys could not be read.
func (s *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	signed, err := jose.ParseSigned(jwt, signatureAlgorithms())
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	s.mu.Lock()
	known, old := s.known, !time.Now().Before(s.again)
	s.mu.Unlock()
	payload, ok := verifyWith(known, signed)
	if ok && !old {
		return payload, nil
	}
	fresh, err := s.fresh(ctx)
	switch {
	case err != nil && ok:
		return payload, nil
	case err != nil:
		return nil, &downError{err}
	}
	if payload, ok := verifyWith(fresh, signed); ok {
		return payload, nil
	}
	return nil, errors.New("none of the issuer's keys explains the signature")
}

func signatureAlgorithms() []jose.SignatureAlgorithm {
	var all []jose.SignatureAlgorithm
	for _, a := range algorithms() {
		all = append(all, jose.SignatureAlgorithm(a))
	}
	return all
}

// verifyWith tries the keys that the token names, or all if it names none.
func verifyWith(keys []jose.JSONWebKey, signed *jose.JSONWebSignature) (payload []byte, ok bool) {
	if len(signed.Signatures) != 1 {
		return nil, false
	}
	id := signed.Signatures[0].Header.KeyID
	for i := range keys {
		if id != "" && keys[i].KeyID != id {
			continue
		}
		if payload, err := signed.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// fresh reads the keys from the issuer, or waits for an attempt that is already
// running.
func (s *keySet) fresh(ctx context.Context) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	r := s.asking
	if r == nil {
		r = &keyRequest{done: make(chan struct{})}
		s.asking = r
		go s.attempt(r)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.keys, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// attempt reads the keys once. It ends with the client's timeout.
func (s *keySet) attempt(r *keyRequest) {
	r.keys, r.err = s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err == nil {
		s.known, s.again = r.keys, time.Now().Add(keysLife)
	} else if !time.Now().Before(s.again) {
		s.again = time.Now().Add(keysRetry)
	}
	s.asking = nil
	close(r.done)
}

func (s *keySet) read() ([]jose.JSONWebKey, error) {
	req, err := http.NewRequest(http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Cache-Control", "no-cache")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the keys at %s: %w", s.url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the keys at %s: status %d", s.url, resp.StatusCode)
	}
	keys, err := parseKeys(body)
	if err != nil {
		return nil, fmt.Errorf("read the keys at %s: %w", s.url, err)
	}
	return keys, nil
}

// parseKeys reads a JSON Web Key Set. Keys of an unknown kind or algorithm, and
// those for another use than signatures, are ignored, as RFC 7517 requires
// (sections 4.2, 4.4 and 5).
func parseKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	usable := map[string]bool{"": true}
	for _, a := range algorithms() {
		usable[a] = true
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var about struct {
			Alg string `json:"alg"`
			Use string `json:"use"`
		}
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, err
		}
		if !usable[about.Alg] || about.Use != "" && about.Use != "sig" {
			continue
		}
		var key jose.JSONWebKey
		switch err := json.Unmarshal(raw, &key); {
		case err == nil:
			keys = append(keys, key)
		case errors.Is(err, jose.ErrUnsupportedKeyType):
		default:
			return nil, err
		}
	}
	return keys, nil
}
