package approval_test

import (
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/testkit/storetest"
)

// TestGrantsStayInTheirFolder: a grant of any scope holds in the workspace of the
// call that was approved, and in no other, although all workspaces share a store.
func TestGrantsStayInTheirFolder(t *testing.T) {
	for _, a := range []approval.Answer{
		yes(approval.Once), yes(approval.Session), yes(approval.Always),
		{By: ann, Effect: approval.Yes, Scope: approval.Always},
		{By: ann, Effect: approval.Yes, Scope: approval.Always, Covers: approval.CoverPrefix},
	} {
		t.Run(string(a.Scope)+" "+string(a.Covers), func(t *testing.T) {
			s, c := storetest.Open(t, storetest.SQLite(t)), newClock()
			own := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/own"})
			cloned := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/cloned"})
			call := startOf("d1", "git", "status")

			first := ask(t, own, call.question())
			other := ask(t, cloned, call.question())
			if other.ID == first.ID {
				t.Fatalf("the other folder's request is %+v", other)
			}
			settle(t, cloned, first.ID, a) // wherever the person is
			if !call.covered(t, own, c.Now()) {
				t.Error("the grant does not hold in its own folder")
			}
			if call.covered(t, cloned, c.Now()) {
				t.Error("the grant holds in another folder")
			}
			if again := ask(t, cloned, call.question()); again.ID != other.ID || again.State != approval.Pending {
				t.Errorf("the other folder's request was settled along: %+v", again)
			}

			// A change of the program there says nothing about this folder.
			changed := startOf("d2", "git", "status")
			if got := ask(t, cloned, changed.question()); len(got.Voided) > 0 {
				t.Errorf("voided %v", got.Voided)
			}
			if !call.covered(t, own, c.Now()) {
				t.Error("the grant ended because of another folder")
			}
		})
	}
}

// TestGrantsWithoutAFolder: a grant from before grants had a folder has ended.
func TestGrantsWithoutAFolder(t *testing.T) {
	s, c := storetest.Open(t, storetest.SQLite(t)), newClock()
	before := newDesk(t, s, approval.Config{Now: c.Now})
	call := startOf("d1", "git", "status")
	old := ask(t, before, call.question())
	settle(t, before, old.ID, yes(approval.Always))
	now := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/own"})
	if !call.covered(t, before, c.Now()) || call.covered(t, now, c.Now()) {
		t.Error("an old grant holds in every folder")
	}
	wantHeld(t, now, 0)
}
