package auth

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/secret"
	"ken/internal/testkit"
)

// TestNamedAgents: agents with their own tokens can be told apart. Tokens that
// are added or removed while the server runs take effect at once.
func TestNamedAgents(t *testing.T) {
	tokens := open(t)
	var seen Identity
	next := HandlerFunc(func(w http.ResponseWriter, _ *http.Request, who Identity) {
		seen = who
		w.WriteHeader(http.StatusNoContent)
	})
	h := testkit.Must(Guard(next, Config{Tokens: tokens, Owner: owner(), Loopback: true}))(t)
	var held []string
	tokens.OnNew(func(v secret.Value) { held = append(held, v.Reveal()) })
	code := func(token string) int {
		seen = Identity{}
		return ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+token).Code
	}
	one := testkit.Must(NamedAgent(tokens.dir, "cursor", false))(t)
	two := testkit.Must(NamedAgent(tokens.dir, "zed", false))(t)
	if again, err := NamedAgent(tokens.dir, "cursor", false); err != nil || again != one || one == two {
		t.Errorf("NamedAgent() again = %v, want the same token", err)
	}
	for name, token := range map[string]string{"cursor": one, "zed": two, "": tokens.Agent().Reveal()} {
		if got := code(token); got != 204 || seen.Principal.Agent != name || seen.Principal.ID != owner().Principal.ID || seen.Decides || seen.Operator {
			t.Errorf("the token of %q = %d as %+v, want the owner's agent of that name", name, got, seen)
		}
	}
	if !slices.Contains(held, one) || !slices.Contains(held, two) || len(tokens.All()) != 5 || len(Known(tokens.dir)) != 4 {
		t.Errorf("%d tokens were told of, %d are known: they would be shown", len(held), len(tokens.All()))
	}
	if w := ask(h, "GET", "/?token="+one, "localhost"); w.Code == http.StatusSeeOther {
		t.Error("an agent's token signs a browser in")
	}
	if there, err := RemoveAgent(tokens.dir, "cursor"); err != nil || !there {
		t.Errorf("RemoveAgent() = %v, %v", there, err)
	}
	testkit.Equal(t, "a token that was removed", code(one), 401)
	fresh, err := NamedAgent(tokens.dir, "cursor", false)
	if err != nil || fresh == one || code(fresh) != 204 || code(one) != 401 || code(two) != 204 {
		t.Errorf("after a new token for the same name: %v, new %d, old %d, other %d", err, code(fresh), code(one), code(two))
	}
	// A file that other users can read is rejected.
	path := filepath.Join(tokens.dir, agentFolder, "zed")
	testkit.OK(t, os.Chmod(path, 0o644))
	tokens.named.load(tokens.dir)
	testkit.Equal(t, "a token that others can read", code(two), 401)
	agents, err := Agents(tokens.dir)
	if err != nil || len(agents) != 2 || agents[0].Name != "cursor" {
		t.Errorf("Agents() = %v, %v, want two", agents, err)
	}
	for _, bad := range []string{"", "../token", ".x", "A", "a/b", string(make([]byte, 70))} {
		if _, err := NamedAgent(tokens.dir, bad, false); capability.KindOf(err) != capability.Invalid {
			t.Errorf("NamedAgent(%q) = %v, want Invalid", bad, err)
		}
		if there, err := RemoveAgent(tokens.dir, bad); there || err != nil {
			t.Errorf("RemoveAgent(%q) = %v, %v", bad, there, err)
		}
	}
	if token, err := NamedAgent(tokens.dir, "codex", true); token != "" || err != nil {
		t.Errorf("a look = %v, want that nothing is made", err)
	}
}
