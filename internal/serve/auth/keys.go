package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/go-jose/go-jose/v4"
)

// A keySet is the set of keys that an issuer signs with. It is asked for when a
// token has a signature that none of the known keys explains. Of many who need
// it at once one asks, and the others wait for that answer. An attempt is
// cleared before its waiters go on, so whoever comes after a failure asks anew.
// (The set of go-oidc releases them first: for a moment it hands out the old
// failure although the issuer answers again.)
type keySet struct {
	client *http.Client
	url    string

	mu     sync.Mutex
	known  []jose.JSONWebKey
	asking *keyRequest // nil: nobody asks
}

// A keyRequest is one attempt to read the keys. keys and err are set when done
// is closed.
type keyRequest struct {
	done chan struct{}
	keys []jose.JSONWebKey
	err  error
}

// VerifySignature gives the payload of a token that the issuer signed. The
// error is a *downError where the keys could not be read.
func (s *keySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	signed, err := jose.ParseSigned(jwt, signatureAlgorithms())
	if err != nil {
		return nil, fmt.Errorf("read the token: %w", err)
	}
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if payload, ok := verifyWith(known, signed); ok {
		return payload, nil
	}
	fresh, err := s.fresh(ctx)
	if err != nil {
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

// verifyWith tries the keys that the token names, or all where it names none.
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

// fresh reads the keys from the issuer, or waits for whoever does so already.
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
		s.known = r.keys
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

// parseKeys reads a JSON Web Key Set. A key of a kind or for an algorithm that
// is not known here is left out, as RFC 7517 asks (sections 4.4 and 5).
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
		}
		if err := json.Unmarshal(raw, &about); err != nil {
			return nil, err
		}
		if !usable[about.Alg] {
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
