package mcpserver

import (
	"fmt"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"
)

// TestLobbyTellsAgentsApart: the session of a client without sessions is the same
// in any process, and an agent that says to be that client has another.
func TestLobbyTellsAgentsApart(t *testing.T) {
	who, now := capability.Principal{ID: "ann"}, time.Unix(1, 0)
	seen := map[string]bool{}
	for _, agent := range []bool{false, true} {
		id := new(lobby).find(who, agent, "editor", "", now).id
		testkit.Equal(t, fmt.Sprintf("find(agent %v) = %s, then", agent, id), new(lobby).find(who, agent, "editor", "", now).id, id)
		if seen[id] {
			t.Errorf("find = %s for a client and for an agent", id)
		}
		seen[id] = true
	}
}
