package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDCConfig says whose people are let in besides the owner. Issuer and
// ClientID are needed.
type OIDCConfig struct {
	// Issuer is the address of the issuer, exactly as it names itself. It must
	// be https, but on this machine.
	Issuer   string
	ClientID string

	// ClientSecret returns the secret when a code is exchanged. Nil: there is
	// none, and PKCE alone protects the exchange, as it does anyway.
	ClientSecret func(context.Context) (string, error)

	// Audience are those of bearer tokens that are meant for us. Empty: the
	// ClientID.
	Audience []string

	// The claims that identify a person. One that is not found as it is
	// written is looked for inside, as in realm_access.roles. Empty: sub,
	// groups and name; without TenantClaim everybody is of the owner's tenant.
	// UserClaim email takes addresses alone that the issuer verified.
	UserClaim, TenantClaim, RolesClaim, NameClaim string

	// Operators are the roles of those who run this Ken. Empty: only the
	// owner.
	Operators []string

	// Admit are the roles that are let in. Empty: everybody whom the issuer
	// knows.
	Admit []string

	Scopes []string // what is asked for besides openid. Empty: profile and email
	Name   string   // what the issuer is called on the sign-in page. Empty: its host
}

const (
	issuerTimeout = 10 * time.Second
	retryIssuer   = 5 * time.Second
	freshIssuer   = 24 * time.Hour // what it says about itself is read again after that
	mostAsked     = 8              // codes at once
	mostVerified  = 4096
	verifiedLife  = time.Minute
	longestJWT    = 16 << 10
)

// algorithms are those that an issuer's tokens may be signed with: none has a
// secret that we would share with it.
func algorithms() []string {
	return []string{oidc.RS256, oidc.ES256, oidc.PS256, oidc.EdDSA, oidc.RS384, oidc.ES384, oidc.PS384, oidc.RS512, oidc.ES512, oidc.PS512}
}

// An issuer is one whose tokens we take. What it says about itself is asked for
// when it is first needed, and again when it did not answer: this server starts
// without it.
type issuer struct {
	OIDCConfig
	prefix string // of its people's ids
	tenant string // of those for whom no claim says one
	log    *slog.Logger

	client   *http.Client
	keys     *http.Client  // its keys are not asked for without bound
	seal     cipher.AEAD   // of the cookie that a login in progress has
	group    Group         // signs that cookie instead; nil: this server is alone
	spent    voids         // logins that are over
	asking   chan struct{} // a place for each code that is asked of it at once
	verified *recent[[sha256.Size]byte, verified]

	mu     sync.Mutex
	found  *discovered
	failed error
	tried  time.Time
	trying chan struct{} // closed when the attempt is over; nil: there is none
}

// discovered is what an issuer says about itself.
type discovered struct {
	keys     oidc.KeySet
	endpoint oauth2.Endpoint
}

// verified is a bearer token that was found good.
type verified struct {
	who   Identity
	err   error // errNotAdmitted
	until time.Time
}

// A downError is that the issuer does not answer.
type downError struct{ cause error }

func (e *downError) Error() string { return "the issuer does not answer: " + e.cause.Error() }
func (e *downError) Unwrap() error { return e.cause }

func newIssuer(cfg OIDCConfig, t *Tokens, tenant string, log *slog.Logger) (*issuer, error) {
	u, err := url.Parse(cfg.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !safe(u):
		return nil, refused("serve.oidc", "the issuer is no https address", "write it as the issuer does, as in https://id.example")
	case cfg.ClientID == "":
		return nil, refused("serve.oidc", "there is no clientID", "write the one that the issuer gave to Ken")
	}
	set := func(claim *string, usual string) {
		if *claim == "" {
			*claim = usual
		}
	}
	set(&cfg.UserClaim, "sub")
	set(&cfg.RolesClaim, "groups")
	set(&cfg.NameClaim, "name")
	set(&cfg.Name, u.Hostname())
	if len(cfg.Audience) == 0 {
		cfg.Audience = []string{cfg.ClientID}
	}
	if len(cfg.Scopes) == 0 {
		cfg.Scopes = []string{"profile", "email"}
	}
	if !slices.Contains(cfg.Scopes, oidc.ScopeOpenID) {
		cfg.Scopes = append([]string{oidc.ScopeOpenID}, cfg.Scopes...)
	}
	block, err := aes.NewCipher(t.key("login"))
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: issuerTimeout, CheckRedirect: stay, Transport: newTransport()}
	asking := *client
	asking.Transport = newSparing(client.Transport)
	// An id says which issuer's it is: another one's people are others, whatever
	// they are called. No issuer has a # in its address.
	return &issuer{
		OIDCConfig: cfg, prefix: "oidc:" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/") + "#", tenant: tenant, log: log,
		client: client, keys: &asking, seal: seal, group: t.group, asking: make(chan struct{}, mostAsked), verified: newRecent[[sha256.Size]byte, verified](mostVerified),
	}, nil
}

