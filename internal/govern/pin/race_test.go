package pin_test

import (
	"fmt"
	"sync"
	"testing"

	"ken/internal/govern/pin"
	"ken/internal/testkit/storetest"
)

// TestRace: of many that list a server first with different tools, on two
// replicas, one is trusted; and no name is given to two servers.
func TestRace(t *testing.T) {
	address := storetest.Address(t)
	s := storetest.Open(t, address)
	desks := []*pin.Desk{newDesk(t, s, pin.Config{}), newDesk(t, s, pin.Config{}), newDesk(t, storetest.Open(t, address), pin.Config{})}
	names := map[string]string{}
	for round := range 12 {
		var mu sync.Mutex
		accepted := map[string]map[string]bool{} // server → descriptions that were trusted
		var group sync.WaitGroup
		for i := range 2 {
			server := fmt.Sprintf("server%d-%d", round, i)
			mu.Lock() // desks of the server before may be here already
			accepted[server] = map[string]bool{}
			mu.Unlock()
			for who, d := range desks {
				group.Go(func() {
					tool := named("tool")
					tool.Description = fmt.Sprint("desk ", who)
					v, err := d.Check(ctx, server, []pin.Tool{tool})
					mu.Lock()
					defer mu.Unlock()
					got := v["tool"]
					if err != nil || got.State == pin.Unknown {
						t.Errorf("round %d: Check(%s) = %+v, %v", round, server, got, err)
					}
					if other := names[got.Exposed]; got.Exposed != "" && other != "" && other != server {
						t.Errorf("round %d: the name %q was given to %q and to %q", round, got.Exposed, other, server)
					}
					names[got.Exposed] = server
					if got.State == pin.Accepted {
						accepted[server][tool.Description] = true
					}
				})
			}
		}
		group.Wait()
		for server, texts := range accepted {
			if len(texts) != 1 {
				t.Errorf("round %d: of %s %v were trusted, want one", round, server, texts)
			}
		}
	}
}
