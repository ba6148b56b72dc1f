package mcpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// stateLife is how long an answer may take, and maxState how large the state of
// a back end may be.
const (
	stateLife = 30 * time.Minute
	maxState  = 256 << 10
)

// A claim is what Ken wants back with an answer. It travels through the client
// under a seal, so that no client can make one, or use another's.
type claim struct {
	Who     string    `json:"w"` // audienceKey
	Session string    `json:"s"`
	Subject string    `json:"u"` // method and name of what was asked for
	Expires time.Time `json:"e"`

	// Asked is the question that this round asks, Given what earlier rounds
	// have settled: keys of Call.Answers with their values.
	Asked  string                     `json:"a,omitempty"`
	Ticket string                     `json:"t,omitempty"`
	Wide   bool                       `json:"d,omitempty"`
	Prefix string                     `json:"p,omitempty"`
	Answer json.RawMessage            `json:"r,omitempty"`
	Given  map[string]json.RawMessage `json:"g,omitempty"`

	// Kept are answers to the back end that came before Ken had to ask: the
	// client sends each only once.
	Kept map[string]json.RawMessage `json:"k,omitempty"`

	// State is the back end's own. Declined are requests of it that the client
	// cannot take.
	State    string   `json:"b,omitempty"`
	Declined []string `json:"n,omitempty"`
}

var errState = errors.New("requestState is not one that was given for this request, or it is too old; make the request again without it")

// A Signer signs for all servers that work as one, so that each takes what another gave.
type Signer interface {
	Sign(use, text string) []byte
	Verify(use, text string, signature []byte) bool
}

// stateUse is what a [Signer] signs.
const stateUse = "requestState"

// A sealer seals claims, with a key of this process or as one of several servers.
type sealer struct {
	key    []byte
	signer Signer // nil: this server is alone
}

func (s *Server) sealer() sealer {
	if s.cfg.Signer == nil {
		return sealer{key: s.key}
	}
	return sealer{s.key, s.cfg.Signer()}
}

func (s sealer) sum(body []byte) []byte {
	if s.signer != nil {
		return s.signer.Sign(stateUse, string(body))
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(body)
	return mac.Sum(nil)
}

func (s sealer) holds(body, given []byte) bool {
	if s.signer != nil {
		return s.signer.Verify(stateUse, string(body), given)
	}
	return hmac.Equal(given, s.sum(body))
}

// seal writes a claim.
func seal(key sealer, c claim) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	if len(body) > maxState {
		return "", errors.New("the state of the back end is too large to pass on")
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(body) + "." + enc.EncodeToString(key.sum(body)), nil
}

// unseal reads a claim back. Whatever is not as it was written, or is of
// another principal or another call, gives errState.
func unseal(key sealer, text string, want claim, now time.Time) (claim, error) {
	body, sum, ok := strings.Cut(text, ".")
	if !ok || len(text) > 2*maxState {
		return claim{}, errState
	}
	enc := base64.RawURLEncoding.Strict()
	raw, err := enc.DecodeString(body)
	if err != nil {
		return claim{}, errState
	}
	given, err := enc.DecodeString(sum)
	if err != nil {
		return claim{}, errState
	}
	if !key.holds(raw, given) {
		return claim{}, errState
	}
	var c claim
	if json.Unmarshal(raw, &c) != nil || c.Who != want.Who || c.Session != want.Session || c.Subject != want.Subject || !now.Before(c.Expires) {
		return claim{}, errState
	}
	return c, nil
}
