package auth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"

	"ken/capability"
)

const (
	longestClaim = 255
	mostRoles    = 256
)

// DecideScope is the scope of an issuer's token with which a program may decide
// for the person that it is about. A token without it is an agent's: who holds
// it is not known, and a model may be behind.
const DecideScope = "ken.decide"

var errNotAdmitted = errors.New("not admitted")

// identify says who a token is about. What it does not say, or says in a way
// that cannot be shown, is refused: a name is never made up or cut.
func (i *issuer) identify(token *oidc.IDToken) (Identity, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("%w: its claims cannot be read", errWrongToken)
	}
	if claims["events"] != nil {
		return Identity{}, fmt.Errorf("%w: it tells of an event", errWrongToken) // signed alike, and no sign of anyone
	}
	id, err := word(claims, i.UserClaim)
	if err != nil {
		return Identity{}, err
	}
	if verified := claims["email_verified"]; i.UserClaim == "email" && verified != true && verified != "true" {
		return Identity{}, fmt.Errorf("%w: the issuer has not verified the address", errWrongToken)
	}
	who := capability.Principal{ID: i.prefix + id, Tenant: i.tenant}
	if i.TenantClaim != "" {
		if who.Tenant, err = word(claims, i.TenantClaim); err != nil {
			return Identity{}, err
		}
	}
	if who.Roles, err = roles(claims, i.RolesClaim); err != nil {
		return Identity{}, err
	}
	name, err := word(claims, i.NameClaim)
	if err != nil {
		name = id // it is for showing alone
	}
	out, err := i.judge(who, name)
	out.Decides = err == nil && scoped(claims, DecideScope)
	return out, err
}

// judge returns what a person may do by their roles.
func (i *issuer) judge(who capability.Principal, name string) (Identity, error) {
	has := func(of []string) bool {
		return slices.ContainsFunc(who.Roles, func(role string) bool { return slices.Contains(of, role) })
	}
	if len(i.Admit) > 0 && !has(i.Admit) {
		return Identity{}, errNotAdmitted
	}
	return Identity{Principal: who, Name: name, Operator: has(i.Operators)}, nil
}

// scoped reports whether a token's claims give it a scope. It is in scope as
// words in one text (RFC 9068); some issuers write scp, or a list.
func scoped(claims map[string]any, scope string) bool {
	for _, name := range [...]string{"scope", "scp"} {
		switch v := claims[name].(type) {
		case string:
			if slices.Contains(strings.Fields(v), scope) {
				return true
			}
		case []any:
			if slices.Contains(v, any(scope)) {
				return true
			}
		}
	}
	return false
}

// claim finds a claim by its name, or inside of others where dots are in it.
func claim(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	outer, rest, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	inner, _ := claims[outer].(map[string]any)
	return claim(inner, rest)
}

func word(claims map[string]any, name string) (string, error) {
	s, _ := claim(claims, name).(string)
	if !sound(s) {
		return "", fmt.Errorf("%w: its claim %s is no text of 1 to %d printable bytes", errWrongToken, name, longestClaim)
	}
	return s, nil
}

func sound(s string) bool {
	return s != "" && len(s) <= longestClaim && utf8.ValidString(s) && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// roles reads a list of words, or one. Without the claim there are none.
func roles(claims map[string]any, name string) ([]string, error) {
	bad := fmt.Errorf("%w: its claim %s is not a list of up to %d words of up to %d bytes", errWrongToken, name, mostRoles, longestClaim)
	var out []string
	switch v := claim(claims, name).(type) {
	case nil:
	case string:
		out = []string{v}
	case []any:
		if len(v) > mostRoles {
			return nil, bad
		}
		for _, item := range v {
			role, _ := item.(string)
			out = append(out, role)
		}
	default:
		return nil, bad
	}
	if slices.ContainsFunc(out, func(role string) bool { return !sound(role) }) {
		return nil, bad
	}
	return out, nil
}

// bearerType reports whether a token is of a type that stands for a person. An
// issuer signs others with the same keys.
func bearerType(raw string) bool {
	head, _, _ := strings.Cut(raw, ".")
	b, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Type string `json:"typ"`
	}
	if err != nil || json.Unmarshal(b, &header) != nil {
		return false
	}
	kind := strings.TrimPrefix(strings.ToLower(header.Type), "application/")
	return kind == "" || kind == "jwt" || kind == "at+jwt"
}