// safe reports whether what is sent there cannot be read on the way.
func safe(u *url.URL) bool {
	name, _, ok := hostPort(u.Host)
	return ok && (u.Scheme == "https" || u.Scheme == "http" && loopback(name))
}

// discover returns what the issuer says about itself. Of many who need it at once
// one asks. A failure is remembered for a moment, so that not everybody waits.
func (i *issuer) discover(ctx context.Context) (*discovered, error) {
	i.mu.Lock()
	age := time.Since(i.tried)
	if i.trying == nil && (i.failed != nil && age >= retryIssuer || i.failed == nil && (i.found == nil || age >= freshIssuer)) {
		i.trying, i.tried = make(chan struct{}), time.Now()
		go i.attempt(i.trying)
	}
	found, failed, trying := i.found, i.failed, i.trying
	i.mu.Unlock()
	if found == nil && trying != nil {
		select {
		case <-trying:
		case <-ctx.Done():
			return nil, &downError{ctx.Err()}
		}
		i.mu.Lock()
		found, failed = i.found, i.failed
		i.mu.Unlock()
	}
	if found == nil {
		return nil, &downError{failed}
	}
	return found, nil
}

// attempt asks the issuer about itself, once. It ends with the client's timeout.
func (i *issuer) attempt(done chan struct{}) {
	found, err := i.ask()
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		i.found, i.failed = found, nil
	} else if i.failed = err; i.found != nil {
		i.log.Warn("the issuer of serve.oidc does not answer; what it said before holds", "why", err)
	}
	i.trying = nil
	close(done)
}

func (i *issuer) ask() (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read what the issuer %s says about itself: %w", i.Issuer, err)
	}
	var more struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, fmt.Errorf("read what the issuer %s says about itself: %w", i.Issuer, err)
	}
	endpoint := provider.Endpoint()
	for name, address := range map[string]string{"jwks_uri": more.Keys, "authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL} {
		if u, err := url.Parse(address); err != nil || !safe(u) {
			return nil, fmt.Errorf("the issuer %s has no https address as its %s", i.Issuer, name)
		}
	}
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // what must be there, if nothing is said
	if i.ClientSecret == nil || len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discovered{keys: &keySet{client: i.keys, url: more.Keys}, endpoint: endpoint}, nil
}

// verify checks a token's signature, issuer and time. Its audience is the
// caller's to check.
func (i *issuer) verify(ctx context.Context, keys oidc.KeySet, raw string) (*oidc.IDToken, error) {
	watched := &watchedKeys{next: keys}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	token, err := oidc.NewVerifier(i.Issuer, watched, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms()}).Verify(ctx, raw)
	if err == nil {
		return token, nil
	}
	if _, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
		return nil, errExpired
	}
	if watched.down != nil {
		return nil, watched.down
	}
	return nil, fmt.Errorf("%w: %w", errWrongToken, err)
}

// watchedKeys remembers whether it was the keys that could not be had: the
// verifier tells that by words alone.
type watchedKeys struct {
	next oidc.KeySet
	down *downError
}

func (k *watchedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.next.VerifySignature(ctx, jwt)
	if down, ok := errors.AsType[*downError](err); ok {
		k.down = down
	}
	return payload, err
}

func before(end time.Time) func() bool { return func() bool { return time.Now().Before(end) } }

// bearer says whose an issuer's token is. One that was good is not checked
// again for a minute, or as long as it lasts.
func (i *issuer) bearer(ctx context.Context, raw string) (Identity, error) {
	if len(raw) > longestJWT || strings.Count(raw, ".") != 2 {
		return Identity{}, errWrongToken
	}
	sum, now := sha256.Sum256([]byte(raw)), time.Now()
	if v, ok := i.verified.get(sum); ok && now.Before(v.until) {
		return v.who, v.err
	}
	if !bearerType(raw) {
		return Identity{}, errWrongToken
	}
	found, err := i.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := i.verify(ctx, found.keys, raw)
	if err != nil {
		return Identity{}, err
	}
	if !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(i.Audience, a) }) {
		return Identity{}, fmt.Errorf("%w: it is not meant for an audience in serve.oidc", errWrongToken)
	}
	who, err := i.identify(token)
	if err == nil {
		// Who does not decide is an agent, and sees what models see.
		who.Operator = who.Operator && who.Decides
		who.Still = before(token.Expiry)
	}
	if err == nil || errors.Is(err, errNotAdmitted) {
		until := now.Add(verifiedLife)
		if token.Expiry.Before(until) {
			until = token.Expiry
		}
		i.verified.put(sum, verified{who, err, until})
	}
	return who, err
}
