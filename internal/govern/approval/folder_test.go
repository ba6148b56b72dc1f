package approval_test

import (
	"slices"
	"strings"
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
			s, c := storetest.Open(t, storetest.Address(t)), newClock()
			own := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/own"})
			cloned := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/cloned"})
			call := startOf("d1", "git", "status")

			first, err := own.Ask(ctx, call.question())
			if err != nil {
				t.Fatal(err)
			}
			other, err := cloned.Ask(ctx, call.question())
			if err != nil || other.ID == first.ID {
				t.Fatalf("the other folder's request: %+v %v", other, err)
			}
			if _, err := cloned.Settle(ctx, first.ID, a); err != nil { // wherever the person is
				t.Fatal(err)
			}
			if !call.covered(t, own, c.Now()) {
				t.Error("the grant does not hold in its own folder")
			}
			if call.covered(t, cloned, c.Now()) {
				t.Error("the grant holds in another folder")
			}
			if other, err = cloned.Get(ctx, other.ID); err != nil || other.State != approval.Pending {
				t.Errorf("the other folder's request was settled along: %v %v", other.State, err)
			}
			if again, err := cloned.Ask(ctx, call.question()); err != nil || again.ID != other.ID {
				t.Errorf("the other folder's request, asked again: %+v %v", again, err)
			}

			// A change of the program there says nothing about this folder.
			changed := startOf("d2", "git", "status")
			if got, err := cloned.Ask(ctx, changed.question()); err != nil || len(got.Voided) > 0 {
				t.Errorf("voided %v %v", got.Voided, err)
			}
			if !call.covered(t, own, c.Now()) {
				t.Error("the grant ended because of another folder")
			}
		})
	}
}

// TestFolderIsShown: a person sees in which folder a call would run, what a
// longer grant is limited to, and why they are asked again.
func TestFolderIsShown(t *testing.T) {
	s := storetest.Open(t, storetest.Address(t))
	own := newDesk(t, s, approval.Config{Folder: "/home/ann/own", Redact: func(_, value string) string { return value }})
	cloned := newDesk(t, s, approval.Config{Folder: "/home/ann/cloned", Redact: func(_, value string) string { return value }})
	q := startOf("d1", "git", "status").question()
	first, err := own.Ask(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	folder := func(l approval.Line) bool { return l.Name == "folder" && l.Text == "/home/ann/own" }
	if !slices.ContainsFunc(first.Lines(), folder) || !slices.ContainsFunc(first.ConsentLines(), folder) {
		t.Errorf("lines: %v", first.Lines())
	}
	for _, o := range first.Offers {
		if o.Scope == approval.Always && !strings.Contains(o.Text, "in every session in /home/ann/own") {
			t.Errorf("offer: %s", o.Text)
		}
	}
	if _, err := own.Settle(ctx, first.ID, yes(approval.Always)); err != nil {
		t.Fatal(err)
	}
	held, err := cloned.Held(ctx, approval.Filter{Tenant: ann.Tenant})
	if err != nil || len(held) != 1 || !strings.Contains(held[0].Text(), "in /home/ann/own") {
		t.Errorf("grants: %+v %v", held, err)
	}
	second, err := cloned.Ask(ctx, q)
	if err != nil || second.Before == nil || !strings.Contains(second.Before.Reason(), "because folder differs") {
		t.Errorf("asked again: %+v %v", second.Before, err)
	}
}

// TestGrantsWithoutAFolder: a grant from before grants had a folder has ended.
func TestGrantsWithoutAFolder(t *testing.T) {
	s, c := storetest.Open(t, storetest.Address(t)), newClock()
	before := newDesk(t, s, approval.Config{Now: c.Now})
	call := startOf("d1", "git", "status")
	old, err := before.Ask(ctx, call.question())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Settle(ctx, old.ID, yes(approval.Always)); err != nil {
		t.Fatal(err)
	}
	now := newDesk(t, s, approval.Config{Now: c.Now, Folder: "/home/ann/own"})
	if !call.covered(t, before, c.Now()) || call.covered(t, now, c.Now()) {
		t.Error("an old grant holds in every folder")
	}
	if held, err := now.Held(ctx, approval.Filter{Tenant: ann.Tenant}); err != nil || len(held) != 0 {
		t.Errorf("grants: %+v %v", held, err)
	}
}
