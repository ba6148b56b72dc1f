package oauth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/testkit/oauthtest"
)

func begin(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// TestMachine: each grant gets a token without a person, again when its time is
// over, and nothing of it is kept.
func TestMachine(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	for _, c := range []struct {
		name string
		conf oauth.Config
		want []string // in what the authorization server is sent
	}{
		{"secret", oauth.Config{ClientID: "id", ClientSecret: "s3cret", Machine: oauth.Machine{Grant: oauth.GrantClient}}, []string{"grant_type=client_credentials", "id:s3cret"}},
		{"key", oauth.Config{ClientID: "id", Machine: oauth.Machine{Grant: oauth.GrantClient, Key: pemKey}}, []string{"grant_type=client_credentials", "client_assertion=ey", "jwt-bearer"}},
		{"workload", oauth.Config{Machine: oauth.Machine{Grant: oauth.GrantJWT, Token: begin("work.load.jwt")}}, []string{"grant-type%3Ajwt-bearer", "assertion=work.load.jwt"}},
		{"exchange", oauth.Config{ClientID: "id", ClientSecret: "s3cret", Machine: oauth.Machine{Grant: oauth.GrantExchange, Token: begin("other-token")}},
			[]string{"grant-type%3Atoken-exchange", "subject_token=other-token", "token-type%3Aaccess_token", "id:s3cret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := oauthtest.NewIssuer(t)
			a.Edit = func(meta map[string]any) { // a server for machines has no page to log in at
				delete(meta, "authorization_endpoint")
				delete(meta, "code_challenge_methods_supported")
			}
			s := newResource(t, a)
			keep := &oauthtest.Memory{}
			now := time.Now()
			c.conf.Machine.Issuer, c.conf.Keep, c.conf.Ask, c.conf.Now = a.URL, keep, never(t), func() time.Time { return now }
			h := s.handler(t, c.conf)
			s.works(t, h)
			for _, want := range c.want {
				if !strings.Contains(a.All(), want) {
					t.Errorf("the authorization server was sent %s, want %s", a.All(), want)
				}
			}
			if !strings.Contains(a.All(), "resource=") || strings.Contains(a.All(), "register") {
				t.Errorf("the authorization server was sent %s, want a resource and no registration", a.All())
			}
			before := strings.Count("\n"+a.All(), "\ntoken ")
			now = now.Add(2 * time.Hour)
			s.works(t, h)
			if after := strings.Count("\n"+a.All(), "\ntoken "); after != before+1 || strings.Contains(a.All(), "refresh_token=") {
				t.Errorf("tokens were asked for %d times, then %d times:\n%s", before, after, a.All())
			}
			if len(keep.Values) != 0 {
				t.Errorf("kept: %v", keep.Values)
			}
		})
	}
}

// TestMachineIssuer: an MCP server that names another authorization server gets
// nothing of a client's secrets there, and a refusal is not tried over and over.
func TestMachineIssuer(t *testing.T) {
	a, evil := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	s := newResource(t, evil)
	conf := oauth.Config{ClientID: "id", ClientSecret: "s3cret", Machine: oauth.Machine{Grant: oauth.GrantClient, Issuer: a.URL}}
	err := s.call(t, s.handler(t, conf))
	if err == nil || !strings.Contains(err.Error(), "oauth.issuer") || evil.All() != "" || a.All() != "" {
		t.Errorf("error = %v; the other server was sent %q", err, evil.All())
	}

	s = newResource(t, a)
	conf.Machine = oauth.Machine{Grant: oauth.GrantJWT, Issuer: a.URL, Token: func(context.Context) (string, error) { return "", errors.New("secret workload is not set") }}
	h := s.handler(t, conf)
	for range 3 {
		if err = s.call(t, h); err == nil || !strings.Contains(err.Error(), "workload is not set") {
			t.Errorf("error = %v, want why there is no token", err)
		}
	}
	if a.All() != "" {
		t.Errorf("the authorization server was sent %q", a.All())
	}
}

// TestMachineConfig: what is missing is said with the setting.
func TestMachineConfig(t *testing.T) {
	for want, m := range map[string]oauth.Machine{
		"oauth.issuer":       {Grant: oauth.GrantClient},
		"oauth.clientSecret": {Grant: oauth.GrantClient, Issuer: "https://a.example"},
		"oauth.token":        {Grant: oauth.GrantJWT, Issuer: "https://a.example"},
		"oauth.provider":     {Grant: oauth.GrantIDJAG, Issuer: "https://a.example", Token: begin("x")},
		"client-credentials": {Grant: "guess", Issuer: "https://a.example"},
		"oauth.clientKey":    {Grant: oauth.GrantJWT, Issuer: "https://a.example", Token: begin("x"), Key: "not a key"},
	} {
		_, err := oauth.New(oauth.Config{Server: "files", URL: "https://mcp.example/mcp", Keep: &oauthtest.Memory{}, Machine: m})
		e, _ := errors.AsType[*capability.Error](err)
		if e == nil || !strings.Contains(e.Fix, want) {
			t.Errorf("%+v: %v, want a fix with %s", m, err, want)
		}
	}
}
