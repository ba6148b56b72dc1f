package stream

import (
	"testing"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// TestTurnRecords: what was shown in a turn is kept for whoever had it, and no
// longer than their sessions.
func TestTurnRecords(t *testing.T) {
	db, err := store.Open(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	records := TurnRecords{Store: func() (*store.Store, error) { return db, nil }, Keep: 2 * time.Hour}
	me := capability.Principal{ID: "local", Tenant: "home"}
	record := []byte(`[{"type":"done"}]`)
	if err := records.Put(t.Context(), me, "s", 1, record); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := records.Get(t.Context(), me, "s", 1); string(got) != string(record) || !ok || err != nil {
		t.Errorf("record = %s, %v, %v; want what was kept", got, ok, err)
	}
	for name, q := range map[string]struct {
		who     capability.Principal
		session string
		turn    int
	}{
		"another's":             {capability.Principal{ID: "bob", Tenant: me.Tenant}, "s", 1},
		"of another tenant":     {capability.Principal{ID: me.ID, Tenant: me.Tenant + "x"}, "s", 1},
		"of names run together": {capability.Principal{ID: "", Tenant: me.Tenant + me.ID}, "s", 1},
		"of another session":    {me, "t", 1},
		"of another turn":       {me, "s", 2},
	} {
		if got, ok, err := records.Get(t.Context(), q.who, q.session, q.turn); got != nil || ok || err != nil {
			t.Errorf("the record %s = %s, %v, %v; want none", name, got, ok, err)
		}
	}
	item, _, err := db.Get(t.Context(), recordKey(me, "s", 1))
	if left := time.Until(item.Expires); err != nil || left <= 0 || left > 2*time.Hour+time.Minute {
		t.Errorf("it is kept for %v more, %v; want at most chat.keep", left, err)
	}
}
