package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/secret"
)

// A Keeper keeps values sealed, for one server and principal each. Load reports
// false where there is none.
type Keeper interface {
	Load(ctx context.Context, server string, by capability.Principal) (value []byte, ok bool, err error)
	Save(ctx context.Context, server string, by capability.Principal, value []byte) error
	Delete(ctx context.Context, server string, by capability.Principal) error
}

// Sealed keeps values among the sealed secrets, under names that begin with
// "oauth.".
func Sealed(s *secret.Store) Keeper { return sealed{s} }

type sealed struct{ store *secret.Store }

const sealedPrefix = "oauth."

// sealedName has the server in a fingerprint only: a name of a secret takes few
// characters, and two servers must not share one.
func sealedName(server string, by capability.Principal) string {
	h := sha256.New()
	for _, s := range []string{server, by.Tenant, by.ID} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return sealedPrefix + hex.EncodeToString(h.Sum(nil)[:16])
}

func (k sealed) Load(_ context.Context, server string, by capability.Principal) ([]byte, bool, error) {
	v, err := k.store.Lookup(sealedName(server, by))
	if capability.KindOf(err) == capability.NotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return []byte(v.Reveal()), true, nil
}

func (k sealed) Save(_ context.Context, server string, by capability.Principal, value []byte) error {
	return k.store.Set(sealedName(server, by), secret.Of(string(value)))
}

func (k sealed) Delete(_ context.Context, server string, by capability.Principal) error {
	if err := k.store.Remove(sealedName(server, by)); err != nil && capability.KindOf(err) != capability.NotFound {
		return err
	}
	return nil
}

// Logins returns the names of the sealed secrets that hold logins to a server, each
// with its token and client registration: that of by, and those of all other
// users.
func Logins(s *secret.Store, server string, by capability.Principal) ([]string, error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	own := sealedName(server, by)
	var out []string
	for _, item := range list {
		if !strings.HasPrefix(item.Name, sealedPrefix) {
			continue
		}
		g := grant{}
		v, err := s.Lookup(item.Name)
		if err != nil {
			return nil, err
		}
		if item.Name == own || json.Unmarshal([]byte(v.Reveal()), &g) == nil && g.Server == server {
			out = append(out, item.Name)
		}
	}
	return out, nil
}

// load reads the grant that is kept, unless it is for something else.
func (h *Handler) load(ctx context.Context) (*grant, error) {
	if h.conf.Machine.Grant != "" {
		return nil, nil // such tokens are not kept
	}
	value, ok, err := h.conf.Keep.Load(ctx, h.conf.Server, h.conf.Principal)
	if err != nil || !ok {
		return nil, err
	}
	g := &grant{}
	// One that cannot be read, or is for another address that this server had
	// before, is as good as none: the next login replaces it.
	if json.Unmarshal(value, g) != nil || g.V != grantVersion || !covers(g.Resource, h.url) || h.checkURL(g.TokenEndpoint) != nil {
		return nil, nil
	}
	return g, nil
}

func (h *Handler) save(ctx context.Context, g *grant) error {
	if h.conf.Machine.Grant != "" {
		return nil
	}
	kept := *g
	kept.Server = h.conf.Server
	value, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return h.conf.Keep.Save(ctx, h.conf.Server, h.conf.Principal, value)
}
