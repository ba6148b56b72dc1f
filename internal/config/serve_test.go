package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestOIDC(t *testing.T) {
	for _, tt := range []struct{ text, want string }{ // want empty: it is taken
		{"{}", ""},
		{"", ""},
		{"{issuer: https://id.example, clientID: ken}", ""},
		{"{issuer: http://localhost:9, clientID: ken}", ""},
		{"{issuer: 'http://[::1]:9/realm', clientID: ken}", ""},
		{"{issuer: https://id.example}", "serve.oidc.clientID is missing; write it, or remove serve.oidc"},
		{"{clientID: ken}", "serve.oidc.issuer is missing"},
		{"{issuer: '', clientID: ken}", "is not the address of an issuer"},
		{"{issuer: id.example, clientID: ken}", "is not the address of an issuer"},
		{"{issuer: https://ada@id.example, clientID: ken}", "is not the address of an issuer"},
		{"{issuer: 'https://id.example/?a=b', clientID: ken}", "is not the address of an issuer"},
		{"{issuer: 'ftp://id.example', clientID: ken}", "is not the address of an issuer"},
		{"{issuer: http://id.example, clientID: ken}", "is not https, and not on this machine"},
		{"{issuer: https://id.example, clientID: ken, clientSecret: 'a b'}", "is not the name of a secret"},
		{"{issuer: https://id.example, clientId: ken}", "unknown key serve.oidc.clientId; did you mean serve.oidc.clientID?"},
		{"[a]", "serve.oidc must be a map"},
	} {
		places, _, _ := at(t)
		write(t, filepath.Join(places.Home, "ken.yaml"), "serve:\n  oidc: "+tt.text+"\n")
		_, err := Load(places, "")
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("serve.oidc: %s = %v, want %q", tt.text, err, tt.want)
		}
	}
}

// TestServeOfProject: a project's file neither lets people in nor lets them ask
// more often.
func TestServeOfProject(t *testing.T) {
	for _, tt := range []struct {
		user, project string
		widens        bool
		want          ServeRate
	}{
		{"{}", "oidc: {issuer: https://evil.example, clientID: x}", true, ServeRate{}},
		{"{oidc: {issuer: https://id.example, clientID: ken}}", "oidc: {issuer: https://id.example, clientID: ken, operators: [all]}", true, ServeRate{}},
		{"{oidc: {issuer: https://id.example, clientID: ken}}", "oidc: {issuer: https://id.example, clientID: ken}", false, ServeRate{50, 200, 1000}},
		{"{}", "rate: {requests: 5}", false, ServeRate{5, 200, 1000}},
		{"{}", "rate: {requests: 0}", true, ServeRate{}},
		{"{}", "rate: {requests: 50, burst: 201}", true, ServeRate{}},
		{"{}", "rate: {open: 20}", false, ServeRate{50, 200, 20}},
		{"{}", "rate: {open: 0}", true, ServeRate{}},
		{"{}", "rate: {open: 1001}", true, ServeRate{}},
		{"{rate: {open: 0}}", "rate: {open: 5000}", false, ServeRate{50, 200, 5000}},
		{"{rate: {requests: 10, burst: 0}}", "rate: {requests: 5, burst: 0}", false, ServeRate{5, 0, 1000}},
		{"{rate: {requests: 10, burst: 10}}", "rate: {requests: 20, burst: 20}", false, ServeRate{10, 10, 1000}}, // no more than the default: the user's stands
		{"{rate: {requests: 0}}", "rate: {requests: 90, burst: 900}", false, ServeRate{90, 900, 1000}},
	} {
		places, _, _ := at(t)
		write(t, filepath.Join(places.Home, "ken.yaml"), "serve: "+tt.user+"\n")
		write(t, filepath.Join(places.Project, "ken.yaml"), "serve: {"+tt.project+"}\n")
		c, err := Load(places, "")
		if tt.widens {
			if err == nil || !strings.Contains(err.Error(), "may narrow but not widen") {
				t.Errorf("%s over %s = %v, want a refusal", tt.project, tt.user, err)
			}
			continue
		}
		if err != nil || c.Serve.Rate != tt.want {
			t.Errorf("%s over %s = %v, %v, want %v", tt.project, tt.user, c.Serve.Rate, err, tt.want)
		}
	}
}
